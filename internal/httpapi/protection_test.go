package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/wire"
)

func TestProtectionIsSetShownForcedAndExplained(t *testing.T) {
	a := start(t, httpapi.Options{})
	read := func(into any, method, path, body string) {
		t.Helper()
		d := json.NewDecoder(strings.NewReader(a.want(200, "*", method, path, body)))
		d.DisallowUnknownFields() // wire.Queue knows all that is told
		if err := d.Decode(into); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	var q wire.Queue
	read(&q, "PATCH", "/queues/q", `{"breaker":{},"group_breaker":{"consecutive":2,"open_for_ms":400000},"rate":{"per_second":0.5,"burst":3},`+
		`"group_rate":{"per_second":7},"max_running":9,"retry_budget":{"retry_share":0},"fair_share":{"weights":{"a":2,"b":3}}}`)
	if b := q.Breaker; b == nil || *b != (wire.Breaker{Window: 20, FailureRatio: 0.5, OpenForMS: 30_000, OpenForMaxMS: 300_000, Probes: 1, RampMS: 10_000}) {
		t.Errorf("%+v", b)
	}
	if b := q.GroupBreaker; b == nil || b.FailureRatio != 0 || b.Consecutive != 2 || b.OpenForMaxMS != 400_000 {
		t.Errorf("%+v", b)
	}
	if q.Rate.PerSecond != 0.5 || q.Rate.Burst != 3 || q.GroupRate.PerSecond != 7 || q.MaxRunning != 9 ||
		*q.RetryBudget.RetryShare != 0 || *q.RetryBudget.FloorPerSecond != 10 || len(q.FairShare.Weights) != 2 || q.BreakerState != nil {
		t.Errorf("%+v", q)
	}
	q = wire.Queue{}
	read(&q, "PATCH", "/queues/q", `{"breaker":{"window":30},"rate":null,"group_rate":null,"fair_share":{"weights":{"a":null,"c":4}},"retry_budget":null}`)
	if q.Breaker.Window != 30 || q.Breaker.FailureRatio != 0.5 || q.Rate != nil || q.RetryBudget != nil ||
		len(q.FairShare.Weights) != 2 || q.FairShare.Weights["b"] != 3 || q.FairShare.Weights["c"] != 4 {
		t.Errorf("%+v", q)
	}
	id := a.put(`,"group":"a"`)
	q = wire.Queue{}
	read(&q, "POST", "/queues/q/breaker", `{"state":"open"}`)
	if s := q.BreakerState; s == nil || s.State != wire.BreakerOpen || !s.Forced || s.Until != 0 {
		t.Errorf("%+v", s)
	}
	var held wire.Held
	read(&held, "POST", "/queues/q/hold", `{"group":"a","for_ms":60000}`)
	var e wire.Explanation
	read(&e, "GET", "/jobs/"+id+"/explain", "")
	if e.ID != id || len(e.Reasons) != 2 || e.Reasons[0].Reason != wire.WaitHeld || e.Reasons[0].Until != held.HoldUntil ||
		e.Reasons[0].Group != "a" || e.Reasons[1].Reason != wire.WaitBreaker || e.Reasons[1].Group != "" || !e.Reasons[1].Forced {
		t.Errorf("%+v", e)
	}
	var groups wire.Asides
	read(&groups, "GET", "/queues/q/groups", "")
	if len(groups.Groups) != 1 || groups.Groups[0].Group != "a" || groups.Groups[0].HoldUntil != held.HoldUntil {
		t.Errorf("%+v", groups)
	}
	read(&q, "POST", "/queues/q/release", `{"group":"a"}`)
	q = wire.Queue{}
	if read(&q, "POST", "/queues/q/breaker", `{"state":"auto"}`); q.BreakerState == nil || q.BreakerState.State != wire.BreakerHalfOpen {
		t.Errorf("%+v", q.BreakerState)
	}
	e = wire.Explanation{}
	if read(&e, "GET", "/jobs/"+id+"/explain", ""); len(e.Reasons) != 1 || e.Reasons[0].Reason != wire.WaitNoWorker {
		t.Errorf("%+v", e)
	}
	read(&held, "POST", "/queues/p/hold", `{"until":1}`) // in the past: it ends at once
	for _, c := range []struct{ path, body, text string }{
		{"/queues/q/breaker", `{"state":"half_open"}`, "state must be one of closed open auto"},
		{"/queues/q/breaker", ``, "state must be one of"},
		{"/queues/q/hold", `{"for_ms":-1}`, "for_ms must be a whole number from 0"},
		{"/queues/q/hold", `{"for_ms":1,"until":5}`, "exactly one of until and for_ms"},
		{"/queues/q/hold", `{"for":"1m"}`, "for is not known here"},
		{"/queues/a,b/release", ``, "queue must not contain"},
	} {
		if got := a.call("POST", c.path, c.body); got.status != 400 || !strings.Contains(got.body, c.text) {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.body, got.status, got.body, c.text)
		}
	}
	a.want(404, "*", "GET", "/jobs/"+noID+"/explain", "")
	a.want(404, "*", "GET", "/jobs/nonsense/explain", "")
	a.want(404, "*", "POST", "/queues/q/nothing", "")
}
