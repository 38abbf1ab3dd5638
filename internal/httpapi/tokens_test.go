package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/job"
)

// token makes a token with the text of another one ("" = the first) and
// returns its own.
func (a *api) token(by, body string) string {
	a.t.Helper()
	header := []string{}
	if by != "" {
		header = bearer(by)
	}
	got := a.call("POST", "/tokens", body, header...)
	if got.status != 201 || got.header.Get("Cache-Control") != "no-store" {
		a.t.Fatalf("POST /tokens %s: %d %s", body, got.status, got.body)
	}
	return object(a.t, got.body)["token"].(string)
}

func bearer(text string) []string { return []string{"Authorization", "Bearer " + text} }

const adminToken = `{"name":"root","scopes":["admin"]}`

func TestWithTheFirstTokenEveryCallWantsOne(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(200, "*", "GET", "/jobs", "", bearer("whatever")...) // nobody asks for it yet
		open := a.take("?queue=q")
		root := a.token("", adminToken)
		if _, err := io.Copy(io.Discard, open.lines); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the stream without a token ended with %v", err)
		}
		for _, c := range []struct{ method, path string }{
			{"GET", "/jobs"},
			{"POST", "/jobs"},
			{"GET", "/jobs/take"},
			{"DELETE", "/jobs/" + noID},
			{"GET", "/version"},
			{"GET", "/tokens"},
			{"POST", "/tokens"},
			{"DELETE", "/tokens/x"},
			{"GET", "/audit"},
			{"PATCH", "/queues/q"},
		} {
			got := a.call(c.method, c.path, "")
			if got.status != 401 || got.header.Get("Www-Authenticate") != `Bearer realm="reprise"` || object(t, got.body)["code"] != "unauthorized" {
				t.Errorf("%s %s: got %d %v %s", c.method, c.path, got.status, got.header, got.body)
			}
			got = a.call(c.method, c.path, "", bearer(root[:len(root)-1]+"_")...)
			if got.status != 401 || !strings.Contains(got.header.Get("Www-Authenticate"), `error="invalid_token"`) {
				t.Errorf("%s %s with a wrong token: got %d %v %s", c.method, c.path, got.status, got.header, got.body)
			}
		}
		a.want(401, "*", "GET", "/jobs?token="+root, "")
		a.want(401, "*", "GET", "/jobs?access_token="+root, "")
		a.want(200, "*", "GET", "/health", "")
		a.want(200, "*", "GET", "/ready", "")
		a.want(404, "*", "GET", "/nope", "")
		a.want(200, "*", "GET", "/jobs", "", bearer(root)...)
		a.want(200, "*", "GET", "/version", "", bearer(root)...)
	})
}

func TestACallNamesTheScopeItLacks(t *testing.T) {
	a := start(t, httpapi.Options{})
	root := a.token("", adminToken)
	tokens := map[string]string{"root": root}
	for _, scope := range []string{"enqueue", "work", "read", "operate"} {
		tokens[scope] = a.token(root, `{"name":"`+scope+`","scopes":["`+scope+`"]}`)
	}
	id := object(t, a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"q","payload":1}`, bearer(root)...))["id"].(string)
	for _, c := range []struct{ method, path, sent, scope string }{
		{"POST", "/jobs", `{"type":"t","queue":"q","payload":1}`, "enqueue"},
		{"POST", "/jobs/bulk", `{"jobs":[{"type":"t","queue":"q","payload":1}]}`, "enqueue"},
		{"HEAD", "/jobs/take", "", "work"},
		{"POST", "/jobs/lease", `{"queues":["none"]}`, "work"},
		{"POST", "/jobs/extend", `{"leases":[]}`, "work"},
		{"POST", "/jobs/settle", `[{"id":"` + noID + `","outcome":"ok"}]`, "work"},
		{"GET", "/jobs", "", "read"},
		{"GET", "/jobs/" + id, "", "read"},
		{"GET", "/jobs/" + id + "/errors", "", "read"},
		{"GET", "/jobs/" + id + "/explain", "", "read"},
		{"GET", "/jobs/count", "", "read"},
		{"GET", "/queues", "", "read"},
		{"GET", "/queues/q", "", "read"},
		{"GET", "/dead", "", "read"},
		{"GET", "/dead/groups", "", "read"},
		{"GET", "/dead/export", "", "read"},
		{"GET", "/replays", "", "read"},
		{"GET", "/audit", "", "read"},
		{"PATCH", "/queues/q", `{"paused":false}`, "operate"},
		{"POST", "/queues/q/release", `{}`, "operate"},
		{"POST", "/dead/replay", `{"all":true}`, "operate"},
		{"POST", "/dead/delete", `{"all":true}`, "operate"},
		{"GET", "/tokens", "", "root"},
	} {
		for name, text := range tokens {
			got := a.call(c.method, c.path, c.sent, bearer(text)...)
			switch allowed := name == c.scope || name == "root"; {
			case allowed && got.status/100 != 2:
				t.Errorf("%s %s by %s: got %d %s", c.method, c.path, name, got.status, got.body)
			case allowed || c.method == "HEAD" && got.status == 403:
			case got.status != 403 || !strings.Contains(got.body, "lacks the scope "+strings.Replace(c.scope, "root", "admin", 1)):
				t.Errorf("%s %s by %s: got %d %s", c.method, c.path, name, got.status, got.body)
			}
		}
	}
}

func TestATokenForSomeQueuesReachesNoOther(t *testing.T) {
	a := start(t, httpapi.Options{})
	root := a.token("", adminToken)
	text := a.token(root, `{"name":"mail","scopes":["enqueue","work","read","operate"],"queues":["mail-*","bills"]}`)
	own := bearer(text)
	put := func(queue string) string {
		return object(t, a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"`+queue+`","payload":1}`, bearer(root)...))["id"].(string)
	}
	mine, other := put("mail-eu"), put("other")
	one := func(queue string) string { return `{"type":"t","queue":"` + queue + `","payload":1}` }
	settle := func(ids ...string) string {
		return `[{"id":"` + strings.Join(ids, `","outcome":"ok"},{"id":"`) + `","outcome":"ok"}]`
	}
	for _, c := range []struct {
		method, path, sent string
		status             int
		says               string
	}{
		{"POST", "/jobs", one("mail-us"), 201, ""},
		{"POST", "/jobs", one("bills"), 201, ""},
		{"POST", "/jobs", one("mail"), 403, `queue \"mail\"`},
		{"POST", "/jobs/bulk", `{"jobs":[` + one("bills") + `,` + one("mail-1") + `]}`, 201, ""},
		{"POST", "/jobs/bulk", `{"jobs":[` + one("bills") + `,` + one("other") + `]}`, 403, "jobs[1]: "},
		{"HEAD", "/jobs/take?queue=bills,mail-eu", "", 200, ""},
		{"GET", "/jobs/take?queue=bills,other", "", 403, `queue \"other\"`},
		{"GET", "/jobs/take", "", 403, "name the queues"},
		{"GET", "/jobs/take?queue=", "", 403, "name the queues"},
		{"POST", "/jobs/lease", `{"queues":["none"]}`, 403, "queues[0]: "},
		{"POST", "/jobs/lease", `{}`, 403, "name the queues"},
		{"POST", "/jobs/lease", `{"queues":["mail-none"]}`, 200, ""},
		{"POST", "/jobs/" + other + "/success", "", 403, other},
		{"POST", "/jobs/" + other + "/failure", `{"message":"m"}`, 403, other},
		{"POST", "/jobs/" + mine + "/success", "", 404, "in-flight"},
		{"POST", "/jobs/success", `{"ids":["` + mine + `","` + other + `"]}`, 403, other},
		{"POST", "/jobs/success", `{"ids":["` + mine + `"]}`, 422, ""},
		{"POST", "/jobs/settle", settle(noID, other), 403, other},
		{"POST", "/jobs/settle", settle(noID, mine), 200, ""},
		{"POST", "/jobs/extend", `{"leases":[{"id":"` + other + `","lease":"0000000000000000000000000000000000000000"}]}`, 403, other},
		{"GET", "/jobs", "", 403, "name the queues"},
		{"GET", "/jobs?status=ready", "", 403, "name the queues"},
		{"GET", "/jobs?queue=mail-eu", "", 200, mine},
		{"GET", "/jobs?queue=mail-eu&queue=other", "", 403, ""},
		{"GET", "/jobs/count?queue=other", "", 403, ""},
		{"GET", "/jobs/count?queue=mail-eu", "", 200, `"count":1`},
		{"GET", "/jobs/" + mine, "", 200, ""},
		{"GET", "/jobs/" + other, "", 403, ""},
		{"GET", "/jobs/" + other + "/errors", "", 403, ""},
		{"GET", "/jobs/" + other + "/explain", "", 403, ""},
		{"DELETE", "/jobs/" + other, "", 403, ""},
		{"GET", "/queues", "", 200, `["bills","mail-1","mail-eu","mail-us"]`},
		{"GET", "/queues/other", "", 403, ""},
		{"GET", "/queues/mail-eu", "", 200, ""},
		{"PATCH", "/queues/other", `{"paused":true}`, 403, ""},
		{"PATCH", "/queues/mail-eu", `{"paused":true}`, 200, ""},
		{"POST", "/queues/other/hold", `{"for_ms":1}`, 403, ""},
		{"GET", "/dead", "", 403, "name the queues"},
		{"GET", "/dead?queue=bills", "", 200, ""},
		{"GET", "/dead/groups", "", 403, "not about single queues"},
		{"GET", "/dead/export?queue=other", "", 403, ""},
		{"POST", "/dead/replay", `{"all":true}`, 403, "name the queues"},
		{"POST", "/dead/replay", `{"filter":{"queue":["bills","other"]}}`, 403, "filter.queue[1]: "},
		{"POST", "/dead/replay", `{"filter":{"queue":["bills"]},"dry_run":true}`, 200, ""},
		{"POST", "/dead/delete", `{"all":true}`, 403, "name the queues"},
		{"POST", "/dead/delete", `{"filter":{"queue":["bills"]},"dry_run":true}`, 200, ""},
		{"POST", "/dead/" + other + "/replay", "", 403, ""},
		{"DELETE", "/dead/" + other, "", 403, ""},
		{"GET", "/replays", "", 403, ""},
		{"GET", "/audit", "", 403, ""},
		{"GET", "/version", "", 200, ""},
	} {
		got := a.call(c.method, c.path, c.sent, own...)
		if got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s %s %s\n got %d %s\nwant %d %s", c.method, c.path, c.sent, got.status, got.body, c.status, c.says)
		}
	}
	a.want(200, `{"count":1}`, "GET", "/jobs/count?queue=other&status=ready", "", bearer(root)...)
	a.want(200, `{"count":0}`, "GET", "/jobs/count?queue=mail", "", bearer(root)...)
}

// Who connects under the name of a worker is given what that worker holds. So
// names are those of a token, unless it is for all queues anyway.
func TestATokenForSomeQueuesIsNotGivenWhatAnotherHolds(t *testing.T) {
	a := start(t, httpapi.Options{Heartbeat: 10 * time.Millisecond})
	root := a.token("", adminToken)
	mail := a.token(root, `{"name":"mail","scopes":["enqueue","work"],"queues":["mail"]}`)
	bills := a.token(root, `{"name":"bills","scopes":["enqueue","work"],"queues":["bills"]}`)
	id := object(t, a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"bills","payload":"secret"}`, bearer(bills)...))["id"]
	owner := a.take("?queue=bills&lease=token", append(bearer(bills), "Worker-Id", "w")...)
	if j := owner.next(); j["id"] != id {
		t.Fatalf("took %v", j)
	}
	thief := a.take("?queue=mail&lease=token", append(bearer(mail), "Worker-Id", "w")...)
	own := object(t, a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"mail","payload":1}`, bearer(mail)...))["id"]
	if j := thief.next(); j["id"] != own {
		t.Errorf("under the name of another it was given %v", j)
	}
	other := object(t, a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"bills","payload":1}`, bearer(bills)...))["id"]
	owner.close()
	owner = a.take("?queue=bills&lease=token&prefetch=2", append(bearer(bills), "Worker-Id", "w")...)
	if j := owner.next(); j["id"] != id || j["held"] != true {
		t.Errorf("its owner is given %v", j)
	}
	if j := owner.next(); j["id"] != other {
		t.Errorf("and then %v", j)
	}
}

func TestTheFirstTokenIsMadeHere(t *testing.T) {
	e := newEngine(t)
	h := httpapi.New(httpapi.Options{Engine: e, Live: httpapi.NewLive(httpapi.Changeable{AllowHosts: []string{"queue.example"}})})
	for _, c := range []struct {
		name, from, host string
		header           []string
		status           int
	}{
		{"another machine", "10.1.2.3:5", "127.0.0.1:7890", nil, 403},
		{"by a name of others", "127.0.0.1:5", "queue.example", nil, 403},
		{"a proxy here", "127.0.0.1:5", "127.0.0.1:7890", []string{"X-Forwarded-For", "10.1.2.3"}, 403},
		{"another proxy here", "[::1]:5", "localhost", []string{"Forwarded", "for=10.1.2.3"}, 403},
		{"a third proxy here", "[::1]:5", "localhost", []string{"Via", "1.1 proxy"}, 403},
		{"this machine", "127.0.0.1:5", "127.0.0.1:7890", nil, 201},
	} {
		r := httptest.NewRequest("POST", "http://"+c.host+"/tokens", strings.NewReader(adminToken))
		r.RemoteAddr = c.from
		if c.header != nil {
			r.Header.Set(c.header[0], c.header[1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: got %d %s", c.name, w.Code, w.Body)
		}
	}
}

func TestARefusedTokenNamesTheField(t *testing.T) {
	a := start(t, httpapi.Options{})
	for _, c := range []struct {
		sent   string
		status int
		says   string
	}{
		{`{"name":"ci","scopes":["enqueue"]}`, 400, "the first token must have the scope admin"},
		{`{"name":"ci","scopes":["admin"],"expires_in_ms":1000}`, 400, "the first token must not expire"},
		{`{"name":"ci","scopes":[]}`, 400, "name at least one scope"},
		{`{"name":"ci","scopes":["all"]}`, 400, `no scope \"all\"`},
		{`{"scopes":["admin"]}`, 400, "name is missing"},
		{`{"name":"c i","scopes":["admin"]}`, 400, "name must be"},
		{`{"name":"ci","scopes":["admin"],"queues":["a"]}`, 400, "may do everything"},
		{`{"name":"ci","scopes":["read"],"queues":["a?"]}`, 400, "no pattern of queues"},
		{`{"name":"ci","scopes":["read"],"expires_at":1,"expires_in_ms":1}`, 400, "expires_at cannot"},
		{`{"name":"ci","scopes":["read"],"expires_in_ms":-1}`, 400, "expires_in_ms must"},
		{`{"name":"ci","scopes":["read"],"secret":"x"}`, 400, "secret is not known here"},
		{`{"name":"ci","scopes":"read"}`, 400, "scopes must be an array"},
		{``, 400, "name at least one scope"},
	} {
		got := a.call("POST", "/tokens", c.sent)
		if got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s\n got %d %s\nwant %d %s", c.sent, got.status, got.body, c.status, c.says)
		}
	}
	a.want(200, `{"tokens":[]}`, "GET", "/tokens", "") // nothing came of it: the server is as open as before
	root := bearer(a.token("", adminToken))
	a.want(409, "*", "POST", "/tokens", adminToken, root...)
	a.want(400, "*", "POST", "/tokens", `{"name":"late","scopes":["read"],"expires_at":1}`, root...)
	a.want(404, "*", "DELETE", "/tokens/0123456789", "", root...)
}

func TestATokenIsListedWithoutItsText(t *testing.T) {
	a := start(t, httpapi.Options{})
	root := a.token("", adminToken)
	ci := a.token(root, `{"name":"ci","scopes":["work","enqueue"],"queues":["mail-*"],"expires_in_ms":86400000}`)
	a.want(200, "*", "GET", "/version", "", bearer(ci)...)
	list := a.want(200, "*", "GET", "/tokens", "", bearer(root)...)
	if strings.Contains(list, ci[14:]) || strings.Contains(list, root[14:]) || strings.Contains(list, "hash") {
		t.Errorf("a secret is told: %s", list)
	}
	got := object(t, list)["tokens"].([]any)[0].(map[string]any)
	if got["name"] != "ci" || got["id"] != ci[3:13] || got["by"] != "root" || got["last_used_at"] == nil || got["expires_at"] == nil ||
		!slices.Equal(got["scopes"].([]any), []any{"enqueue", "work"}) {
		t.Errorf("got %v", got)
	}
}

func TestARevokedTokenIsOutAtOnce(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		root := a.token("", adminToken)
		ci := a.token(root, `{"name":"ci","scopes":["work","read"]}`)
		s := a.take("?queue=q", bearer(ci)...)
		leased := make(chan answer, 1)
		go func() {
			leased <- a.call("POST", "/jobs/lease", `{"queues":["q"],"wait_ms":300000}`, bearer(ci)...)
		}()
		a.want(200, "*", "GET", "/jobs?queue=q", "", bearer(ci)...)
		a.want(204, "", "DELETE", "/tokens/"+ci[3:13], "", bearer(root)...)
		if got := a.call("GET", "/jobs?queue=q", "", bearer(ci)...); got.status != 401 {
			t.Fatalf("it is let in: %d %s", got.status, got.body)
		}
		if _, err := io.Copy(io.Discard, s.lines); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("its stream ended with %v", err)
		}
		if got := <-leased; got.status != 401 && got.body != `{"jobs":[]}` { // did it wait already?
			t.Errorf("its lease was answered %d %s", got.status, got.body)
		}
		a.want(422, "*", "DELETE", "/tokens/"+root[3:13], "", bearer(root)...)
	})
}

func TestRevokingWhatIsNotThereLocksNobodyOut(t *testing.T) {
	a := start(t, httpapi.Options{})
	for _, id := range []string{"x", "0123456789", "%20"} {
		a.want(404, "*", "DELETE", "/tokens/"+id, "")
		a.want(200, "*", "GET", "/jobs", "")
	}
	root := a.token("", adminToken) // and the first one is made as before
	a.want(422, "*", "DELETE", "/tokens/"+root[3:13], "", bearer(root)...)
	a.want(200, "*", "GET", "/jobs", "", bearer(root)...)
}

func TestTheAuditLogNamesTheToken(t *testing.T) {
	a := start(t, httpapi.Options{})
	root := a.token("", adminToken)
	ops := a.token(root, `{"name":"ops","scopes":["operate"]}`)
	a.want(200, "*", "PATCH", "/dead/groups/0000000000000001", `{"muted":true}`, append(bearer(ops), "Reprise-Actor", "root")...)
	log := a.want(200, "*", "GET", "/audit?limit=1", "", bearer(root)...)
	got := object(t, log)["entries"].([]any)[0].(map[string]any)
	if got["by"] != "ops" || got["action"] != "mute" {
		t.Errorf("got %v", got)
	}
}

func TestATokenOfTheConfigurationStays(t *testing.T) {
	const text = "rp_0123456789_0123456789abcdefghijklmnopqrstuv0123456789abcdefghij"
	id, hash, _ := job.ParseSecret(text)
	keeper := auth.New([]job.Credential{{ID: id, Name: "conf", Hash: hash, Scopes: job.ScopeAdmin}}, func() job.Millis { return job.Millis(time.Now().UnixMilli()) })
	a := start(t, httpapi.Options{Tokens: keeper})
	a.want(401, "*", "GET", "/jobs", "")
	a.want(422, "*", "DELETE", "/tokens/"+id, "", bearer(text)...)
	a.want(409, "*", "POST", "/tokens", `{"name":"conf","scopes":["admin"]}`, bearer(text)...)
	if list := a.want(200, "*", "GET", "/tokens", "", bearer(text)...); !strings.Contains(list, `"configured":true`) {
		t.Errorf("got %s", list)
	}
}

func TestProfilesAreForTheAdminAndForThoseWhoKnowOurName(t *testing.T) {
	profiles := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1")
		_, _ = io.WriteString(w, "p")
	})
	a := start(t, httpapi.Options{Profiles: profiles})
	a.want(200, "p", "GET", "/debug/pprof/heap", "")
	a.want(403, "*", "GET", "/debug/pprof/heap", "", "Host", "evil.example")
	root := a.token("", adminToken)
	ops := a.token(root, `{"name":"ops","scopes":["operate","read"]}`)
	a.want(401, "*", "GET", "/debug/pprof/heap", "")
	a.want(403, "*", "GET", "/debug/pprof/heap", "", bearer(ops)...)
	a.want(200, "p", "GET", "/debug/pprof/heap", "", bearer(root)...)
}

// No answer lets a page of another site read it, and no preflight is granted.
func TestNothingIsSharedWithOtherSites(t *testing.T) {
	a := start(t, httpapi.Options{Live: httpapi.NewLive(httpapi.Changeable{AllowHosts: []string{"queue.example"}})})
	for _, origin := range []string{"", "https://queue.example", "https://evil.example"} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			header := []string{}
			if origin != "" {
				header = []string{"Origin", origin, "Access-Control-Request-Method", "POST"}
			}
			got := a.call(method, "/jobs", "", header...)
			for name := range got.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s from %q: the answer has %s", method, origin, name)
				}
			}
			if method == "OPTIONS" && got.status/100 == 2 {
				t.Errorf("a preflight from %q is granted: %d", origin, got.status)
			}
		}
	}
}
