package httpapi_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

func TestAReadyJobTellsWhatKeepsItFromRunning(t *testing.T) { // operations.md, wait
	a := start(t, httpapi.Options{})
	wait := func(id string) any { t.Helper(); return object(t, a.want(200, "*", "GET", "/jobs/"+id, ""))["wait"] }
	set := func(body string) { t.Helper(); a.want(200, "*", "PATCH", "/queues/q", body) }
	set(`{"order":"strict"}`)
	head, behind, single := a.put(`,"group":"g"`), a.put(`,"group":"g"`), a.put("")
	for id, want := range map[string]any{head: nil, single: nil, behind: "behind head"} {
		if got := wait(id); got != want {
			t.Errorf("in line: %v, want %v", got, want)
		}
	}
	set(`{"paused":true}`)
	if got := wait(single); got != "paused" {
		t.Errorf("paused: %v", got)
	}
	set(`{"paused":false,"max_running":1}`)
	a.want(200, "*", "POST", "/jobs/lease", `{"queues":["q"]}`)
	if got := wait(single); got != "limited" {
		t.Errorf("as many run as may: %v", got)
	}
	if got := wait(head); got != nil {
		t.Errorf("it runs: %v", got)
	}
	set(`{"max_running":0}`)
	a.want(200, "*", "POST", "/queues/q/hold", `{"for_ms":3600000}`)
	if q := object(t, a.want(200, "*", "GET", "/queues/q", "")); q["oldest_ready_at"] == nil {
		t.Errorf("two wait, and the queue is %v", q)
	}
	if got := wait(single); got != "held" {
		t.Errorf("held: %v", got)
	}
}
