package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/connect/web"
	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/part"
)

// inboxesOf opens the door inbox on an engine. Loopback may be called.
func inboxesOf(t testing.TB, e *part.Engine) *inbox.Door {
	t.Helper()
	egress, err := connect.ParseEgress([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	d := inbox.New(inbox.Options{
		Engine: e, Log: slog.New(slog.DiscardHandler),
		Sinks: func(h *inbox.HTTP, _ bool) (connect.Sink, error) {
			return web.New(web.Options{URL: h.URL, Egress: egress, Batch: h.Batch, Header: h.Headers})
		},
	})
	if err := d.Start(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d
}

const ordersInbox = `{"group":{"json":".order"},"batch":{"mode":"fail_first","query":"none"}}`

// A job would have neither group nor place among the messages.
func TestAJobForAnInboxIsRefused(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PUT", "/inboxes/orders", ordersInbox)
	const says = `{"error":"queue \"orders\" is an inbox; send messages to it with POST /inboxes/orders/messages","code":"wrong_state"}`
	one := `{"queue":"orders","type":"t","payload":{"order":7}}`
	a.want(422, says, "POST", "/jobs", one)
	a.want(422, "*", "POST", "/jobs/bulk", `{"jobs":[{"queue":"q","type":"t","payload":1},`+one+`]}`)
	a.want(200, `{"count":0}`, "GET", "/jobs/count", "")
}

func TestWhatAnInboxSaysOfItsQueueIsNotChangedBesideIt(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PUT", "/inboxes/orders", ordersInbox)
	for _, setting := range []string{`"on_dead":"skip"`, `"retry":{"limit":0}`, `"order":"start"`} {
		if text := a.want(400, "*", "PATCH", "/queues/orders", "{"+setting+"}"); !strings.Contains(text, "is a matter of its inbox; set it with PUT /inboxes/orders") {
			t.Errorf("%s: %s", setting, text)
		}
	}
	a.want(200, "*", "PATCH", "/queues/orders", `{"max_jobs":100,"paused":true}`)
}

func TestMessagesAreTakenInOnceByTheirID(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(200, "*", "PUT", "/inboxes/orders", ordersInbox)
		const path = "/inboxes/orders/messages"
		first := object(t, a.want(201, "*", "POST", path, `{"order":7}`, "X-Correlate-Id", "m1"))
		if first["message_id"] != "m1" || first["group"] != "7" || first["duplicate"] != nil {
			t.Errorf("%v", first)
		}
		again := object(t, a.want(200, "*", "POST", path, `{"order":7}`, "x-correlate-id", "m1", "User-Agent", "other"))
		if again["id"] != first["id"] || again["duplicate"] != true {
			t.Errorf("%v, and the first was %v", again, first)
		}
		a.want(409, `{"error":"the message id \"m1\" was used for other content; a new message needs an id of its own","code":"exists"}`,
			"POST", path, `{"order":8}`, "X-Correlate-Id", "m1")
		a.want(409, "*", "POST", path, `{"order":7}`, "X-Correlate-Id", "m1", "X-Correlate-Ttl", "PT1S") // headers are content
		for range 2 {                                                                                    // without an id each is a message of its own
			a.want(201, "*", "POST", path, `{"order":7}`)
		}
		if n := object(t, a.want(200, "*", "GET", "/inboxes/orders", ""))["messages"].(map[string]any); fmt.Sprintf("%v %v", n["in_progress"], n["total"]) != "3 3" {
			t.Errorf("there are %v", n)
		}
		m := object(t, a.want(200, "*", "GET", path+"/m1", ""))
		if m["id"] != first["id"] || fmt.Sprint(m["payload"]) != "map[order:7]" || fmt.Sprint(m["headers"]) != "map[X-CORRELATE-ID:m1]" || m["status"] != "in_progress" {
			t.Errorf("%v", m)
		}
		if same := object(t, a.want(200, "*", "GET", path+"/"+first["id"].(string), "")); same["message_id"] != "m1" {
			t.Errorf("%v", same)
		}
	})
}

func TestABadMessageConcernsOnlyItself(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(200, "*", "PUT", "/inboxes/in", `{"group":{"header":"X-Correlation-Hint"},"sort":"header:X-No","batch":{"query":"none"}}`)
		const path = "/inboxes/in/messages"
		for _, c := range []struct{ body, want string }{
			{`{"order":7}`, "the message has no group: the header X-Correlation-Hint is missing"},
		} {
			if text := a.want(400, "*", "POST", path, c.body, "X-No", "1"); !strings.Contains(text, c.want) {
				t.Errorf("%s: %s, want %s", c.body, text, c.want)
			}
		}
		for _, c := range []struct{ name, value, want string }{
			{"X-Correlate-Timestamp", "yesterday", "must be a date such as"},
			{"X-Correlate-Timestamp", "2026-11-18T08:18:51", "with its zone"},
			{"X-Correlate-Timestamp", "1760000000000", "must be a date such as"},
			{"X-Correlate-Expiration", "2026-11-18", "must be a date such as"},
			{"X-Correlate-Ttl", "soon", "no span of time"},
			{"X-Correlate-Ttl", "-PT5S", "cannot be negative"},
			{"X-Correlate-Ttl", "P9999D", "must be at most"},
			{"X-Correlate-Payload-Encoding", "xml", "cannot be decoded"},
			{"X-Correlate-Payloadtype-Fqcn", "a{b", "type of the payload"},
			{"X-Correlate-Id", strings.Repeat("x", 1025), "not be longer than 1024"},
			{"X-No", "seven", "must be a whole number"},
			{"X-No", "", "must be a whole number"},
		} {
			header := []string{"X-Correlation-Hint", "g", c.name, c.value}
			if c.name != "X-No" {
				header = append(header, "X-No", "1")
			}
			if text := a.want(400, "*", "POST", path, `1`, header...); !strings.Contains(text, c.want) {
				t.Errorf("%s %q: %s, want %s", c.name, c.value, text, c.want)
			}
		}
		for _, body := range []string{`{"order":`, `not JSON`, `1 2`} {
			if text := a.want(400, "*", "POST", path, body, "Content-Type", "application/json", "X-Correlation-Hint", "g", "X-No", "1"); !strings.Contains(text, "the payload is not JSON") {
				t.Errorf("%q: %s", body, text)
			}
		}
		for body, want := range map[string]string{"\"\xff\"": "invalid UTF-8", `{"o":7,"x":"\ud800"}`: "surrogate"} {
			if text := a.want(400, "*", "POST", path, body, "X-Correlation-Hint", "g", "X-No", "1"); !strings.Contains(text, "the payload is not JSON: ") || !strings.Contains(text, want) {
				t.Errorf("%q: %s, want %s", body, text, want)
			}
		}
		answer := a.want(201, "*", "POST", path+"/bulk", `{"messages":[
			{"headers":{"x-correlation-hint":"a","x-no":"2","X-CORRELATE-ID":"a2"},"payload":2},
			{"headers":{"x-no":"1"},"payload":1},
			{"headers":{"X-Correlation-Hint":"a","X-No":"1","X-CORRELATE-ID":"a1"},"payload":1},
			{"headers":{"X-Correlation-Hint":"a","X-No":"1","X-CORRELATE-ID":"a1"},"payload":1},
			{"headers":{"X-Correlation-Hint":"a","X-No":"1","X-CORRELATE-ID":"a1"},"payload":"other"},
			{"headers":{"X-Correlation-Hint":"b","X-No":"1","X-CORRELATE-Payload-Encoding":"protobuf"},"payload":1},
			{"headers":{"X-Correlation-Hint":"b","X-No":"1"}},
			{"headers":{"X-Correlation-Hint":"b","X-No":"1","x-no":"2"},"payload":1},
			{"headers":{"X-Correlation-Hint":"b","X-No":"1"},"payload":null}]}`)
		var in struct {
			Accepted, Duplicates, Refused int
			Messages                      []struct {
				ID, Code, Error string
				Duplicate       bool
			}
		}
		if err := json.Unmarshal([]byte(answer), &in); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, m := range in.Messages {
			got += fmt.Sprintf("%t %t %s; ", m.ID != "", m.Duplicate, m.Code)
		}
		if want := "true false ; false false invalid; true false ; true true ; false false exists; false false invalid; false false invalid; false false invalid; true false ; "; got != want || in.Accepted != 4 || in.Duplicates != 1 || in.Refused != 5 {
			t.Errorf("%s\nare\n%s, want\n%s", answer, got, want)
		}
		for body, want := range map[string]string{
			`{"messages":{}}`:                        "messages must be an array",
			`{}`:                                     "messages is missing",
			`[]`:                                     "the body must be an object",
			`{"messages":[1]}`:                       "messages[0] must be an object",
			`{"messages":[{"payload":1,"group":2}]}`: "messages[0].group is not known here",
			`{"messages":[{"headers":{"a":1}}]}`:     "messages[0].headers.a must be a text",
			`{"messages":[{"payload":}]}`:            "invalid JSON",
			`{"messages":[]} 1`:                      "more after the first value",
		} {
			if text := a.want(400, "*", "POST", path+"/bulk", body); !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %s", body, text, want)
			}
		}
		turn := object(t, a.want(200, "*", "POST", "/inboxes/in/lease", `{"wait_ms":1000}`))
		var order []string
		for _, m := range turn["messages"].([]any) {
			order = append(order, fmt.Sprint(m.(map[string]any)["message_id"]))
		}
		if got := strings.Join(order, " "); turn["group"] != "a" || got != "a1 a2" {
			t.Errorf("the turn of group %v is %s", turn["group"], got)
		}
	})
}

func TestInboxesAreMadeChangedAndForgotten(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		refused := func(status int, want, method, path, body string) {
			t.Helper()
			if text := a.want(status, "*", method, path, body); !strings.Contains(text, want) {
				t.Errorf("%s %s %s: %s, want %s", method, path, body, text, want)
			}
		}
		a.want(200, `{"inboxes":[]}`, "GET", "/inboxes", "")
		refused(404, `there is no inbox \"in\"`, "GET", "/inboxes/in", "")
		refused(404, "there is no inbox", "POST", "/inboxes/in/messages", "1")
		refused(404, "there is no inbox", "DELETE", "/inboxes/in", "")
		refused(404, "not found", "GET", "/inboxes/in/messages/m/x", "")
		refused(400, "must not contain ','", "PUT", "/inboxes/a,b", ordersInbox)
		refused(400, "deliver.http.url", "PUT", "/inboxes/in", `{"group":{"json":".order"},"deliver":{"http":{"url":"http://10.1.2.3/"}}}`)
		refused(400, `group.json must be a text\nbatch.mode must be one of all, fail_first, not \"some\"\npersistence.messageBatchSize must be -1`,
			"PUT", "/inboxes/in", `{"group":{"json":5},"batch":{"mode":"some"},"persistence":{"messageBatchSize":0}}`)
		for _, body := range []string{"garbage", ordersInbox + "garbage", `"\ud800"`} {
			refused(400, "invalid JSON: ", "PUT", "/inboxes/in", body)
			refused(400, "invalid JSON: ", "POST", "/inboxes/in/preview", body)
		}
		refused(400, "the body is empty", "PUT", "/inboxes/in", "")
		refused(404, "there is no inbox", "GET", "/inboxes/in", "")

		a.want(200, "*", "PUT", "/inboxes/in", ordersInbox)
		a.want(201, "*", "POST", "/inboxes/in/messages", `{"order":1}`)
		refused(422, "while no grouped job in it is open", "PUT", "/inboxes/in", `{"group":{"json":".order"},"batch":{"mode":"all","query":"none"}}`)
		if x := object(t, a.want(200, "*", "GET", "/inboxes/in", "")); x["ordered"] != true {
			t.Errorf("a refused change was made: %v", x)
		}
		refused(422, "has 1 that are not finished", "DELETE", "/inboxes/in", "")
		refused(400, "lease_ms must be", "POST", "/inboxes/in/lease", `{"lease_ms":0}`)
		refused(400, "limit must be", "GET", "/inboxes/in/messages?limit=0", "")
		refused(400, "status must be of", "GET", "/inboxes/in/messages?status=ready", "")
		refused(400, "from must be", "GET", "/inboxes/in/messages?from=x", "")
		refused(400, `unknown parameter \"queue\"; there are status, type`, "GET", "/inboxes/in/messages?queue=x", "")
		refused(400, "state must be of", "GET", "/inboxes/in/groups?state=lost", "")
		refused(400, "order must be", "GET", "/inboxes/in/messages?order=up", "")
		refused(404, "has no message", "GET", "/inboxes/in/messages/m9", "")

		receiver := "http://127.0.0.1:9/"
		shown := a.want(200, "*", "PUT", "/inboxes/out", `{"group":{"json":".order"},"deliver":{"http":{"url":"`+receiver+`","headers":{"Authorization":"Bearer s3cret"}}}}`)
		for _, text := range []string{shown, a.want(200, "*", "GET", "/inboxes", ""), a.want(200, "*", "GET", "/audit", "")} {
			if strings.Contains(text, "s3cret") || !strings.Contains(text, "********") {
				t.Errorf("the secret is not masked in %s", text)
			}
		}
		refused(422, "delivers to", "POST", "/inboxes/out/lease", `{}`)
		a.want(204, "", "DELETE", "/inboxes/out", "")
		a.want(200, `{"changed":1}`, "POST", "/inboxes/in/actions", `{"action":"delete","all":true}`)
		a.want(204, "", "DELETE", "/inboxes/in", "")
		a.want(200, `{"inboxes":[]}`, "GET", "/inboxes", "")
	})
}

// Pages go through everything, each once.
func TestPagesOfMessagesAndGroups(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PUT", "/inboxes/in", ordersInbox)
	for i := range 7 {
		a.want(201, "*", "POST", "/inboxes/in/messages", fmt.Sprintf(`{"order":"g%d"}`, i), "X-Correlate-Id", fmt.Sprintf("m%d", i))
	}
	for path, key := range map[string][2]string{"messages": {"messages", "message_id"}, "groups": {"groups", "group"}} {
		var got []string
		for from, more := "", true; more; {
			page := object(t, a.want(200, "*", "GET", "/inboxes/in/"+path+"?limit=3&from="+from, ""))
			for _, one := range page[key[0]].([]any) {
				got = append(got, fmt.Sprint(one.(map[string]any)[key[1]]))
			}
			from, more = page["next"].(string)
		}
		want := strings.ReplaceAll("m0 m1 m2 m3 m4 m5 m6", "m", key[1][:1])
		if strings.Join(got, " ") != want {
			t.Errorf("%s are %q, want %s", path, got, want)
		}
	}
	if page := object(t, a.want(200, "*", "GET", "/inboxes/in/messages?order=desc&limit=1&group=g5", "")); fmt.Sprint(page["messages"].([]any)[0].(map[string]any)["message_id"]) != "m5" {
		t.Errorf("%v", page)
	}
}

// A token for some queues is for the inboxes of these names.
func TestATokenForSomeQueuesIsHeldToItsInboxes(t *testing.T) {
	a := start(t, httpapi.Options{})
	for _, name := range []string{"mine-1", "other"} {
		a.want(200, "*", "PUT", "/inboxes/"+name, ordersInbox)
	}
	admin := a.token("", `{"name":"root","scopes":["admin"]}`)
	mine := a.token(admin, `{"name":"mine","scopes":["enqueue","work","read","operate"],"queues":["mine-*"]}`)
	as := func(status int, method, path, body string) string {
		t.Helper()
		return a.want(status, "*", method, path, body, "Authorization", "Bearer "+mine)
	}
	as(201, "POST", "/inboxes/mine-1/messages", `{"order":1}`)
	as(403, "POST", "/inboxes/other/messages", `{"order":1}`)
	as(403, "POST", "/inboxes/other/messages/bulk", `{"messages":[]}`)
	as(200, "POST", "/inboxes/mine-1/lease", `{}`)
	as(403, "POST", "/inboxes/other/lease", `{}`)
	as(403, "GET", "/inboxes/other", "")
	as(403, "GET", "/inboxes/other/messages", "")
	as(403, "GET", "/inboxes/other/groups", "")
	as(403, "POST", "/inboxes/other/actions", `{"action":"pause"}`)
	as(403, "PUT", "/inboxes/other", ordersInbox)
	as(403, "DELETE", "/inboxes/other/messages/x", "")
	as(200, "PUT", "/inboxes/mine-2", ordersInbox)
	if list := as(200, "GET", "/inboxes", ""); strings.Contains(list, "other") || !strings.Contains(list, "mine-2") {
		t.Errorf("listed are %s", list)
	}
	a.want(401, "*", "GET", "/inboxes/mine-1", "")
	sender := a.token(admin, `{"name":"sender","scopes":["enqueue"]}`)
	a.want(201, "*", "POST", "/inboxes/other/messages", `{"order":1}`, "Authorization", "Bearer "+sender)
	a.want(403, "*", "GET", "/inboxes/other", "", "Authorization", "Bearer "+sender)
}
