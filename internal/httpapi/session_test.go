package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// login logs an engine in and returns its epoch.
func (a *api) login(id string, slots int, more string) string {
	a.t.Helper()
	got := object(a.t, a.want(201, "*", "POST", "/engines", fmt.Sprintf(`{"id":%q,"slots":%d%s}`, id, slots, more)))
	return fmt.Sprint(got["epoch"])
}

// tasksOf takes tasks for an engine, call by call.
func (a *api) tasksOf(engine, epoch string, most int) []map[string]any {
	a.t.Helper()
	got := object(a.t, a.want(200, "*", "POST", "/jobs/lease", fmt.Sprintf(`{"engine":%q,"epoch":%s,"max":%d,"wait_ms":2000}`, engine, epoch, most)))
	var out []map[string]any
	for _, j := range got["jobs"].([]any) {
		out = append(out, j.(map[string]any))
	}
	return out
}

func (a *api) ends(j map[string]any, rest string) {
	a.t.Helper()
	got := a.want(200, "*", "POST", "/jobs/settle", fmt.Sprintf(`[{"id":%q,"lease":%q,%s}]`, j["id"], j["lease"], rest))
	if strings.Contains(got, `"code"`) {
		a.t.Errorf("settling %v: %s", j["id"], got)
	}
}

// At max_queues there is no place for a session, and the answer says what to do.
func TestASessionTooManyIs429(t *testing.T) {
	a := start(t, httpapi.Options{})
	if err := a.engine.Reconfigure(t.Context(), engine.Options{Server: rule.DefaultServer(), QueuesMax: 1}, job.Actor{}); err != nil {
		t.Fatal(err)
	}
	a.enqueue("q", "1", "")
	got := a.call("POST", "/sessions", `{}`)
	if got.status != 429 || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "raise max_queues") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := a.call("POST", "/queues/new/hold", `{"for_ms":1000}`); got.status != 429 {
		t.Errorf("a hold: %d %s", got.status, got.body)
	}
}

func TestASessionFromItsOpeningToItsLastResult(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		opened := object(t, a.want(201, "*", "POST", "/sessions", `{"id":"s","options":{"max_retries":1,"task_max_time":"50s"}}`))
		if opened["state"] != "open" || opened["profile"] != "seed" {
			t.Errorf("%v", opened)
		}
		added := object(t, a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":{"n":1}},{"seq":2,"payload":2},{"seq":3,"payload":3}]}`))
		if fmt.Sprint(added["added"]) != "3" {
			t.Errorf("%v", added)
		}
		again := object(t, a.want(200, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":2,"payload":2}]}`))
		if fmt.Sprint(again["duplicates"]) != "1" || fmt.Sprint(again["tasks"].([]any)[0].(map[string]any)["duplicate"]) != "true" {
			t.Errorf("%v", again)
		}
		a.want(409, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":2,"payload":"other"}]}`)

		epoch := a.login("e1", 2, "")
		list := a.tasksOf("e1", epoch, 10)
		if len(list) != 2 || list[0]["queue"] != "s" || fmt.Sprint(list[0]["labels"]) != "map[task_seq:1]" {
			t.Fatalf("two slots get %v", list)
		}
		active := object(t, a.want(200, "*", "GET", "/sessions/s/tasks/1", ""))
		if active["state"] != "active" || active["attempts"].([]any)[0].(map[string]any)["engine"] != "e1" {
			t.Errorf("%v", active)
		}
		a.ends(list[0], `"outcome":"ok","result":{"n":10}`)
		a.ends(list[1], `"outcome":"retry","error":{"message":"out of luck"}`)
		page := object(t, a.want(200, "*", "GET", "/sessions/s/results?wait_ms=2000", ""))
		first := page["results"].([]any)[0].(map[string]any)
		if fmt.Sprint(first["seq"]) != "1" || first["state"] != "completed" || fmt.Sprint(first["result"]) != "map[n:10]" || page["ended"] != nil {
			t.Errorf("%v", page)
		}
		list = a.tasksOf("e1", epoch, 10) // the retry is at the front
		if len(list) != 2 || fmt.Sprint(list[0]["payload"]) != "2" || fmt.Sprint(list[0]["attempts"]) != "1" {
			t.Fatalf("%v", list)
		}
		a.ends(list[0], `"outcome":"retry","error":{"message":"again"}`) // one retry was allowed
		a.ends(list[1], `"outcome":"ok"`)
		a.want(200, "*", "POST", "/sessions/s/close", "")
		if closed := object(t, a.want(200, "*", "GET", "/sessions/s", "")); closed["state"] != "done_with_errors" {
			t.Errorf("%v", closed)
		}
		a.want(422, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":4,"payload":4}]}`)
		page = object(t, a.want(200, "*", "GET", "/sessions/s/results?after="+fmt.Sprint(first["cursor"]), ""))
		rest := page["results"].([]any)
		failed := rest[0].(map[string]any)
		if len(rest) != 2 || page["ended"] != true || failed["state"] != "failed" || failed["error"].(map[string]any)["message"] != "again" ||
			fmt.Sprint(failed["retries"]) != "2" || rest[1].(map[string]any)["result"] != nil {
			t.Errorf("%v", page)
		}
		task := object(t, a.want(200, "*", "GET", "/sessions/s/tasks/2", ""))
		if task["state"] != "failed" || len(task["errors"].([]any)) != 2 {
			t.Errorf("%v", task)
		}
		a.want(204, "", "POST", "/sessions/s/collected", fmt.Sprintf(`{"cursor":%v}`, page["next"]))
		a.want(204, "", "DELETE", "/sessions/s?forget=true", "")
	})
}

func TestOpeningASessionAgainFindsItOrSaysWhyNot(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(201, "*", "POST", "/sessions", `{"id":"s","options":{"weight":3}}`)
	a.want(200, "*", "POST", "/sessions", `{"options":{"weight": 3},"id":"s"}`)
	a.want(409, `{"error":"session \"s\" was opened with another service or other options; take another id, or GET it and go on","code":"exists"}`,
		"POST", "/sessions", `{"id":"s","options":{"weight":4}}`)
	a.enqueue("plain", "1", "")
	a.want(409, `{"error":"id \"plain\" is the name of a queue; take another one","code":"exists"}`, "POST", "/sessions", `{"id":"plain"}`)
	made := object(t, a.want(201, "*", "POST", "/sessions", ""))
	if id, _ := made["id"].(string); len(id) != 25 {
		t.Errorf("an id is made up: %v", made)
	}
	list := object(t, a.want(200, "*", "GET", "/sessions?limit=1", ""))
	if len(list["sessions"].([]any)) != 1 || list["next"] == nil {
		t.Errorf("%v", list)
	}
	list = object(t, a.want(200, "*", "GET", "/sessions?after="+list["next"].(string), ""))
	if len(list["sessions"].([]any)) != 1 || list["next"] != nil {
		t.Errorf("%v", list)
	}
}

// grid.md, decision 5.
func TestASessionShowsWhoChoseEachOption(t *testing.T) {
	c, err := grid.ReadConfig([]byte(`{"profile":"modern","defaults":{"max_retries":7,"weight":2},"services":{"pricing":{"task_max_time":"50s","weight":4}}}`))
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, httpapi.Options{Grid: &c})
	s := object(t, a.want(201, "*", "POST", "/sessions", `{"id":"s","service":"pricing","options":{"max_engines":3}}`))
	check := func(s map[string]any, name string, value any, from string) {
		t.Helper()
		o := s["options"].(map[string]any)[name].(map[string]any)
		if fmt.Sprint(o["value"]) != fmt.Sprint(value) || o["from"] != from {
			t.Errorf("%s is %v", name, o)
		}
	}
	if len(s["options"].(map[string]any)) != len(grid.Options) || s["service"] != "pricing" || s["profile"] != "modern" {
		t.Errorf("%v", s)
	}
	check(s, "max_engines", 3, "session")
	check(s, "task_max_time", "50s", "service")
	check(s, "weight", 4, "service")
	check(s, "max_retries", 7, "broker")
	check(s, "evicted_place", "keep", "profile")

	s = object(t, a.want(200, "*", "PATCH", "/sessions/s", `{"options":{"weight":9},"suspend":true}`))
	check(s, "weight", 9, "session")
	check(s, "max_retries", 7, "broker")
	if s["suspended"] != true {
		t.Errorf("%v", s)
	}
	// Copies are kept together, and only where there is a strategy.
	check(s, "redundancy", "[median]", "profile")
	s = object(t, a.want(200, "*", "PATCH", "/sessions/s", `{"options":{"redundancy":[],"copy_budget":0.5}}`))
	check(s, "redundancy", "[]", "session")
	check(s, "copies_running", "0.1", "profile")
	s = object(t, a.want(200, "*", "PATCH", "/sessions/s", `{"options":{"redundancy":["tail"]}}`))
	check(s, "redundancy", "[tail]", "session")
	check(s, "copies_running", "0.1", "profile")
	s = object(t, a.want(201, "*", "POST", "/sessions", `{"id":"once","options":{"idempotent":false,"min_samples":9}}`))
	check(s, "redundancy", "[]", "session")
	check(s, "min_samples", 9, "session")
	s = object(t, a.want(200, "*", "PATCH", "/sessions/s", `{"suspend":false}`))
	if s["suspended"] != nil {
		t.Errorf("%v", s)
	}
}

func TestBadInputOfTheGridIsNamed(t *testing.T) {
	c, err := grid.ReadConfig([]byte(`{"task_bytes_max":20,"services":{"pricing":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, httpapi.Options{Grid: &c})
	a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
	epoch := a.login("e", 1, "")
	for _, x := range []struct {
		status             int
		method, path, sent string
		code, text         string
	}{
		{404, "GET", "/sessions/none", "", "not_found", `session \"none\" does not exist`},
		{404, "POST", "/sessions/none/tasks", `{"tasks":[{"seq":1,"payload":1}]}`, "not_found", `session \"none\" does not exist`},
		{404, "GET", "/sessions/none/results", "", "not_found", "does not exist"},
		{404, "POST", "/sessions/none/close", "", "not_found", "does not exist"},
		{404, "DELETE", "/sessions/none", "", "not_found", "does not exist"},
		{404, "PATCH", "/sessions/none", `{"suspend":true}`, "not_found", "does not exist"},
		{404, "GET", "/sessions/none/tasks/1", "", "not_found", "does not exist"},
		{404, "GET", "/sessions/s/tasks/1", "", "not_found", `session s has no task`},
		{404, "GET", "/sessions/s/tasks/first", "", "not_found", `has no task \"first\"`},
		{404, "GET", "/sessions/s/tasks/" + noID, "", "not_found", "has no task"},
		{400, "POST", "/sessions", `{"id":"a,b"}`, "invalid", "id must not contain ','"},
		{400, "POST", "/sessions", `{"service":"risk"}`, "invalid", `service \"risk\" is not known`},
		{400, "POST", "/sessions", `{"options":{"weight":10}}`, "invalid", "options.weight must be a whole number from 0 to 9"},
		{400, "POST", "/sessions", `{"options":{"wait":10}}`, "invalid", "options.wait is no option"},
		{400, "POST", "/sessions", `{"options":{"max_retry":10}}`, "invalid", "options.max_retry is no option; did you mean max_retries?"},
		{422, "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1},{"seq":2,"payload":1,"budgets":[{"key":"licence"}]}]}`, "unprocessable", `tasks[1].budgets: budget \"licence\" does not exist; make it first (PUT /budgets/KEY)`},
		{400, "POST", "/sessions", `{"option":{}}`, "invalid", "option is not known here"},
		{400, "POST", "/sessions", `{"id":`, "invalid", "invalid JSON"},
		{400, "PATCH", "/sessions/s", `{}`, "invalid", "options or suspend is missing"},
		{400, "PATCH", "/sessions/s", `{"options":{"weight":-1}}`, "invalid", "options.weight must be"},
		{400, "PATCH", "/sessions/s", `{"options":{"collection":"never"}}`, "invalid", "options.collection cannot change"},
		{400, "POST", "/sessions/s/tasks", `{"tasks":[]}`, "invalid", "at least one task"},
		{400, "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1},{"seq":2,"payload":"` + strings.Repeat("x", 20) + `"}]}`, "invalid", "tasks[1].payload has 22 bytes"},
		{400, "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1,"requires":["fast"]}]}`, "invalid", "is no condition"},
		{400, "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1,"require":["fast"]}]}`, "invalid", "tasks[0].require is not known here"},
		{400, "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1,"needs":[2]},{"seq":2,"payload":1,"needs":[1]}]}`, "invalid", "tasks[0].needs: the tasks wait for each other and could never run: 1 -> 2 -> 1"},
		{400, "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1,"needs":[7]}]}`, "invalid", "task 1 needs task 7, which was not submitted"},
		{400, "GET", "/sessions/s/results?after=-1", "", "invalid", "after must be the cursor"},
		{400, "GET", "/sessions/s/results?limit=0", "", "invalid", "limit must be a whole number from 1 to 10000"},
		{400, "GET", "/sessions/s/results?from=1", "", "invalid", "unknown parameter"},
		{400, "POST", "/sessions/s/collected", `{"cursor":-1}`, "invalid", "cursor must be"},
		{400, "POST", "/sessions/s/collected", `{"cursor":1000000000}`, "invalid", "was not given out"},
		{400, "DELETE", "/sessions/s?forget=maybe", "", "invalid", "forget must be true or false"},
		{422, "DELETE", "/sessions/s?forget=true", "", "wrong_state", "cancel it first"},
		{422, "POST", "/jobs", `{"type":"t","queue":"s","payload":1}`, "wrong_state", `queue \"s\" is a session`},

		{400, "POST", "/engines", `{"slots":0}`, "invalid", "slots must be a whole number from 1 to 10000"},
		{400, "POST", "/engines", `{"slots":1,"id":"a*b"}`, "invalid", "id must not contain '*'"},
		{400, "POST", "/engines", `{"slots":1,"host":"a b,c"}`, "invalid", "host must not contain ','"},
		{400, "POST", "/engines", `{"slots":1,"properties":{"":"x"}}`, "invalid", "properties"},
		{400, "POST", "/engines", `{"slots":1,"running":[{"id":"x","lease":"y"}]}`, "invalid", "running[0].id is no id of a task"},
		{404, "GET", "/engines/none", "", "not_found", `engine \"none\" is not known`},
		{404, "POST", "/engines/none/heartbeat", `{"epoch":1}`, "not_found", "is not logged in; log in first"},
		{400, "POST", "/engines/e/heartbeat", `{}`, "invalid", "epoch must be that of the engine's login"},
		{400, "POST", "/engines/e/heartbeat", `{"epoch":1,"stopped":["x"]}`, "invalid", "stopped[0] is no token"},
		{409, "POST", "/engines/e/heartbeat", `{"epoch":` + epoch + `0}`, "superseded", "this login is over"},
		{404, "POST", "/engines/none/drain", "", "not_found", "is not logged in"},
		{400, "POST", "/engines/e/drain", `{"epoch":-1}`, "invalid", "epoch must be"},
		{409, "POST", "/engines/e/logoff", `{"epoch":` + epoch + `0}`, "superseded", "this login is over"},
		{404, "GET", "/jobs/take?engine=none&epoch=1", "", "not_found", "is not logged in"},
		{400, "GET", "/jobs/take?engine=e", "", "invalid", "epoch must be that of the engine's login"},
		{400, "GET", "/jobs/take?epoch=3", "", "invalid", "epoch is for an engine"},
		{400, "GET", "/jobs/take?engine=e&epoch=" + epoch + "&prop=a:b", "", "invalid", "prop and lease are not for an engine"},
		{409, "GET", "/jobs/take?engine=e&epoch=" + epoch + "0", "", "superseded", "this login is over"},
		{404, "POST", "/jobs/lease", `{"engine":"none","epoch":1}`, "not_found", "is not logged in"},
	} {
		got := a.call(x.method, x.path, x.sent)
		if got.status != x.status || !strings.Contains(got.body, x.text) || !strings.Contains(got.body, `"code":"`+x.code+`"`) {
			t.Errorf("%s %s %.100s\n got %d %s\nwant %d %s, %q", x.method, x.path, x.sent, got.status, got.body, x.status, x.code, x.text)
		}
	}
	s := object(t, a.want(200, "*", "GET", "/sessions/s", ""))
	if fmt.Sprint(s["tasks"].(map[string]any)["submitted"]) != "0" || s["state"] != "open" {
		t.Errorf("something was changed: %v", s)
	}
}

func TestAnEngineFromLoginToLogoff(t *testing.T) {
	a := start(t, httpapi.Options{})
	made := object(t, a.want(201, "*", "POST", "/engines", `{"slots":4,"host":"h","properties":{"cpuMHz":"2400"}}`))
	id, epoch := made["id"].(string), fmt.Sprint(made["epoch"])
	if !strings.HasPrefix(id, "engine-") || fmt.Sprint(made["heartbeat_ms"]) != "5000" || fmt.Sprint(made["lost_after_ms"]) != "15000" {
		t.Errorf("%v", made)
	}
	e := object(t, a.want(200, "*", "GET", "/engines/"+id, ""))
	if e["state"] != "suspect" || e["host"] != "h" || fmt.Sprint(e["properties"]) != "map[cpuMHz:2400]" {
		t.Errorf("without a connection: %v", e)
	}
	open := a.take("?engine=" + id + "&epoch=" + epoch)
	a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
	a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1,"requires":["cpuMHz > 2400"]},{"seq":2,"payload":2,"requires":["cpuMHz > 350"]}]}`)
	j := open.next()
	if fmt.Sprint(j["payload"]) != "2" || j["lease"] == nil {
		t.Fatalf("the task whose condition it meets: %v", j)
	}
	if e = object(t, a.want(200, "*", "GET", "/engines/"+id, "")); e["state"] != "busy" || fmt.Sprint(e["running"]) != "1" {
		t.Errorf("%v", e)
	}
	why := a.want(200, "*", "GET", "/sessions/s/tasks/1/explain", "")
	if !strings.Contains(why, `"status":"ready"`) {
		t.Errorf("%s", why)
	}
	if got := object(t, a.want(200, "*", "POST", "/engines/"+id+"/heartbeat", `{"epoch":`+epoch+`}`)); got["state"] != "busy" {
		t.Errorf("%v", got)
	}
	if got := object(t, a.want(200, "*", "POST", "/engines/"+id+"/drain", "")); got["state"] != "draining" {
		t.Errorf("%v", got)
	}
	a.want(204, "", "POST", "/engines/"+id+"/logoff", `{"epoch":`+epoch+`}`)
	a.want(404, "*", "GET", "/engines/"+id, "")
	task := object(t, a.want(200, "*", "GET", "/sessions/s/tasks/2", ""))
	if task["state"] != "waiting" || fmt.Sprint(task["retries"]) != "0" || fmt.Sprint(task["evictions"]) != "1" {
		t.Errorf("a logoff costs its tasks nothing: %v", task)
	}
	if list := object(t, a.want(200, "*", "GET", "/engines", "")); len(list["engines"].([]any)) != 0 {
		t.Errorf("%v", list)
	}
}

func TestResultsStreamUntilTheSessionIsOver(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
	r := a.request("GET", "/sessions/s/results", "", "Accept", "application/x-ndjson")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := a.client.Do(r.WithContext(ctx))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	next := func() string {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line != "\n" {
				return line
			}
		}
	}
	a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1},{"seq":2,"payload":2}]}`)
	epoch := a.login("e", 2, "")
	for i, j := range a.tasksOf("e", epoch, 2) {
		a.ends(j, `"outcome":"ok","result":`+strconv.Itoa(i))
		if line := next(); !strings.Contains(line, `"seq":`+strconv.Itoa(i+1)) || !strings.Contains(line, `"result":`+strconv.Itoa(i)) {
			t.Errorf("%s", line)
		}
	}
	a.want(200, "*", "POST", "/sessions/s/close", "")
	if line := next(); !strings.HasPrefix(line, `{"ended":true,"cursor":`) {
		t.Errorf("%s", line)
	}
	if _, err := lines.ReadByte(); err == nil {
		t.Error("something follows the end")
	}
}

func TestCancellingASessionIsToldToWhoCollects(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
	a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1},{"seq":2,"payload":2}]}`)
	a.want(200, "*", "DELETE", "/sessions/s", "")
	page := object(t, a.want(200, "*", "GET", "/sessions/s/results?limit=2&wait_ms=2000", ""))
	for len(page["results"].([]any)) < 2 {
		page = object(t, a.want(200, "*", "GET", "/sessions/s/results?limit=2", ""))
	}
	for _, r := range page["results"].([]any) {
		if r.(map[string]any)["state"] != "cancelled" {
			t.Errorf("%v", r)
		}
	}
	if s := object(t, a.want(200, "*", "DELETE", "/sessions/s", "")); s["state"] != "cancelled" {
		t.Errorf("cancelling it again changes nothing: %v", s)
	}
}

// A token for some queues is for the sessions of those names, and for engines of
// its own.
func TestALimitedTokenHasItsOwnSessionsAndEngines(t *testing.T) {
	a := start(t, httpapi.Options{})
	root := bearer(a.token("", adminToken))
	team := bearer(a.token(root[1][len("Bearer "):], `{"name":"team","scopes":["enqueue","work","read"],"queues":["team-*"]}`))
	a.want(201, "*", "POST", "/sessions", `{"id":"team-1"}`, team...)
	a.want(403, "*", "POST", "/sessions", `{"id":"other"}`, team...)
	a.want(403, "*", "POST", "/sessions", `{}`, team...)
	a.want(201, "*", "POST", "/sessions", `{"id":"other"}`, root...)
	a.want(403, "*", "GET", "/sessions/other", "", team...)
	a.want(403, "*", "POST", "/sessions/other/tasks", `{"tasks":[{"seq":1,"payload":1}]}`, team...)
	a.want(403, "*", "GET", "/sessions/other/results", "", team...)
	a.want(201, "*", "POST", "/sessions/team-1/tasks", `{"tasks":[{"seq":1,"payload":1}]}`, team...)
	if list := object(t, a.want(200, "*", "GET", "/sessions", "", team...))["sessions"].([]any); len(list) != 1 {
		t.Errorf("%v", list)
	}
	in := object(t, a.want(201, "*", "POST", "/engines", `{"id":"e","slots":1}`, team...))
	lease := fmt.Sprintf(`{"engine":"e","epoch":%v,"queues":["team-1"]}`, in["epoch"])
	a.want(403, "*", "POST", "/jobs/lease", fmt.Sprintf(`{"engine":"e","epoch":%v}`, in["epoch"]), team...)
	if got := object(t, a.want(200, "*", "POST", "/jobs/lease", lease, team...))["jobs"].([]any); len(got) != 1 {
		t.Errorf("%v", got)
	}
	a.want(403, "*", "GET", "/engines", "", team...)
	if e := object(t, a.want(200, "*", "GET", "/engines/team%5Ce", "", root...)); e["id"] != `team\e` {
		t.Errorf("%v", e)
	}
	a.want(200, "*", "GET", "/engines/e", "", team...)
	reader := bearer(a.token(root[1][len("Bearer "):], `{"name":"r","scopes":["read"]}`))
	a.want(403, "*", "POST", "/sessions", `{"id":"x"}`, reader...)
	a.want(403, "*", "POST", "/engines", `{"slots":1}`, reader...)
	a.want(403, "*", "POST", "/engines/e/logoff", "", reader...)
	a.want(200, "*", "GET", "/engines", "", reader...)
}
