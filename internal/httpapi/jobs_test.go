package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

func TestAJobGoesInAndOut(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		added := a.want(201, "*", "POST", "/jobs", `{"type":"mail","queue":"default","payload":{"n":9007199254740993,"f":1.0}}`)
		j := object(t, added)
		id := j["id"].(string)
		const head = `{"id":"%s","type":"mail","queue":"default","priority":32768,"status":"%s",`
		ready := fmt.Sprintf(head+`"ready_at":%s,"attempts":0,"duplicate":false,"folded":false}`, id, "ready", j["ready_at"])
		if added != ready {
			t.Errorf(" got %s\nwant %s", added, ready)
		}
		a.want(200, fmt.Sprintf(head+`"payload":{"n":9007199254740993,"f":1.0},"ready_at":%s,"attempts":0}`, id, "ready", j["ready_at"]),
			"GET", "/jobs/"+id, "")
		a.want(200, `{"queues":["default"]}`, "GET", "/queues", "")

		s := a.take("")
		line := s.next()
		if line["id"] != id || line["status"] != "in_flight" || line["lease"] != nil || line["dequeued_at"] == nil ||
			line["payload"].(map[string]any)["n"] != json.Number("9007199254740993") {
			t.Errorf("taken as %v", line)
		}
		a.want(204, "", "POST", "/jobs/"+id+"/success", "")
		a.want(404, `{"error":"job not found in in-flight set","code":"not_found"}`, "POST", "/jobs/"+id+"/success", "")
		a.want(404, "*", "GET", "/jobs/"+id, "") // without retention it is gone
	})
}

func TestSuccessInBulk(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for range 4 {
			a.put("")
		}
		s := a.take("?prefetch=4")
		for range 4 {
			s.next()
		}
		ids := func(list ...string) string { return `{"ids":["` + strings.Join(list, `","`) + `"]}` }
		a.want(204, "", "POST", "/jobs/success", ids(a.ids[0], a.ids[1], a.ids[0]))
		a.want(422, `{"not_found":["`+a.ids[0]+`","x"]}`, "POST", "/jobs/success", ids(a.ids[0], a.ids[2], "x"))
		if got := a.status(a.ids[2]); got != "404" {
			t.Errorf("the id that was there is %s", got)
		}
		a.want(200, `{"count":1}`, "GET", "/jobs/count", "")
	})
}

func TestAFailureIsTriedAgainOrIsTheEnd(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.put(`,"backoff":{"exponent":2.0,"base_ms":600000,"jitter_ms":0}`)
	a.put(`,"retry_limit":0`)
	a.put("")
	a.put(`,"retry_limit":0,"retention":{"dead_ms":0}`)
	s := a.take("?prefetch=9")
	for range 4 {
		s.next()
	}
	fail := func(i int, body string) map[string]any {
		return object(t, a.want(200, "*", "POST", "/jobs/"+a.ids[i]+"/failure", body))
	}
	j := fail(0, `{"message":"m","error_type":"E","backtrace":"at f()"}`)
	if j["status"] != "scheduled" || j["attempts"] != json.Number("1") || j["failed_at"] == nil || j["payload"] != nil || j["duplicate"] != nil ||
		j["backoff"].(map[string]any)["base_ms"] != json.Number("600000") {
		t.Errorf("failed as %v", j)
	}
	if j := fail(1, `{"message":"m"}`); j["status"] != "dead" || j["reason"] != "exhausted" || j["purge_at"] == nil {
		t.Errorf("failed at its limit as %v", j)
	}
	if j := fail(2, `{"message":"m","kill":true}`); j["status"] != "dead" || j["reason"] != "killed" {
		t.Errorf("killed as %v", j)
	}
	if j := fail(3, `{"message":"m"}`); j["id"] != a.ids[3] || j["status"] != "dead" {
		t.Errorf("dead without retention as %v", j)
	}
	got := object(t, a.want(200, "*", "GET", "/jobs/"+a.ids[0]+"/errors", ""))
	one := got["errors"].([]any)[0].(map[string]any)
	if one["attempt"] != json.Number("1") || one["message"] != "m" || one["error_type"] != "E" || one["backtrace"] != "at f()" ||
		one["dequeued_at"] == nil || one["failed_at"] == nil || one["worker"] != nil {
		t.Errorf("the error is %v", one)
	}
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	single := object(t, a.want(200, "*", "GET", "/jobs/"+a.ids[0]+"/errors/1", ""))
	if again, _ := json.Marshal(single); string(again) != string(text) {
		t.Errorf("alone it is %s", again)
	}
	for _, n := range []string{"0", "2", "4294967295"} {
		a.want(404, `{"error":"error record not found","code":"not_found"}`, "GET", "/jobs/"+a.ids[0]+"/errors/"+n, "")
	}
}

func TestErrorsComeInPages(t *testing.T) {
	a := start(t, httpapi.Options{})
	id := a.put("")
	s := a.take("")
	for i := range 5 {
		s.next()
		a.want(200, "*", "POST", "/jobs/"+id+"/failure", fmt.Sprintf(`{"message":"m%d","retry_at":0}`, i+1))
	}
	path := "/jobs/" + id + "/errors"
	walk := func(from, link string) (seen []string) {
		for path := from; path != ""; {
			got := object(t, a.want(200, "*", "GET", path, ""))
			for _, e := range got["errors"].([]any) {
				seen = append(seen, e.(map[string]any)["message"].(string))
			}
			seen = append(seen, "|")
			path, _ = got["pages"].(map[string]any)[link].(string)
			link = "next" // what prev names goes on the other way
		}
		return seen
	}
	for _, c := range []struct{ from, link, want string }{
		{path + "?limit=2", "next", "m1 m2 | m3 m4 | m5 |"},
		{path + "?limit=2&order=desc", "next", "m5 m4 | m3 m2 | m1 |"},
		{path + "?limit=2&from=4", "prev", "m5 | m4 m3 | m2 m1 |"},
		{path + "?limit=2&order=desc&from=2", "prev", "m1 | m2 m3 | m4 m5 |"},
	} {
		if got := strings.Join(walk(c.from, c.link), " "); got != c.want {
			t.Errorf("%s by %s\n got %s\nwant %s", c.from, c.link, got, c.want)
		}
	}
}

func TestListsFilterAndPage(t *testing.T) {
	a := start(t, httpapi.Options{})
	var ids []string
	add := func(queue, kind, more string) {
		got := a.want(201, "*", "POST", "/jobs", `{"type":"`+kind+`","queue":"`+queue+`","payload":{"a":1}`+more+`}`)
		ids = append(ids, object(t, got)["id"].(string))
	}
	add("q", "a", `,"priority":1`)
	add("q", "b", `,"priority":2`)
	add("a&b %", "a", "")
	add("q", "a", `,"ready_at":99999999999999`)
	add("q", "a", `,"priority":3`)
	walk := func(path, link string) (seen string) {
		for path != "" {
			got := object(t, a.want(200, "*", "GET", path, ""))
			for _, j := range got["jobs"].([]any) {
				j := j.(map[string]any)
				if j["payload"] == nil {
					t.Errorf("%s: a job has no payload: %v", path, j)
				}
				seen += fmt.Sprint(slices.Index(ids, j["id"].(string)))
			}
			seen += "|"
			path, _ = got["pages"].(map[string]any)[link].(string)
			link = "next" // what prev names goes on the other way
		}
		return seen
	}
	for _, c := range []struct{ path, link, want string }{
		{"/jobs", "next", "01234|"},
		{"/jobs?limit=2", "next", "01|23|4|"},
		{"/jobs?limit=2&order=desc", "next", "43|21|0|"},
		{"/jobs?limit=2&from=" + ids[3], "prev", "4|32|10|"},
		{"/jobs?limit=2&order=desc&from=" + ids[1], "prev", "0|12|34|"},
		{"/jobs?queue=a%26b+%25", "next", "2|"},
		{"/jobs?queue=a%26b+%25,q&limit=2&type=a", "next", "02|34|"},
		{"/jobs?status=scheduled", "next", "3|"},
		{"/jobs?status=scheduled,ready&queue=q", "next", "0134|"},
		{"/jobs?status=dead", "next", "|"},
		{"/jobs?type=b", "next", "1|"},
		{"/jobs?id=" + ids[4] + "," + ids[0], "next", "04|"},
		{"/jobs?id=" + noID, "next", "|"},
		{"/jobs?priority=1..2", "next", "01|"},
		{"/jobs?priority=2..&limit=1", "next", "1|2|3|4|"},
		{"/jobs?priority=..3&limit=2&from=" + ids[1], "prev", "4|10|"},
		{"/jobs?ready_at=99999999999999", "next", "3|"},
		{"/jobs?attempts=1..", "next", "|"},
	} {
		if got := walk(c.path, c.link); got != c.want {
			t.Errorf("%s by %s: got %s, want %s", c.path, c.link, got, c.want)
		}
	}
	for query, n := range map[string]int{"": 5, "queue=q": 4, "queue=q&type=a": 3, "priority=..2": 2, "status=ready&priority=32768": 1, "type=": 5} {
		a.want(200, fmt.Sprintf(`{"count":%d}`, n), "GET", "/jobs/count?"+query, "")
	}
	a.want(204, "", "DELETE", "/jobs/"+ids[0], "")
	a.want(404, "*", "DELETE", "/jobs/"+ids[0], "")
	a.want(200, `{"queues":["a&b %","q"]}`, "GET", "/queues", "")
}

func TestAnIdempotencyKeyMakesASecondSendingHarmless(t *testing.T) {
	a := start(t, httpapi.Options{})
	const body = `{"type":"t","queue":"q","payload":1}`
	first := object(t, a.want(201, "*", "POST", "/jobs", body, "Idempotency-Key", "k"))
	again := object(t, a.want(200, "*", "POST", "/jobs", body, "Idempotency-Key", "k"))
	if again["id"] != first["id"] || again["duplicate"] != true || first["duplicate"] != false {
		t.Errorf("sent again: %v, then %v", first, again)
	}
	got := object(t, a.want(409, "*", "POST", "/jobs", `{"type":"t","queue":"q","payload":2,"idempotency_key":"k"}`))
	if got["code"] != "exists" {
		t.Errorf("other content: %v", got)
	}
	bulk := func(keys ...string) string {
		var list []string
		for _, k := range keys {
			list = append(list, `{"type":"t","queue":"q","payload":1,"idempotency_key":"`+k+`"}`)
		}
		return `{"jobs":[` + strings.Join(list, ",") + `]}`
	}
	a.want(201, "*", "POST", "/jobs/bulk", bulk("k", "l"))
	a.want(200, "*", "POST", "/jobs/bulk", bulk("k", "l", "l"))
	a.want(201, `{"jobs":[]}`, "POST", "/jobs/bulk", `{"jobs":[]}`)
	a.want(400, "*", "POST", "/jobs/bulk", bulk("k"), "Idempotency-Key", "k")
	a.want(204, "", "DELETE", "/jobs/"+first["id"].(string), "")
	gone := object(t, a.want(200, "*", "POST", "/jobs", body, "Idempotency-Key", "k"))
	if gone["id"] != first["id"] || gone["gone"] != true || gone["type"] != "t" {
		t.Errorf("after its job is gone: %v", gone)
	}
}

func TestABulkIsTakenWholeOrNotAtAll(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		var list []string
		for i := range 600 {
			list = append(list, fmt.Sprintf(`{"type":"t","queue":"q","payload":%d}`, i))
		}
		got := object(t, a.want(201, "*", "POST", "/jobs/bulk", `{"jobs":[`+strings.Join(list, ",")+`]}`))
		last := ""
		for _, j := range got["jobs"].([]any) {
			id := j.(map[string]any)["id"].(string)
			if id <= last {
				t.Fatalf("id %s after %s", id, last)
			}
			last = id
		}
		a.want(400, "*", "POST", "/jobs/bulk", `{"jobs":[`+strings.Join(list, ",")+`,{"type":"t","queue":"q"}]}`)
		a.want(200, `{"count":600}`, "GET", "/jobs/count", "")
	})
}

func TestQueueSettingsChangeByName(t *testing.T) {
	a := start(t, httpapi.Options{})
	const defaults = `"order":"none","concurrency":0,"on_dead":"skip","front_order":"by_seq","late_ok":"until_terminal",` +
		`"require_token":false,"non_idempotent":false,"max_jobs":0,"max_bytes":0,"on_full":"reject","run_timeout_ms":0,` +
		`"start_timeout_ms":0,"retention":{}`
	queue := func(body string) map[string]any { return object(t, a.want(200, "*", "PATCH", "/queues/q", body)) }
	got := a.want(200, "*", "GET", "/queues/q", "")
	got, _, _ = strings.Cut(got, `,"rates":`) // rates_test.go
	if got != `{"name":"q","paused":false,`+defaults+`,"jobs":{"scheduled":0,"ready":0,"in_flight":0,"completed":0,"dead":0},"bytes":0` {
		t.Errorf("a queue nobody used is %s", got)
	}
	a.put(`,"ready_at":99999999999999`)
	a.put(``)
	q := queue(`{"paused":true,"max_jobs":2,"retry":{"limit":3},"retention":{"completed_ms":5},"order":"strict"}`)
	if q["paused"] != true || q["max_jobs"] != json.Number("2") || q["order"] != "strict" ||
		q["retry"].(map[string]any)["limit"] != json.Number("3") || q["retention"].(map[string]any)["completed_ms"] != json.Number("5") ||
		q["jobs"].(map[string]any)["ready"] != json.Number("1") || q["jobs"].(map[string]any)["scheduled"] != json.Number("1") ||
		q["bytes"] != json.Number("8") {
		t.Errorf("changed to %v", q)
	}
	full := a.call("POST", "/jobs", `{"type":"t","queue":"q","payload":1}`)
	if full.status != 429 || full.header.Get("Retry-After") != "1" || object(t, full.body)["code"] != "over_limit" {
		t.Errorf("a full queue answers %d %s", full.status, full.body)
	}
	q = queue(`{"retention":{"dead_ms":7},"max_jobs":null}`)
	if kept := q["retention"].(map[string]any); q["paused"] != true || q["max_jobs"] != json.Number("0") ||
		kept["completed_ms"] != json.Number("5") || kept["dead_ms"] != json.Number("7") {
		t.Errorf("changed to %v", q)
	}
	q = queue(`{"retention":null,"retry":null,"paused":null,"order":null,"late_ok":"never"}`)
	if len(q["retention"].(map[string]any)) > 0 || q["retry"] != nil || q["paused"] != false || q["order"] != "none" || q["late_ok"] != "never" {
		t.Errorf("changed to %v", q)
	}
	for body, text := range map[string]string{
		`{"pause":true}`:                                          "pause is not known here",
		`{"retention":{"x":1}}`:                                   "retention.x is not known here",
		`{"paused":1}`:                                            "paused must be true or false",
		`{"order":"fifo"}`:                                        "order must be one of none start strict",
		`{"max_jobs":-1}`:                                         "max_jobs must be a whole number from 0",
		`{"max_jobs":1.5}`:                                        "max_jobs must be a whole number",
		`{"retention":{"dead_ms":-2}}`:                            "retention.dead_ms must be a whole number",
		`{"retry":{"limit":-1}}`:                                  "retry is refused: ",
		`{"late_ok":"maybe"}`:                                     "late_ok must be one of until_terminal never",
		`{"order":"strict","concurrency":2}`:                      "order strict means concurrency 1",
		`{"paused":true,"paused":true}`:                           "paused is there twice",
		`{"breaker":{"window":300,"probes":-1}}`:                  "breaker.window must be a whole number from 1 to 256\nbreaker.probes must be",
		`{"group_rate":{"per_second":-1}}`:                        "group_rate.per_second must be a number from 0",
		`{"retry_budget":{"retry_share":0,"floor_per_second":0}}`: "retry_budget must leave some retries",
		`{"fair_share":{"weights":{"a":2000}}}`:                   "fair_share.weights[\"a\"] must be a whole number from 1 to 1000",
		`{"max_running":-1}`:                                      "max_running must be a whole number from 0",
		`{"breaker":{"ratio":1}}`:                                 "breaker.ratio is not known here",
		`{"rate":{"per_second":"5"}}`:                             "rate.per_second must be a number",
		`[]`:                                                      "the body must be an object",
		`{"x":"` + strings.Repeat("x", 1<<20) + `"}`:              "the body of this call is larger than",
	} {
		got := a.call("PATCH", "/queues/q", body)
		text2, _ := object(t, got.body)["error"].(string)
		if got.status/100 != 4 || !strings.HasPrefix(text2, text) {
			t.Errorf("PATCH %.60s\n got %d %s\nwant %s", body, got.status, got.body, text)
		}
	}
	if q := object(t, a.want(200, "*", "GET", "/queues/q", "")); q["paused"] != false {
		t.Errorf("refused changes left %v", q)
	}
}

func TestSettleByToken(t *testing.T) {
	a := start(t, httpapi.Options{})
	for range 5 {
		a.put("")
	}
	got := object(t, a.want(200, "*", "POST", "/jobs/lease", `{"queues":["q"],"max":4,"lease_ms":60000,"worker":"w"}`))
	tokens := map[string]string{}
	for _, j := range got["jobs"].([]any) {
		j := j.(map[string]any)
		if j["lease_until"] == nil || j["status"] != "in_flight" {
			t.Errorf("leased as %v", j)
		}
		tokens[j["id"].(string)] = j["lease"].(string)
	}
	if len(tokens) != 4 {
		t.Fatalf("leased %v", got)
	}
	entry := func(i int, more string) string {
		return `{"id":"` + a.ids[i] + `","lease":"` + tokens[a.ids[i]] + `"` + more + `}`
	}
	a.want(422, "*", "POST", "/jobs/"+a.ids[0]+"/success", "") // not without its token
	missing := object(t, a.want(422, "*", "POST", "/jobs/success", `{"ids":["`+a.ids[0]+`"]}`))
	if missing["code"] != "token_needed" || len(missing["not_found"].([]any)) != 1 {
		t.Errorf("without a token: %v", missing)
	}
	a.want(200, `{"verdicts":[{"id":"`+a.ids[0]+`","status":"in_flight"},{"id":"`+noID+`","code":"not_found","error":"job `+noID+` does not exist any more"}]}`,
		"POST", "/jobs/extend", `{"ms":90000,"leases":[`+entry(0, `,"started":true`)+`,{"id":"`+noID+`","lease":"`+tokens[a.ids[0]]+`"}]}`)
	verdicts := object(t, a.want(200, "*", "POST", "/jobs/settle", "["+strings.Join([]string{
		entry(0, `,"outcome":"ok"`),
		entry(0, `,"outcome":"ok"`), // the same again is the same answer, or gone
		entry(1, `,"outcome":"retry","error":{"message":"m","status":503},"retry_in_ms":3600000`),
		entry(2, `,"outcome":"dead","error":{"message":"m"}`),
		entry(3, `,"outcome":"release","delay_ms":3600000`),
		entry(3, `,"outcome":"ok"`),
	}, ",")+"]"))["verdicts"].([]any)
	for i, want := range []string{"completed", "", "scheduled", "dead", "scheduled", "superseded"} {
		v := verdicts[i].(map[string]any)
		if want != "" && v["status"] != want && v["code"] != want {
			t.Errorf("verdict %d is %v, want %s", i, v, want)
		}
	}
	one := object(t, a.want(200, "*", "GET", "/jobs/"+a.ids[1]+"/errors/1", ""))
	if one["status"] != json.Number("503") || one["worker"] != "w" {
		t.Errorf("the error is %v", one)
	}
	a.want(200, `{"verdicts":[]}`, "POST", "/jobs/settle", "[]")
	a.want(200, "*", "POST", "/jobs/lease", `{"max":9}`)
	a.want(200, `{"jobs":[]}`, "POST", "/jobs/lease", `{}`) // nothing is left
}

func TestAWaitingLeaseGetsTheNextJob(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		got := make(chan answer, 1)
		resp := a.request("POST", "/jobs/lease", `{"wait_ms":60000}`)
		go func() { got <- a.do(resp) }()
		id := a.put("")
		if leased := <-got; leased.status != http.StatusOK || !strings.Contains(leased.body, id) {
			t.Errorf("got %d %s", leased.status, leased.body)
		}
	})
}
