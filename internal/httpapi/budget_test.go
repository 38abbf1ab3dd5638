package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// without drops the times, which differ.
func without(t *testing.T, body string) string {
	t.Helper()
	m := object(t, body)
	for _, name := range []string{"created_at", "updated_at"} {
		if m[name] == nil {
			t.Errorf("no %s in %s", name, body)
		}
		delete(m, name)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBudgetsHaveTheShapesOfTheReference(t *testing.T) { // reference 1.17
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		shown := func(status int, method, path, body, want string) {
			t.Helper()
			if got := without(t, a.want(status, "*", method, path, body)); got != want {
				t.Errorf("%s %s %s answers %s, want %s", method, path, body, got, want)
			}
		}
		a.want(200, `{"budgets":[]}`, "GET", "/budgets", "")
		inFlight := `{"allocation":3,"available":3,"in_flight":0,"jobs":0,"key":"k","strategy":{"type":"while_in_flight"},"waiting":false}`
		shown(201, "POST", "/budgets/k", `{"key":"the path wins","allocation":3,"strategy":{"type":"while_in_flight"},"unheard_of":1}`, inFlight)
		shown(200, "GET", "/budgets/k", "", inFlight)
		a.want(409, `{"error":"budget 'k' already exists","code":"exists"}`, "POST", "/budgets/k", `{"allocation":3,"strategy":{"type":"while_in_flight"}}`)
		a.want(409, `{"error":"budget 'k' already exists","code":"exists"}`, "POST", "/budgets", `{"key":"k","allocation":3,"strategy":{"type":"while_in_flight"}}`)
		shown(200, "PUT", "/budgets/a%2Fb", `{"key":"the path wins","allocation":2,"strategy":{"type":"time_based","duration_ms":1000,"burst":5}}`,
			`{"allocation":2,"available":5,"in_flight":0,"jobs":0,"key":"a/b","strategy":{"burst":5,"duration_ms":1000,"type":"time_based"},"waiting":false}`)
		shown(200, "PATCH", "/budgets/a%2Fb", `{"strategy":{"burst":null}}`,
			`{"allocation":2,"available":2,"in_flight":0,"jobs":0,"key":"a/b","strategy":{"duration_ms":1000,"type":"time_based"},"waiting":false}`)
		shown(200, "PATCH", "/budgets/a%2Fb", `{"allocation":7}`,
			`{"allocation":7,"available":7,"in_flight":0,"jobs":0,"key":"a/b","strategy":{"duration_ms":1000,"type":"time_based"},"waiting":false}`)
		shown(200, "PATCH", "/budgets/a%2Fb", `{"strategy":{"type":"while_in_flight"}}`,
			`{"allocation":7,"available":7,"in_flight":0,"jobs":0,"key":"a/b","strategy":{"type":"while_in_flight"},"waiting":false}`)
		if list := object(t, a.want(200, "*", "GET", "/budgets", ""))["budgets"].([]any); len(list) != 2 {
			t.Errorf("listed are %v", list)
		}
		a.want(404, `{"error":"budget 'x' not found","code":"not_found"}`, "GET", "/budgets/x", "")
		a.want(404, `{"error":"budget 'x' not found","code":"not_found"}`, "PATCH", "/budgets/x", `{}`)
		a.want(404, `{"error":"budget 'x' not found","code":"not_found"}`, "DELETE", "/budgets/x", "")
		id := a.enqueue("q", `null`, `,"budgets":[{"key":"k"}]`)
		a.want(409, `{"error":"budget 'k' is still referred to by unfinished jobs (1); delete them, or wait until they are done","code":"exists"}`, "DELETE", "/budgets/k", "")
		a.want(204, "", "DELETE", "/jobs/"+id, "")
		a.want(204, "", "DELETE", "/budgets/k", "")
		a.want(404, "*", "GET", "/budgets/k", "")
		if text := a.want(200, "*", "GET", "/audit", ""); !strings.Contains(text, `"action":"set budget","subject":"a/b","changes":[{"field":"strategy.type","from":"\"time_based\"","to":"\"while_in_flight\""}`) &&
			!strings.Contains(text, `{"field":"strategy.type","from":"time_based","to":"while_in_flight"}`) {
			t.Errorf("the audit log does not tell the change: %s", text)
		}
	})
}

func TestBadBudgetsAreRefusedByField(t *testing.T) {
	a := start(t, httpapi.Options{})
	ok := `"strategy":{"type":"while_in_flight"}`
	a.want(400, "*", "POST", "/budgets", `[]`)
	a.want(400, "*", "POST", "/budgets/k", `{`)
	a.want(422, `{"error":"key must not contain ','","code":"unprocessable"}`, "POST", "/budgets/a,b", `{"allocation":1,`+ok+`}`)
	a.want(422, `{"error":"key must not contain ','","code":"unprocessable"}`, "PUT", "/budgets/a,b", `{"allocation":1,`+ok+`}`)
	a.want(422, "*", "PATCH", "/budgets/k", `{"allocation":0}`)
	for body, want := range map[string]string{ // 422 by Zizq's documents
		`{"key":"a","allocation":"x",` + ok + `}`: "allocation must be a whole number",
		`{}`:                                   "key is missing",
		`{"key":"","allocation":1,` + ok + `}`: "key must not be empty",
		`{"key":"a,b","allocation":1,` + ok + `}`:                                                     "key must not contain ','",
		`{"key":"k",` + ok + `}`:                                                                      "allocation is missing",
		`{"key":"k","allocation":1}`:                                                                  "strategy is missing",
		`{"key":"k","allocation":0,` + ok + `}`:                                                       "allocation must be a whole number from 1 to 1000000",
		`{"key":"k","allocation":1000001,` + ok + `}`:                                                 "allocation must be a whole number from 1 to 1000000",
		`{"key":"k","allocation":1,"strategy":{"type":"x"}}`:                                          "strategy.type must be",
		`{"key":"k","allocation":1,"strategy":{"type":"time_based"}}`:                                 "strategy.duration_ms must be at least 1",
		`{"key":"k","allocation":1,"strategy":{"type":"time_based","duration_ms":0}}`:                 "strategy.duration_ms must be a whole number from 1",
		`{"key":"k","allocation":1,"strategy":{"type":"time_based","duration_ms":1,"burst":1000001}}`: "strategy.burst must be a whole number from 1 to 1000000",
		`{"key":"k","allocation":1,"strategy":{"type":"time_based","duration_ms":9007199254740991}}`:  "strategy.duration_ms",
		`{"key":"k","allocation":1,"strategy":{"type":"while_in_flight","burst":2}}`:                  "while_in_flight has neither",
	} {
		if text := a.want(422, "*", "POST", "/budgets", body); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", body, text, want)
		}
	}
	a.want(200, `{"budgets":[]}`, "GET", "/budgets", "")
}

func TestJobsAreBoundWhenTheyAreEnqueued(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		made := `{"allocation":2,"strategy":{"type":"while_in_flight"}}`
		job := func(budgets string) string { return `{"type":"t","queue":"q","payload":1,"budgets":` + budgets + `}` }
		j := object(t, a.want(201, "*", "POST", "/jobs", job(`[{"key":"k","cost":2,"create_with":`+made+`}]`)))
		if got := fmt.Sprint(j["budgets"]); got != "[map[cost:2 key:k]]" {
			t.Errorf("it is bound to %s", got)
		}
		a.want(201, "*", "POST", "/jobs", job(`[{"key":"k","create_with":{"allocation":9,"strategy":{"type":"while_in_flight"}}}]`))
		if b := object(t, a.want(200, "*", "GET", "/budgets/k", "")); fmt.Sprintf("%v %v", b["allocation"], b["jobs"]) != "2 2" {
			t.Errorf("create_with changed a budget that was there: %v", b)
		}
		a.want(201, "*", "POST", "/jobs", job(`[]`))
		a.want(201, "*", "POST", "/jobs", job(`null`))
		for _, c := range []struct {
			budgets string
			status  int
			want    string
		}{
			{`[{"key":"x"}]`, 422, "budget 'x' does not exist"},
			{`[{"key":"k","cost":3}]`, 422, "the cost 3 is above the capacity 2 of budget 'k'"},
			{`[{"key":"n","cost":3,"create_with":` + made + `}]`, 422, "the cost 3 is above the capacity 2 of budget 'n'"},
			{`[{"key":"k","cost":0}]`, 400, "budgets.cost must be a whole number from 1 to 1000000"},
			{`[{"key":"k"},{"key":"k"}]`, 400, `budgets must not have the key \"k\" twice`},
			{`[{"cost":1}]`, 400, "budgets.key is missing"},
			{`[1]`, 400, "budgets must be an object"},
			{`{"key":"k"}`, 400, "budgets must be an array"},
			{`[{"key":"n","create_with":{}}]`, 422, "budgets.create_with.allocation is missing"},
		} {
			if text := a.want(c.status, "*", "POST", "/jobs", job(c.budgets)); !strings.Contains(text, c.want) {
				t.Errorf("%s: %s, want %q", c.budgets, text, c.want)
			}
			if text := a.want(c.status, "*", "POST", "/jobs/bulk", `{"jobs":[`+job(`[]`)+`,`+job(c.budgets)+`]}`); !strings.Contains(text, c.want) {
				t.Errorf("in a bulk %s: %s, want %q", c.budgets, text, c.want)
			}
		}
		a.want(404, "*", "GET", "/budgets/n", "")
		a.want(200, `{"count":4}`, "GET", "/jobs/count", "")
	})
}

func TestJobsAreBoundAnew(t *testing.T) { // reference 1.17
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for _, key := range []string{"k", "l", "m%2Fn"} {
			a.want(200, "*", "PUT", "/budgets/"+key, `{"allocation":5,"strategy":{"type":"while_in_flight"}}`)
		}
		id := a.enqueue("q", `null`, ``)
		for _, c := range []struct {
			method, path, body string
			status             int
			want               string // budgets, or a part of the error
		}{
			{"POST", "/k", `{"cost":2}`, 200, "[map[cost:2 key:k]]"},
			{"POST", "/k", `{"cost":2}`, 409, "bound to budget 'k' already"},
			{"POST", "/l", ``, 200, "[map[cost:2 key:k] map[cost:1 key:l]]"},
			{"PUT", "/k", `{"cost":3}`, 200, "[map[cost:3 key:k] map[cost:1 key:l]]"},
			{"PUT", "/m%2Fn", `{"cost":4}`, 200, "[map[cost:3 key:k] map[cost:1 key:l] map[cost:4 key:m/n]]"},
			{"PATCH", "/l", `{"cost":5}`, 200, "[map[cost:3 key:k] map[cost:5 key:l] map[cost:4 key:m/n]]"},
			{"PATCH", "/l", `{"cost":6}`, 422, "the cost 6 is above the capacity 5 of budget 'l'"},
			{"PATCH", "/l", `{}`, 400, "cost is missing"},
			{"PATCH", "/x", `{"cost":1}`, 404, "not bound to budget 'x'"},
			{"DELETE", "/x", ``, 404, "not bound to budget 'x'"},
			{"POST", "/x", `{}`, 422, "budget 'x' does not exist"},
			{"DELETE", "/k", ``, 200, "[map[cost:5 key:l] map[cost:4 key:m/n]]"},
			{"PUT", "", `{"budgets":[{"key":"k","cost":1}]}`, 200, "[map[cost:1 key:k]]"},
			{"PUT", "", `{}`, 400, "budgets is missing"},
			{"PUT", "", `{"budgets":[{"key":"x"}]}`, 422, "budget 'x' does not exist"},
			{"DELETE", "", ``, 200, "<nil>"},
			{"DELETE", "", ``, 200, "<nil>"},
			{"PUT", "/new", `{"create_with":{"allocation":1,"strategy":{"type":"while_in_flight"}}}`, 200, "[map[cost:1 key:new]]"},
		} {
			text := a.want(c.status, "*", c.method, "/jobs/"+id+"/budgets"+c.path, c.body)
			if c.status == 200 {
				text = fmt.Sprint(object(t, text)["budgets"])
				if text != c.want {
					t.Errorf("%s %s %s: %s, want %s", c.method, c.path, c.body, text, c.want)
				}
			} else if !strings.Contains(text, c.want) {
				t.Errorf("%s %s %s: %s, want %q", c.method, c.path, c.body, text, c.want)
			}
		}
		a.want(404, `{"error":"job not found","code":"not_found"}`, "DELETE", "/jobs/0000000000000000000000000/budgets", "")
		s := a.take("?prefetch=1")
		s.next()
		if text := a.want(422, "*", "DELETE", "/jobs/"+id+"/budgets", ""); !strings.Contains(text, "in in_flight status") {
			t.Error(text)
		}
	})
}

func TestManyJobsAreBoundAtOnceAndChosenByTheirBudgets(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for _, key := range []string{"k", "l"} {
			a.want(200, "*", "PUT", "/budgets/"+key, `{"allocation":5,"strategy":{"type":"while_in_flight"}}`)
		}
		running := a.enqueue("r", `null`, `,"budgets":[{"key":"k"}]`)
		a.take("?prefetch=1&queue=r").next()
		for range 3 {
			a.enqueue("q", `null`, ``)
		}
		a.enqueue("q", `null`, `,"budgets":[{"key":"l"}]`)
		a.want(200, `{"changed":4,"blocked":[]}`, "POST", "/jobs/budgets/k?queue=q", `{"cost":2}`)
		a.want(200, `{"changed":0,"blocked":[]}`, "POST", "/jobs/budgets/k?queue=q", `{"cost":3}`)
		a.want(200, `{"changed":4,"blocked":["`+running+`"]}`, "PUT", "/jobs/budgets/k", `{"cost":3}`)
		a.want(200, `{"changed":1,"blocked":[]}`, "PATCH", "/jobs/budgets/l", `{"cost":4}`)
		a.want(422, "*", "PATCH", "/jobs/budgets/l", `{"cost":6}`)
		a.want(422, "*", "POST", "/jobs/budgets/x", `{}`)
		a.want(400, "*", "POST", "/jobs/budgets/k?queue=", `{}`)
		a.want(400, "*", "POST", "/jobs/budgets/k?nonsense=1", `{}`)
		for query, n := range map[string]int{"budgets.key=k": 5, "budgets.key=l": 1, "budgets.key=k,l": 5, "budgets.key=x": 0, "budgets.key=": 5, "budgets.key=l&queue=r": 0} {
			a.want(200, fmt.Sprintf(`{"count":%d}`, n), "GET", "/jobs/count?"+query, "")
			page := object(t, a.want(200, "*", "GET", "/jobs?"+query, ""))
			if list := page["jobs"].([]any); len(list) != n {
				t.Errorf("%s lists %d jobs, want %d", query, len(list), n)
			}
		}
		a.want(200, `{"changed":1,"blocked":[]}`, "DELETE", "/jobs/budgets/l?budgets.key=l", "")
		a.want(200, `{"patched":5}`, "PATCH", "/jobs?budgets.key=k", `{"priority":1}`)
		a.want(200, `{"changed":4,"blocked":["`+running+`"]}`, "DELETE", "/jobs/budgets", "")
		a.want(200, `{"deleted":1}`, "DELETE", "/jobs?budgets.key=k", "")
		a.want(204, "", "POST", "/reset", "")
		a.want(200, `{"budgets":[]}`, "GET", "/budgets", "")
	})
}

func TestAGuardedServerUnbindsNotAllByAccident(t *testing.T) {
	a := start(t, httpapi.Options{Guard: true})
	a.want(400, "*", "DELETE", "/jobs/budgets", "")
	a.want(200, `{"changed":0,"blocked":[]}`, "DELETE", "/jobs/budgets?all=true", "")
	a.want(200, `{"changed":0,"blocked":[]}`, "DELETE", "/jobs/budgets?budgets.key=k", "")
}

func TestWhoWaitsForABudgetIsSeen(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PUT", "/budgets/k", `{"allocation":1,"strategy":{"type":"while_in_flight"}}`)
	a.enqueue("q", `null`, `,"budgets":[{"key":"k"}]`)
	waits := a.enqueue("q", `null`, `,"budgets":[{"key":"k"}]`)
	a.take("?prefetch=2").next()
	x := object(t, a.want(200, "*", "GET", "/jobs/"+waits+"/explain", ""))
	if got := fmt.Sprint(x["reasons"]); got != `[map[label:k limit:1 reason:budget text:budget "k" has not what it needs, or others wait for that before it; its capacity is 1]]` {
		t.Errorf("told %s", got)
	}
	if j := object(t, a.want(200, "*", "GET", "/jobs/"+waits, "")); j["wait"] != "budget" || j["status"] != "ready" {
		t.Errorf("%v", j)
	}
	if b := object(t, a.want(200, "*", "GET", "/budgets/k", "")); fmt.Sprintf("%v %v %v", b["in_flight"], b["available"], b["waiting"]) != "1 0 true" {
		t.Errorf("%v", b)
	}
}
