package httpapi_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/wire"
)

// waits is what a job is said to wait for, by all calls that say it.
func (a *api) waits(id string) any {
	t := a.t
	t.Helper()
	alone := object(t, a.want(200, "*", "GET", "/jobs/"+id, ""))["wait"]
	listed := object(t, a.want(200, "*", "GET", "/jobs?id="+id, ""))["jobs"].([]any)[0].(map[string]any)["wait"]
	filtered := object(t, a.want(200, "*", "GET", "/jobs?priority=0..&id="+id, ""))["jobs"].([]any)[0].(map[string]any)["wait"]
	if listed != alone || filtered != alone {
		t.Errorf("read alone it waits for %v, in a list for %v, in a search for %v", alone, listed, filtered)
	}
	for _, w := range wire.Waits {
		want := json.Number("0")
		if alone == any(w) {
			want = "1"
		}
		query := "wait=" + url.QueryEscape(w) + "&id=" + id
		page := object(t, a.want(200, "*", "GET", "/jobs?"+query, ""))["jobs"].([]any)
		if n := object(t, a.want(200, "*", "GET", "/jobs/count?"+query, ""))["count"]; n != want || json.Number(strconv.Itoa(len(page))) != want {
			t.Errorf("it waits for %v, and %d are listed and %v counted that wait for %q", alone, len(page), n, w)
		} else if len(page) == 1 && page[0].(map[string]any)["wait"] != any(w) {
			t.Errorf("%v", page)
		}
	}
	return alone
}

func TestAReadyJobTellsWhatKeepsItFromRunning(t *testing.T) { // operations.md, wait
	a := start(t, httpapi.Options{})
	set := func(body string) { t.Helper(); a.want(200, "*", "PATCH", "/queues/q", body) }
	set(`{"order":"strict"}`)
	head, behind, single := a.put(`,"group":"g"`), a.put(`,"group":"g"`), a.put("")
	for id, want := range map[string]any{head: nil, single: nil, behind: "behind head"} {
		if got := a.waits(id); got != want {
			t.Errorf("in line: %v, want %v", got, want)
		}
	}
	set(`{"paused":true}`)
	if got := a.waits(single); got != "paused" {
		t.Errorf("paused: %v", got)
	}
	set(`{"paused":false,"max_running":1}`)
	a.want(200, "*", "POST", "/jobs/lease", `{"queues":["q"]}`)
	if got := a.waits(single); got != "limited" {
		t.Errorf("as many run as may: %v", got)
	}
	if got := a.waits(head); got != nil {
		t.Errorf("it runs: %v", got)
	}
	set(`{"max_running":0}`)
	a.want(200, "*", "POST", "/queues/q/hold", `{"for_ms":3600000}`)
	if q := object(t, a.want(200, "*", "GET", "/queues/q", "")); q["oldest_ready_at"] == nil {
		t.Errorf("two wait, and the queue is %v", q)
	}
	if got := a.waits(single); got != "held" {
		t.Errorf("held: %v", got)
	}
	a.want(200, "*", "POST", "/queues/q/release", `{}`)
	set(`{"rate":{"per_second":0.001}}`)
	a.want(200, "*", "POST", "/jobs/lease", `{"queues":["q"]}`)
	if got := a.waits(a.put("")); got != "limited" {
		t.Errorf("the rate is used up: %v", got)
	}
	a.want(200, "*", "PUT", "/budgets/k", `{"allocation":1,"strategy":{"type":"while_in_flight"}}`)
	a.want(201, "*", "POST", "/jobs", `{"queue":"b","type":"t","payload":1,"budgets":[{"key":"k"}]}`)
	a.want(201, "*", "POST", "/jobs", `{"queue":"b","type":"t","payload":1,"budgets":[{"key":"k"}]}`)
	a.want(200, "*", "POST", "/jobs/lease", `{"queues":["b"],"max":2}`)
	list := object(t, a.want(200, "*", "GET", "/jobs?queue=b&status=ready", ""))["jobs"].([]any)
	if got := a.waits(list[0].(map[string]any)["id"].(string)); got != "budget" {
		t.Errorf("without units: %v", got)
	}
}

func TestListsBySeveralWaitsPageLikeOthers(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PATCH", "/queues/p", `{"paused":true}`)
	a.want(200, "*", "POST", "/queues/h/hold", `{"for_ms":3600000}`)
	var want []string
	for i := range 12 {
		queue := []string{"p", "h", "free"}[i%3]
		j := object(t, a.want(201, "*", "POST", "/jobs", `{"queue":"`+queue+`","type":"t","payload":1}`))
		if queue != "free" {
			want = append(want, j["id"].(string))
		}
	}
	var got []string
	for next := "/jobs?wait=paused,held,limited&limit=3"; next != ""; {
		page := object(t, a.want(200, "*", "GET", next, ""))
		for _, j := range page["jobs"].([]any) {
			got = append(got, j.(map[string]any)["id"].(string))
		}
		next, _ = page["pages"].(map[string]any)["next"].(string)
		if next != "" && !strings.Contains(next, "&wait=held,limited,paused") {
			t.Fatalf("the next page is %s", next)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	a.want(200, `{"count":4}`, "GET", "/jobs/count?wait=paused&status=ready,dead", "")
	a.want(200, `{"count":0}`, "GET", "/jobs/count?wait=paused&status=dead", "")
	a.want(400, `{"error":"wait must be among paused, held, behind head, limited, budget; it has \"asleep\"","code":"invalid"}`, "GET", "/jobs?wait=asleep", "")
	for _, method := range []string{"DELETE", "PATCH"} { // who waits changes too fast to be changed by that
		a.want(400, `{"error":"invalid query parameters: unknown parameter \"wait\"; there are status, queue, type, id, priority, ready_at, attempts, filter, budgets.key, reason, group, label, all","code":"invalid"}`, method, "/jobs?wait=paused", `{"priority":1}`)
	}
}
