package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// Unique keys and batches over a socket: zizq.md 1.15, 1.16 and 7, items 11 and 12.

// bring enqueues a job and brings it into a status; the job is the only one of its queue.
func (a *api) bring(queue, status, members string) (id string) {
	a.t.Helper()
	if status == "scheduled" {
		members += `,"ready_at":4102444800000`
	}
	body := fmt.Sprintf(`{"type":"t","queue":%q,"payload":"first","retention":{"completed_ms":3600000}%s}`, queue, members)
	id = object(a.t, a.want(201, "*", "POST", "/jobs", body))["id"].(string)
	if status != "scheduled" && status != "ready" {
		list := object(a.t, a.want(200, "*", "POST", "/jobs/lease", fmt.Sprintf(`{"queues":[%q],"wait_ms":0}`, queue)))["jobs"].([]any)
		token := list[0].(map[string]any)["lease"]
		outcome := map[string]string{"completed": "ok", "dead": "dead"}[status]
		if outcome != "" {
			a.want(200, "*", "POST", "/jobs/settle", fmt.Sprintf(`[{"id":%q,"lease":%q,"outcome":%q,"error":{"message":"m"}}]`, id, token, outcome))
		}
	}
	if got := object(a.t, a.want(200, "*", "GET", "/jobs/"+id, ""))["status"]; got != status {
		a.t.Fatalf("the job is %s, want %s", got, status)
	}
	return id
}

func TestTheScopeOfTheNewcomerMeetsTheStatusOfTheOwner(t *testing.T) { // zizq.md 1.15
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for scope, conflicts := range map[string]string{
			"queued": "scheduled ready", "active": "scheduled ready in_flight", "exists": "scheduled ready in_flight completed dead",
		} {
			for _, status := range []string{"scheduled", "ready", "in_flight", "completed", "dead"} {
				key := scope + " meets " + status
				owner := a.bring(key, status, fmt.Sprintf(`,"unique_key":%q,"unique_while":"exists"`, key))
				before := a.want(200, "*", "GET", "/jobs/"+owner, "")
				got := a.call("POST", "/jobs", fmt.Sprintf(`{"type":"u","queue":"q2","payload":"second","ready_at":4102444800001,"unique_key":%q,"unique_while":%q}`, key, scope))
				j := object(t, got.body)
				if strings.Contains(" "+conflicts+" ", " "+status+" ") {
					if got.status != 200 || j["id"] != owner || j["duplicate"] != true || j["folded"] != false || j["unique_while"] != "exists" {
						t.Errorf("%s: %d %s", key, got.status, got.body)
					}
				} else if got.status != 201 || j["id"] == owner || j["duplicate"] != false {
					t.Errorf("%s: %d %s", key, got.status, got.body)
				}
				a.want(200, before, "GET", "/jobs/"+owner, "") // not updated
			}
		}
	})
}

func TestABulkIs200OnlyIfNothingWasAdded(t *testing.T) { // zizq.md 1.8
	a := start(t, httpapi.Options{})
	entry := func(members string) string { return `{"type":"t","queue":"q","payload":[1]` + members + `}` }
	bulk := func(entries ...string) string { return `{"jobs":[` + strings.Join(entries, ",") + `]}` }
	u, b := entry(`,"unique_key":"k"`), entry(`,"batch":{"key":"k","when":"true","fold":"$existing + $new"}`)
	said := func(status int, body string) (out []string) {
		t.Helper()
		for _, j := range object(t, a.want(status, "*", "POST", "/jobs/bulk", body))["jobs"].([]any) {
			j := j.(map[string]any)
			out = append(out, fmt.Sprint(j["duplicate"], " ", j["folded"]))
		}
		return out
	}
	for _, c := range []struct {
		status int
		body   string
		want   string
	}{
		{201, bulk(u, u, b, b), "[false false true false false false false true]"},
		{200, bulk(u, b, u), "[true false false true true false]"},
		{201, bulk(u, b, entry("")), "[true false false true false false]"},
		{201, bulk(), "[]"},
	} {
		if got := fmt.Sprint(said(c.status, c.body)); got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	a.want(400, "*", "POST", "/jobs/bulk", bulk(b, entry(`,"unique_key":"k","batch":{"key":"k","when":"true","fold":"$new"}`)))
	a.want(422, "*", "POST", "/jobs/bulk", bulk(b, entry(`,"batch":{"key":"other","when":"true","fold":"empty"}`)))
	list := object(t, a.want(200, "*", "GET", "/jobs?queue=q", ""))["jobs"].([]any)
	if len(list) != 3 || len(list[1].(map[string]any)["payload"].([]any)) != 4 {
		t.Errorf("refused calls changed something: %v", list)
	}
}

func TestAFoldThatFailsIsA422OfItsOwn(t *testing.T) { // zizq.md 9, defect 19
	a := start(t, httpapi.Options{})
	put := func(payload string) string {
		return `{"type":"t","queue":"q","payload":` + payload + `,"batch":{"key":"k","when":"true","fold":"$existing + $new"}}`
	}
	id := object(t, a.want(201, "*", "POST", "/jobs", put("[1]")))["id"].(string)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			payload, want := fmt.Sprintf("[%d]", i), 200
			if i%2 == 1 {
				payload, want = fmt.Sprint(i), 422
			}
			if got := a.call("POST", "/jobs", put(payload)); got.status != want || want == 422 && !strings.Contains(got.body, `"code":"unprocessable"`) {
				t.Errorf("%s: %d %s", payload, got.status, got.body)
			}
		})
	}
	all.Wait()
	payload := object(t, a.want(200, "*", "GET", "/jobs/"+id, ""))["payload"].([]any)
	sum := int64(0)
	for _, n := range payload {
		v, _ := n.(json.Number).Int64()
		sum += v
	}
	if len(payload) != 11 || sum != 91 { // 1 and the even ones
		t.Errorf("the payload is %v", payload)
	}
}

func TestASingleReplayMeetsTheOwnerOfItsKey(t *testing.T) { // core.md section 7
	a := start(t, httpapi.Options{})
	id := a.bring("q", "dead", `,"unique_key":"k","unique_while":"active"`)
	owner := a.put(`,"unique_key":"k"`)
	got := a.call("POST", "/dead/"+id+"/replay", "{}")
	if got.status != 409 || !strings.Contains(got.body, owner) || !strings.Contains(got.body, `"code":"exists"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	run := object(t, a.want(202, "*", "POST", "/dead/replay", `{"all":true}`))
	for done := false; !done; {
		p := object(t, a.want(200, "*", "GET", "/replays/"+run["id"].(string), ""))
		if done = p["status"] == "done"; done && (p["conflict"] != json.Number("1") || p["done"] != json.Number("0")) {
			t.Errorf("%v", p)
		}
	}
}
