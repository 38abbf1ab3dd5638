package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

const farTime = "99999999999999"

// patch changes a job and returns it.
func (a *api) patch(id, body string) map[string]any {
	a.t.Helper()
	return object(a.t, a.want(200, "*", "PATCH", "/jobs/"+id, body))
}

func TestAPatchChangesWhatItNames(t *testing.T) { // reference 1.14
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		id := a.enqueue("q", `{"a":1}`, `,"priority":7,"retry_limit":3,"retention":{"completed_ms":5},"expires_at":`+farTime)
		for _, c := range []struct{ body, field, want string }{
			{`{}`, "priority", "7"},
			{`{"unheard_of":1}`, "priority", "7"},
			{`{"priority":0}`, "priority", "0"},
			{`{"priority":65535}`, "priority", "65535"},
			{`{"queue":"other"}`, "queue", "other"},
			{`{"retry_limit":0}`, "retry_limit", "0"},
			{`{"backoff":{"exponent":2,"base_ms":1,"jitter_ms":0}}`, "backoff", "map[base_ms:1 exponent:2 jitter_ms:0]"},
			{`{"priority":1}`, "backoff", "map[base_ms:1 exponent:2 jitter_ms:0]"},
			{`{"backoff":null}`, "backoff", "<nil>"},
			{`{"backoff":null}`, "retry_limit", "0"},
			{`{"retry_limit":null}`, "retry_limit", "<nil>"},
			{`{"retention":{"dead_ms":6}}`, "retention", "map[completed_ms:5 dead_ms:6]"},
			{`{"retention":{"completed_ms":null}}`, "retention", "map[dead_ms:6]"},
			{`{"retention":{"dead_ms":null}}`, "retention", "<nil>"},
			{`{"retention":{"completed_ms":0,"dead_ms":0}}`, "retention", "map[completed_ms:0 dead_ms:0]"},
			{`{"retention":null}`, "retention", "<nil>"},
			{`{"retry":{"limit":9,"max_age":"1h"}}`, "retry", "map[limit:9 max_age:1h]"},
			{`{"retry":null}`, "retry", "<nil>"},
			{`{"expires_at":99999999999998}`, "expires_at", "99999999999998"},
			{`{"expires_at":null}`, "expires_at", "<nil>"},
			{`{"run_timeout_ms":5,"start_timeout_ms":6}`, "run_timeout_ms", "5"},
			{`{"run_timeout_ms":null}`, "start_timeout_ms", "6"},
			{`{"ready_at":` + farTime + `}`, "status", "scheduled"},
			{`{"priority":3}`, "status", "scheduled"},
			{`{"ready_at":1}`, "status", "ready"},
			{`{"ready_at":null}`, "ready_at", "1"}, // of a job that is ready it means nothing
			{`{"ready_at":` + farTime + `}`, "ready_at", farTime},
			{`{"ready_at":null}`, "status", "ready"},
		} {
			j := a.patch(id, c.body)
			if got := fmt.Sprint(j[c.field]); got != c.want || j["payload"] != nil || j["duplicate"] != nil {
				t.Errorf("%s makes %s %s, want %s: %v", c.body, c.field, got, c.want, j)
			}
		}
		if j := object(t, a.want(200, "*", "GET", "/jobs/"+id, "")); fmt.Sprint(j["payload"]) != "map[a:1]" {
			t.Errorf("in the end it is %v", j)
		}
	})
}

func TestAPatchIsSeenByTheNextTake(t *testing.T) {
	a := start(t, httpapi.Options{})
	first, second, later := a.enqueue("q", "1", ""), a.enqueue("q", "2", ""), a.enqueue("q", "3", `,"ready_at":`+farTime)
	a.patch(second, `{"priority":1}`)
	a.patch(first, `{"queue":"other"}`)
	s := a.take("?queue=q&prefetch=9")
	if got := s.next()["id"]; got != second {
		t.Errorf("first came %v", got)
	}
	a.patch(later, `{"ready_at":null}`)
	if got := s.next()["id"]; got != later {
		t.Errorf("then came %v", got)
	}
	moved := a.take("?queue=other")
	if got := moved.next()["id"]; got != first {
		t.Errorf("in the other queue came %v", got)
	}
	// a job in flight keeps running; what is patched counts when it comes back
	if j := a.patch(first, `{"ready_at":`+farTime+`,"priority":9,"queue":"q"}`); j["status"] != "in_flight" || j["queue"] != "q" {
		t.Errorf("in flight it is %v", j)
	}
	a.want(204, "", "POST", "/jobs/"+first+"/success", "")
}

func TestAPatchRefusesByName(t *testing.T) {
	a := start(t, httpapi.Options{})
	id := a.enqueue("q", `1`, "")
	before := a.want(200, "*", "GET", "/jobs/"+id, "")
	for _, c := range []struct{ body, says string }{
		{`{"queue":null}`, "queue "},
		{`{"queue":""}`, "queue must not be empty"},
		{`{"queue":"a,b"}`, "queue must not contain ','"},
		{`{"queue":"a*"}`, "queue must not contain '*' (reserved)"},
		{`{"queue":5}`, "queue must be a string"},
		{`{"priority":null}`, "priority "},
		{`{"priority":65536}`, "priority "},
		{`{"priority":-1}`, "priority "},
		{`{"priority":"1"}`, "priority "},
		{`{"ready_at":-1}`, "ready_at "},
		{`{"ready_at":"soon"}`, "ready_at "},
		{`{"retry_limit":-1}`, "retry_limit "},
		{`{"backoff":{"exponent":2}}`, "backoff.base_ms is missing"},
		{`{"backoff":5}`, "backoff "},
		{`{"retention":5}`, "retention "},
		{`{"retention":{"dead_ms":-1}}`, "retention.dead_ms "},
		{`{"retry":{"limit":3},"retry_limit":3}`, "retry cannot be given together"},
		{`{"retry":{"colour":1}}`, "retry "},
		{`{"expires_at":0}`, "expires_at "},
		{`{"expires_at":5,"ready_at":5}`, "expires_at must be later"},
		{`{"run_timeout_ms":0}`, "run_timeout_ms "},
		{`{"payload":2}`, "payload of a job cannot be changed"},
		{`{"type":"u"}`, "type of a job cannot be changed"},
		{`{"unique_key":"k"}`, "unique_key of a job"},
		{`{"batch":null}`, "batch of a job"},
		{`{"group":"g"}`, "group of a job"},
		{`{"priority":1,"payload":2}`, "payload of a job"},
		{`null`, "the body"},
		{`[]`, "the body"},
	} {
		for _, path := range []string{"/jobs/" + id, "/jobs?queue=q"} {
			got := object(t, a.want(422, "*", "PATCH", path, c.body))
			if text := got["error"].(string); !strings.HasPrefix(text, c.says) {
				t.Errorf("%s: %s, want it to begin with %s", c.body, text, c.says)
			}
		}
	}
	a.want(400, "*", "PATCH", "/jobs/"+id, `{"priority":`)
	a.want(400, "*", "PATCH", "/jobs/"+id, ``)
	a.want(404, `{"error":"job not found","code":"not_found"}`, "PATCH", "/jobs/"+noID, `{}`)
	a.want(404, `{"error":"job not found","code":"not_found"}`, "PATCH", "/jobs/x", `{}`)
	if after := a.want(200, "*", "GET", "/jobs/"+id, ""); after != before {
		t.Errorf("after refusals it is %s", after)
	}
}

// Who moves many jobs and none of them can be moved is told why.
func TestAPatchOfManySaysWhyItRefuses(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PATCH", "/queues/to", `{"order":"strict"}`)
	first := a.enqueue("q", "1", `,"group":"g"`)
	a.enqueue("q", "2", `,"group":"g"`)
	a.want(200, `{"patched":0,"refused":2,"why":"job `+first+`: job `+first+` has the group \"g\", and groups of queue \"to\" are strictly ordered; it cannot join one"}`,
		"PATCH", "/jobs?queue=q", `{"queue":"to"}`)
}

func TestWhatIsOverIsNotPatched(t *testing.T) {
	a := start(t, httpapi.Options{})
	done := a.enqueue("q", "1", `,"retention":{"completed_ms":60000}`)
	dead := a.enqueue("q", "2", "")
	s := a.take("?prefetch=9")
	s.next()
	s.next()
	open := a.enqueue("other", "3", `,"ready_at":`+farTime)
	a.want(204, "", "POST", "/jobs/"+done+"/success", "")
	a.want(200, "*", "POST", "/jobs/"+dead+"/failure", `{"message":"m","kill":true}`)
	a.want(422, `{"error":"cannot patch job `+done+` in completed status","code":"wrong_state"}`, "PATCH", "/jobs/"+done, `{"priority":1}`)
	a.want(422, `{"error":"cannot patch job `+dead+` in dead status","code":"wrong_state"}`, "PATCH", "/jobs/"+dead, `{}`)
	a.want(200, `{"patched":1}`, "PATCH", "/jobs", `{"priority":1}`)
	if j := object(t, a.want(200, "*", "GET", "/jobs/"+open, "")); fmt.Sprint(j["priority"]) != "1" {
		t.Errorf("the open one is %v", j)
	}
	for _, status := range []string{"dead", "completed", "ready,dead"} {
		got := object(t, a.want(422, "*", "PATCH", "/jobs?status="+status, `{"priority":2}`))
		if !strings.HasPrefix(got["error"].(string), "cannot patch jobs in ") {
			t.Errorf("%s: %v", status, got)
		}
	}
}

func TestPatchAndDeleteTakeTheFiltersOfAList(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		var ids []string
		for i := range 8 {
			ids = append(ids, a.enqueue([]string{"q", "r&s"}[i%2], fmt.Sprintf(`{"n":%d}`, i), fmt.Sprintf(`,"priority":%d`, i)))
		}
		filter := func(text string) string { return "filter=" + url.QueryEscape(text) }
		for _, c := range []struct {
			query string
			n     int
		}{
			{"?queue=r%26s", 4},
			{"?queue=none", 0},
			{"?priority=2..4", 3},
			{"?id=" + ids[0] + "," + ids[5], 2},
			{"?type=t&status=ready", 8},
			{"?" + filter(".n > 5"), 2},
			{"?queue=q&" + filter(".n > 5"), 1},
			{"?attempts=1..", 0},
			{"", 8},
			{"?", 8},
		} {
			a.want(200, fmt.Sprintf(`{"patched":%d}`, c.n), "PATCH", "/jobs"+c.query, `{"retry_limit":4}`)
			a.want(200, fmt.Sprintf(`{"count":%d}`, c.n), "GET", "/jobs/count"+c.query, "")
		}
		a.want(200, `{"patched":4}`, "PATCH", "/jobs?queue=r%26s", `{"queue":"q"}`)
		a.want(200, `{"queues":["q"]}`, "GET", "/queues", "")
		a.want(200, `{"deleted":1}`, "DELETE", "/jobs?priority=3", "")
		a.want(200, `{"deleted":2}`, "DELETE", "/jobs?"+filter(".n == 0 or .n == 7"), "")
		a.want(200, `{"deleted":0}`, "DELETE", "/jobs?queue=none", "")
		a.want(200, `{"deleted":5}`, "DELETE", "/jobs", "")
		a.want(200, `{"deleted":0}`, "DELETE", "/jobs?all=true", "")
		a.want(200, `{"count":0}`, "GET", "/jobs/count", "")
	})
}

func TestCallsOverManyJobsRefuseEmptyFilters(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.put("")
	for _, query := range []string{
		"queue=", "queue=,", "status=", "type=", "id=", "priority=", "ready_at=", "attempts=", "filter=", "queue=q&type=", "nonsense=1", "order=asc", "limit=5",
		"from=" + noID, "status=up", "id=x", "priority=5..1", "filter=.a%7C", "queue=a&queue=b", "all=yes", "all=", "all=true&queue=q",
	} {
		got := object(t, a.want(400, "*", "DELETE", "/jobs?"+query, ""))
		name, _, _ := strings.Cut(query[strings.LastIndexByte(query, '&')+1:], "=")
		if query == "all=true&queue=q" {
			name = "all"
		}
		if !strings.Contains(got["error"].(string), name) {
			t.Errorf("%s: %v", query, got)
		}
		if query != "all=true&queue=q" {
			a.want(400, "*", "PATCH", "/jobs?"+query, `{"priority":1}`)
		}
	}
	a.want(200, `{"count":1}`, "GET", "/jobs/count", "")
}

func TestDeletingManyTakesThemFromTheirHolders(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.put("")
	s := a.take("?prefetch=1")
	held := s.next()["id"].(string)
	waiting := a.put("")
	a.want(200, `{"deleted":1}`, "DELETE", "/jobs?status=in_flight", "")
	a.want(404, "*", "POST", "/jobs/"+held+"/success", "")
	if got := s.next()["id"]; got != waiting { // the room is free again
		t.Errorf("then came %v", got)
	}
	a.want(404, "*", "POST", "/jobs/"+held+"/failure", `{"message":"m"}`)
}

func TestResetLeavesNothing(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for i := range 7 {
			a.enqueue(fmt.Sprint("q", i%3), "1", fmt.Sprintf(`,"idempotency_key":"k%d"`, i))
		}
		s := a.take("?queue=q1")
		id := s.next()["id"].(string)
		a.want(204, "", "POST", "/reset", `{}`)
		a.want(200, `{"queues":[]}`, "GET", "/queues", "")
		a.want(200, `{"count":0}`, "GET", "/jobs/count", "")
		a.want(404, "*", "POST", "/jobs/"+id+"/success", "")
		a.enqueue("q0", "1", `,"idempotency_key":"k0"`) // the key is free, too
		a.want(204, "", "POST", "/reset", ``)
		a.want(204, "", "POST", "/reset", `not JSON at all`)
		a.want(400, "*", "POST", "/reset?hard=true", ``)
	})
}

func TestAGuardWantsItSaid(t *testing.T) { // operations.md, Security
	a := start(t, httpapi.Options{Guard: true})
	for _, path := range []string{"/jobs", "/jobs?", "/jobs?priority=..", "/jobs?attempts=0..&ready_at=.."} {
		a.put("")
		got := object(t, a.want(400, "*", "DELETE", path, ""))
		if !strings.Contains(got["error"].(string), "?all=true") {
			t.Errorf("%s: %v", path, got)
		}
	}
	a.want(400, "*", "POST", "/reset", "")
	a.want(200, `{"count":4}`, "GET", "/jobs/count", "")
	a.want(200, `{"deleted":4}`, "DELETE", "/jobs?queue=q", "")
	a.put("")
	a.want(200, `{"deleted":1}`, "DELETE", "/jobs?all=true", "")
	a.put("")
	a.want(204, "", "POST", "/reset?all=true", "")
	a.want(200, `{"count":0}`, "GET", "/jobs/count", "")

	a.want(200, "*", "PUT", "/crons/g", `{"entries":[]}`)
	a.want(400, "*", "DELETE", "/crons", "")
	a.want(400, `{"error":"all can only be true","code":"invalid"}`, "DELETE", "/crons?all=yes", "")
	a.want(200, `{"crons":["g"]}`, "GET", "/crons", "")
	a.want(200, `{"deleted":1}`, "DELETE", "/crons?all=true", "")
}

func TestCallsOverManyJobsAreInTheAuditLog(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.put("")
	a.put("")
	a.want(200, `{"patched":2}`, "PATCH", "/jobs?queue=q&priority=..9999999", `{"priority":3}`, "Reprise-Actor", "ann")
	a.want(200, `{"deleted":0}`, "DELETE", "/jobs?queue=none", "")
	a.want(200, `{"deleted":2}`, "DELETE", "/jobs", "", "Reprise-Actor", "bob")
	a.put("")
	a.want(204, "", "POST", "/reset", "", "Reprise-Actor", "cid")
	var got []string
	for _, e := range object(t, a.want(200, "*", "GET", "/audit", ""))["entries"].([]any) {
		e := e.(map[string]any)
		got = append(got, fmt.Sprint(e["by"], " ", e["action"], " ", e["subject"], " ", e["count"]))
	}
	want := "[cid reset all 1 bob delete jobs all 2 ann patch jobs queue=q&priority=..9999999 2]"
	if fmt.Sprint(got) != want {
		t.Errorf("the log is %v, want %s", got, want)
	}
}

func TestManyAreCancelledByAFilter(t *testing.T) {
	bothProtocols(t, httpapi.Options{Guard: true}, func(t *testing.T, a *api) {
		for range 3 {
			a.enqueue("q", `{"to":"ann"}`, "")
		}
		a.enqueue("q", `{"to":"bob"}`, "")
		ann := "/jobs/cancel?queue=q&filter=" + url.QueryEscape(`.to == "ann"`)
		dry := object(t, a.want(200, "*", "POST", ann, `{"dry_run":true}`))
		if list, _ := dry["sample"].([]any); fmt.Sprint(dry["count"]) != "3" || len(list) != 3 {
			t.Errorf("a dry run says %v", dry)
		}
		a.want(200, `{"count":4}`, "GET", "/jobs/count?status=ready", "")
		a.want(200, `{"cancelled":3}`, "POST", ann, `{"reason":"withdrawn"}`)
		a.want(200, `{"cancelled":0}`, "POST", ann, "")
		a.want(200, `{"count":3}`, "GET", "/jobs/count?reason=cancelled", "")
		a.want(200, `{"count":3}`, "GET", "/jobs/count?status=dead&reason=cancelled,killed", "")
		a.want(200, `{"count":0}`, "GET", "/jobs/count?reason=killed,exhausted", "")
		a.want(400, "*", "POST", "/jobs/cancel", "") // it is guarded
		a.want(200, "*", "POST", "/jobs/cancel", `{"dry_run":true}`)
		a.want(400, "*", "GET", "/jobs?reason=bored", "")
		a.want(422, "*", "POST", "/jobs/cancel?status=completed", "")
		a.want(422, "*", "POST", "/jobs/cancel?reason=killed", "")
		if jobs := object(t, a.want(200, "*", "GET", "/queues/q", ""))["jobs"].(map[string]any); fmt.Sprintf("%v %v", jobs["dead"], jobs["cancelled"]) != "0 3" {
			t.Errorf("the queue has %v", jobs)
		}
		a.want(200, `{"cancelled":1}`, "POST", "/jobs/cancel?all=true", "")
		if text := a.want(200, "*", "GET", "/audit", ""); !strings.Contains(text, "cancel jobs") {
			t.Errorf("the audit log says %s", text)
		}
	})
}
