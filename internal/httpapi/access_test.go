package httpapi_test

import (
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/job"
)

var updateAccess = flag.Bool("update", false, "write the table of docs/security.md anew")

// operation is a call of the description, "GET /jobs/{id}".
type operation struct{ method, path string }

// operations are all calls of GET /openapi.json, which TestEveryCallIsDescribed
// holds to the code.
func operations(t *testing.T) (list []operation) {
	t.Helper()
	for path, item := range member(described().doc, "paths") {
		for method := range item.(map[string]any) {
			if m := strings.ToUpper(method); slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, m) {
				list = append(list, operation{m, path})
			}
		}
	}
	order := []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	slices.SortFunc(list, func(a, b operation) int {
		if a.path != b.path {
			return strings.Compare(a.path, b.path)
		}
		return slices.Index(order, a.method) - slices.Index(order, b.method)
	})
	return list
}

const accessMark = "<!-- The table of scopes, by TestTheTableOfScopesIsDocumented with -update. Do not edit. -->\n"

func TestTheTableOfScopesIsDocumented(t *testing.T) {
	const file = "../../docs/security.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), accessMark)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("%s has no place for the table", file)
	}
	var table strings.Builder
	table.WriteString("| Call | Scope | With a token for some queues |\n| --- | --- | --- |\n")
	for _, op := range operations(t) {
		a, ok := httpapi.AccessOf(op.method, filled(op.path, "a", noID))
		if !ok {
			t.Errorf("%s %s is described, and there is no such call", op.method, op.path)
			continue
		}
		scope := "`" + strings.Join(a.OneOf.Names(), "` or `") + "`"
		if a.Public {
			scope = "no token"
		} else if a.OneOf == job.ScopesAll {
			scope = "any"
		}
		table.WriteString("| `" + op.method + " " + op.path + "` | " + scope + " | " + a.Reach + " |\n")
	}
	want := before + accessMark + strings.TrimSuffix(table.String(), "\n") + "\n\n" + after
	if want == string(text) {
		return
	}
	if !*updateAccess {
		t.Fatalf("%s does not have the table of scopes; run: go test ./internal/httpapi -run TableOfScopes -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // documentation
		t.Fatal(err)
	}
}

var variable = regexp.MustCompile(`\{[^}]*\}`)

// filled puts names of a side, "a" or "b", into the variables of a path.
func filled(path, side, id string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	name := side + "1"
	switch {
	case first == "jobs" && !strings.HasPrefix(rest, "budgets"), first == "dead" && !strings.HasPrefix(rest, "groups"):
		name = id
	case first == "dead":
		name = "0000000000000001"
	case first == "replays":
		name = noID
	case first == "tokens":
		name = "0123456789"
	case first == "sessions":
		name = side + "-session"
	case first == "inboxes":
		name = side + "-inbox"
	}
	n := 0
	return variable.ReplaceAllStringFunc(path, func(v string) string {
		switch n++; {
		case n == 1:
			return name
		case strings.Contains(path, "/messages/"):
			return noID
		case first == "sessions" || strings.Contains(path, "/errors/"): // a task, an attempt
			return "1"
		}
		return side + "1"
	})
}

// asked is the body of a call that is about one side.
func asked(op operation, side, id string) string {
	queue := side + "1"
	one := `{"type":"t","queue":"` + queue + `","payload":1}`
	switch op.method + " " + op.path {
	case "POST /jobs":
		return one
	case "POST /jobs/bulk":
		return `{"jobs":[{"type":"t","queue":"a1","payload":1},` + one + `]}`
	case "POST /jobs/success":
		return `{"ids":["` + id + `"]}`
	case "POST /jobs/settle":
		return `[{"id":"` + id + `","outcome":"ok"}]`
	case "POST /jobs/extend":
		return `{"leases":[{"id":"` + id + `","lease":"0000000000000000000000000000000000000000"}]}`
	case "POST /jobs/lease":
		return `{"queues":["` + queue + `"]}`
	case "POST /dead/replay", "POST /dead/delete":
		return `{"filter":{"queue":["` + queue + `"]},"dry_run":true}`
	case "POST /sessions":
		return `{"id":"` + side + `-session"}`
	}
	return "{}"
}

// direct calls the handler without a network: there are thousands of calls.
func direct(h http.Handler, method, path, body, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1"
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Every call, with every scope and without a token, with patterns of queues and
// without, about a queue inside of them and another: it is let in where the table
// of scopes says so, and nowhere else.
func TestEveryCallByEveryScope(t *testing.T) {
	e := newEngine(t)
	h := httpapi.New(httpapi.Options{Engine: e, Inboxes: inboxesOf(t, e)})
	field := func(w *httptest.ResponseRecorder, name string) string {
		var m map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code/100 != 2 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return m[name].(string)
	}
	root := field(direct(h, "POST", "/tokens", adminToken, ""), "token")
	type who struct {
		name, token string
		scope       job.Scopes // 0 = no token
		limited     bool
	}
	all := []who{{name: "nobody"}, {"admin", root, job.ScopeAdmin, false}}
	for _, scope := range []string{"enqueue", "work", "read", "operate"} {
		bit, _ := job.ParseScopes([]string{scope})
		whole := field(direct(h, "POST", "/tokens", `{"name":"`+scope+`","scopes":["`+scope+`"]}`, root), "token")
		some := field(direct(h, "POST", "/tokens", `{"name":"`+scope+`-a","scopes":["`+scope+`"],"queues":["a*"]}`, root), "token")
		all = append(all, who{scope, whole, bit, false}, who{scope + " for a*", some, bit, true})
	}
	calls, refused := 0, 0
	for _, op := range operations(t) {
		a, ok := httpapi.AccessOf(op.method, filled(op.path, "a", noID))
		if !ok {
			t.Fatalf("%s %s does not exist", op.method, op.path)
		}
		method := op.method
		if op.path == "/jobs/take" || op.path == "/events" {
			method = http.MethodHead // the answer has no end
		}
		for _, w := range all {
			for _, side := range []string{"a", "b"} {
				id := noID
				if strings.Contains(asked(op, side, noID)+filled(op.path, side, noID), noID) {
					id = field(direct(h, "POST", "/jobs", `{"type":"t","queue":"`+side+`1","payload":1}`, root), "id")
				}
				if strings.HasPrefix(op.path, "/sessions/") {
					direct(h, "POST", "/sessions", `{"id":"`+side+`-session"}`, root)
				} else if strings.HasPrefix(op.path, "/inboxes/") {
					direct(h, "PUT", "/inboxes/"+side+"-inbox", `{}`, root)
				}
				body := asked(op, side, id)
				if method == http.MethodGet || method == http.MethodHead || method == http.MethodDelete {
					body = ""
				}
				path := filled(op.path, side, id) + "?queue=" + side + "1"
				got := direct(h, method, path, body, w.token)
				allowed := a.Public || w.scope != 0 && w.scope.Allows(a.OneOf) && (!w.limited || a.Inside && (side == "a" || a.Beyond))
				want := 403
				if w.scope == 0 {
					want = 401
				}
				if calls++; !allowed {
					refused++
				}
				if in := got.Code != 401 && got.Code != 403; in != allowed || !allowed && got.Code != want {
					t.Errorf("%s %s %s by %s: got %d %s; the table lets it in: %t", method, path, body, w.name, got.Code, got.Body, allowed)
				}
				if w.limited && op.path != "/openapi.json" && strings.Contains(got.Body.String(), `"b1`) && !strings.Contains(path+body, "b1") {
					t.Errorf("%s %s by %s tells of queue b1: %s", method, path, w.name, got.Body)
				}
			}
		}
	}
	t.Logf("%d calls, %d of them refused", calls, refused)
}

// indirect is a server with things of b, each of which has a mark that no answer
// to a token for a* may hold.
type indirect struct {
	*api
	root, team, other []string          // headers: admin, token for a*, token for b*
	marks             map[string]string // what must not be told, and what it is
}

func startIndirect(t *testing.T) *indirect {
	a := start(t, httpapi.Options{})
	root := a.token("", adminToken)
	scopes := `"scopes":["enqueue","work","read","operate"]`
	return &indirect{
		api: a, root: bearer(root),
		team:  bearer(a.token(root, `{"name":"team",`+scopes+`,"queues":["a*"]}`)),
		other: bearer(a.token(root, `{"name":"other",`+scopes+`,"queues":["b*"]}`)),
		marks: map[string]string{"b-MARK": "the name of the queue", "MARKpayload": "a payload", "MARKtype": "a type", "MARKgroup": "a group", "777777": "a capacity"},
	}
}

// secret puts a job into b.
func (x *indirect) secret(members string) string {
	x.t.Helper()
	id := object(x.t, x.want(201, "*", "POST", "/jobs", `{"type":"MARKtype","queue":"b-MARK","group":"MARKgroup","payload":"MARKpayload"`+members+`}`, x.root...))["id"].(string)
	x.marks[id] = "the id of a job"
	return id
}

// asks sends a call with the token for a*, whose answer must have a status and
// tell nothing of b that was not in the question.
func (x *indirect) asks(status int, method, path, body string, header ...string) string {
	x.t.Helper()
	got := x.call(method, path, body, append(slices.Clone(x.team), header...)...)
	if got.status != status {
		x.t.Errorf("%s %s %s\n got %d %s\nwant %d", method, path, body, got.status, got.body, status)
	}
	for _, mark := range slices.Sorted(maps.Keys(x.marks)) {
		if strings.Contains(got.body, mark) && !strings.Contains(path+body, mark) {
			x.t.Errorf("%s %s %s tells %s: %s", method, path, body, x.marks[mark], got.body)
		}
	}
	return got.body
}

const ownJob = `{"type":"t","queue":"a1","payload":"own"`

func TestAUniqueKeyIsNoWayIntoAnotherQueue(t *testing.T) {
	x := startIndirect(t)
	for _, while := range []string{"queued", "active", "exists"} {
		x.secret(`,"unique_key":"k` + while + `","unique_while":"` + while + `"`)
		for _, own := range []string{"queued", "active", "exists"} {
			members := `,"unique_key":"k` + while + `","unique_while":"` + own + `"}`
			x.asks(403, "POST", "/jobs", ownJob+members)
			x.asks(403, "POST", "/jobs/bulk", `{"jobs":[`+ownJob+`},`+ownJob+members+`]}`)
		}
		twice := x.want(200, "*", "POST", "/jobs", `{"type":"t","queue":"b-MARK","payload":1,"unique_key":"k`+while+`"}`, x.root...)
		if object(t, twice)["duplicate"] != true {
			t.Errorf("the job of b has lost its key: %s", twice)
		}
	}
	// What was taken has left a key of "queued", and the newcomer must not inherit it from b.
	x.want(200, "*", "POST", "/jobs/lease", `{"queues":["b-MARK"],"max":9}`, x.root...)
	x.asks(403, "POST", "/jobs", ownJob+`,"unique_key":"kactive"}`)
	x.asks(201, "POST", "/jobs", ownJob+`,"unique_key":"kqueued"}`)
}

// Nor does a key of a's swallow what others put into b.
func TestAUniqueKeyOfOneQueueSwallowsNothingOfAnother(t *testing.T) {
	x := startIndirect(t)
	own := object(t, x.asks(201, "POST", "/jobs", ownJob+`,"unique_key":"k","unique_while":"exists"}`))["id"].(string)
	x.asks(200, "POST", "/jobs", ownJob+`,"unique_key":"k"}`)                                              // in its queue it holds
	x.asks(200, "POST", "/jobs", `{"type":"t","queue":"a2","payload":1,"unique_key":"k"}`)                 // and in those of its token
	x.want(200, "*", "POST", "/jobs", `{"type":"t","queue":"a1","payload":1,"unique_key":"k"}`, x.root...) // also for others
	got := x.want(403, "*", "POST", "/jobs", `{"type":"t","queue":"b1","payload":1,"unique_key":"k"}`, x.other...)
	if strings.Contains(got, own) || strings.Contains(got, "a1") {
		t.Errorf("the other token is told of a job of a: %s", got)
	}
	x.secret(`,"unique_key":"k"`)
	x.asks(403, "POST", "/jobs", ownJob+`,"unique_key":"k"}`)
	x.want(200, "*", "DELETE", "/jobs?queue=a1,a2,b-MARK", "", x.root...)
	both := `{"jobs":[{"type":"t","queue":"a1","payload":1,"unique_key":"g"},{"type":"t","queue":"b-MARK","payload":1,"unique_key":"g"}]}`
	if list := object(t, x.want(201, "*", "POST", "/jobs/bulk", both, x.root...))["jobs"].([]any); list[1].(map[string]any)["duplicate"] != true {
		t.Errorf("for a token without patterns a key belongs to the server: %v", list)
	}
}

func TestABatchKeyIsNoWayIntoAnotherQueue(t *testing.T) {
	const batch = `,"batch":{"key":"k","when":"true","fold":"[$existing, $new]"}`
	x := startIndirect(t)
	id := x.secret(batch)
	x.asks(403, "POST", "/jobs", ownJob+batch+`}`)
	x.asks(403, "POST", "/jobs/bulk", `{"jobs":[`+ownJob+batch+`},`+ownJob+batch+`}]}`)
	if got := x.want(200, "*", "GET", "/jobs/"+id, "", x.root...); !strings.Contains(got, `"payload":"MARKpayload"`) {
		t.Errorf("the payload of b was changed: %s", got)
	}
	x.want(200, "*", "PATCH", "/jobs/"+id, `{"queue":"a-lent"}`, x.root...)
	x.want(200, "*", "PATCH", "/jobs/"+id, `{"queue":"b-MARK"}`, x.root...)
	x.asks(403, "POST", "/jobs", ownJob+batch+`}`)
	x.want(204, "", "DELETE", "/jobs/"+id, "", x.root...)

	own := object(t, x.asks(201, "POST", "/jobs", ownJob+batch+`}`))["id"].(string)
	x.asks(200, "POST", "/jobs", ownJob+batch+`}`)
	x.secret(batch) // 201: it was not folded into the job of a
	if got := x.asks(200, "GET", "/jobs/"+own, ""); !strings.Contains(got, `"payload":["own","own"]`) {
		t.Errorf("the job of a has %s", got)
	}
	x.asks(403, "POST", "/jobs", ownJob+batch+`}`) // the one that waits now is in b
	x.want(200, "*", "POST", "/jobs", `{"type":"t","queue":"c","payload":1`+batch+`}`, x.root...)
}

func TestAnIdempotencyKeyIsNoWayIntoAnotherQueue(t *testing.T) {
	x := startIndirect(t)
	x.secret(`,"idempotency_key":"k"`)
	own := object(t, x.asks(201, "POST", "/jobs", ownJob+`,"idempotency_key":"k"}`))["id"].(string)
	x.want(200, "*", "PATCH", "/jobs/"+own, `{"queue":"b-MARK"}`, x.root...)
	if got := object(t, x.asks(200, "POST", "/jobs", ownJob+`,"idempotency_key":"k"}`)); got["gone"] != true {
		t.Errorf("of a job that was moved away it is told %v", got)
	}
	x.asks(403, "GET", "/jobs/"+own, "")
}

func TestABudgetIsNoWayIntoAnotherQueue(t *testing.T) {
	x := startIndirect(t)
	x.want(201, "*", "POST", "/budgets", `{"key":"b-budget","allocation":777777,"strategy":{"type":"while_in_flight"}}`, x.root...)
	x.secret(`,"budgets":[{"key":"b-budget","cost":700}]`)
	own := object(t, x.asks(201, "POST", "/jobs", ownJob+`}`))["id"].(string)
	for _, use := range []string{`{"key":"b-budget"}`, `{"key":"b-budget","cost":9999}`, `{"key":"b-none"}`, `{"key":"b-none","create_with":{"allocation":1,"strategy":{"type":"while_in_flight"}}}`} {
		x.asks(403, "POST", "/jobs", ownJob+`,"budgets":[`+use+`]}`)
		x.asks(403, "POST", "/jobs/bulk", `{"jobs":[`+ownJob+`,"budgets":[`+use+`]}]}`)
		x.asks(403, "PUT", "/jobs/"+own+"/budgets", `{"budgets":[`+use+`]}`)
	}
	x.asks(403, "POST", "/jobs/"+own+"/budgets/b-budget", `{"cost":1}`)
	x.asks(403, "POST", "/jobs/budgets/b-budget?queue=a1", `{"cost":1}`)
	x.asks(403, "GET", "/budgets/b-budget", "")
	x.asks(201, "POST", "/jobs", ownJob+`,"budgets":[{"key":"a-budget","create_with":{"allocation":1,"strategy":{"type":"while_in_flight"}}}]}`) // it has operate
	root := x.root[1][len("Bearer "):]
	for _, queues := range []string{``, `,"queues":["a*"]`} {
		name := "only" + strings.Repeat("x", len(queues))
		only := bearer(x.token(root, `{"name":"`+name+`","scopes":["enqueue"]`+queues+`}`))
		if got := x.want(403, "*", "POST", "/jobs", ownJob+`,"budgets":[{"key":"a-new","create_with":{"allocation":1,"strategy":{"type":"while_in_flight"}}}]}`, only...); !strings.Contains(got, "lacks the scope operate") {
			t.Errorf("got %s", got)
		}
		x.want(201, "*", "POST", "/jobs", ownJob+`,"budgets":[{"key":"a-budget","create_with":{"allocation":5,"strategy":{"type":"while_in_flight"}}}]}`, only...) // it is there
	}
	x.want(404, "*", "GET", "/budgets/a-new", "", x.root...)
}

// Names of workers and engines are compared with the token that they belong to.
func TestTheNameOfAWorkerIsNoWayIntoAnotherQueue(t *testing.T) {
	x := startIndirect(t)
	id := x.secret("")
	var registered struct {
		Secret string
		Jobs   []struct{ ID, Lease string }
	}
	text := x.want(200, "*", "POST", "/jobs/lease", `{"queues":["b-MARK"],"worker":"team/w","register":true,"lease_ms":60000}`, x.root...)
	if err := json.Unmarshal([]byte(text), &registered); err != nil || len(registered.Jobs) != 1 || registered.Jobs[0].ID != id {
		t.Fatalf("%v %s", err, text)
	}
	x.marks[registered.Jobs[0].Lease] = "a lease"
	for _, name := range []string{"w", "team/w", "/w"} {
		x.asks(403, "POST", "/jobs/extend", `{"worker":"`+name+`","secret":"`+registered.Secret+`"}`)
		x.asks(200, "POST", "/jobs/lease", `{"queues":["a1"],"worker":"`+name+`"}`)
	}
	x.want(200, "*", "POST", "/jobs/extend", `{"worker":"team/w","secret":"`+registered.Secret+`"}`, x.root...)
	for _, ask := range []string{`"worker":"team\\w"`, `"engine":"team\\w","epoch":1`} {
		x.want(400, "*", "POST", "/jobs/lease", `{"queues":["a1"],`+ask+`}`, x.root...)
	}
	x.want(400, "*", "POST", "/engines", `{"id":"team\\e","slots":1}`, x.root...)

	lease := registered.Jobs[0].Lease
	x.asks(403, "POST", "/jobs/settle", `[{"id":"`+id+`","lease":"`+lease+`","outcome":"ok"}]`)
	x.asks(403, "POST", "/jobs/extend", `{"leases":[{"id":"`+id+`","lease":"`+lease+`"}]}`)
	x.asks(403, "POST", "/jobs/"+id+"/release", `{"lease":"`+lease+`"}`)
	own := object(t, x.asks(201, "POST", "/jobs", ownJob+`}`))["id"].(string)
	x.asks(200, "POST", "/jobs/settle", `[{"id":"`+own+`","lease":"`+lease+`","outcome":"ok"}]`)
	if status := object(t, x.want(200, "*", "GET", "/jobs/"+own, "", x.root...))["status"]; status != "ready" {
		t.Errorf("a lease of another job has settled it: %v", status)
	}

	x.secret("")
	held := x.take("?queue=b-MARK&lease=token", append(slices.Clone(x.root), "Worker-Id", "team/s")...)
	held.next()
	held.close()
	for _, name := range []string{"s", "team/s"} {
		thief := x.take("?queue=a1&lease=token", append(slices.Clone(x.team), "Worker-Id", name)...)
		if j := thief.next(); j["id"] == own {
			own = object(t, x.asks(201, "POST", "/jobs", ownJob+`}`))["id"].(string)
		} else if j["queue"] != "a1" {
			t.Errorf("as %s it is given %v", name, j)
		}
		thief.close()
	}

	in := object(t, x.want(201, "*", "POST", "/engines", `{"id":"team/e","slots":1}`, x.root...))
	epoch, _ := json.Marshal(in["epoch"])
	for _, name := range []string{"e", "team%2Fe"} {
		for _, act := range []string{"heartbeat", "drain", "logoff"} {
			x.asks(404, "POST", "/engines/"+name+"/"+act, `{"epoch":`+string(epoch)+`}`)
		}
		x.asks(404, "GET", "/engines/"+name, "")
	}
	x.asks(404, "POST", "/jobs/lease", `{"engine":"e","epoch":`+string(epoch)+`,"queues":["a1"]}`)
	x.want(200, "*", "GET", "/engines/team%2Fe", "", x.root...)
}

// A dead job of a's, whose key one of b's has by now, and runs through the dead set.
func TestTheDeadOfAnotherQueueAreNotTold(t *testing.T) {
	x := startIndirect(t)
	dies := func(id string) {
		text := x.want(200, "*", "POST", "/jobs/lease", `{"queues":["a1","b-MARK"],"max":5}`, x.root...)
		lease := object(t, text)["jobs"].([]any)[0].(map[string]any)["lease"].(string)
		x.want(200, "*", "POST", "/jobs/settle", `[{"id":"`+id+`","lease":"`+lease+`","outcome":"dead","message":"MARKmessage","error_type":"E"}]`, x.root...)
	}
	x.marks["MARKmessage"] = "an error"
	own := object(t, x.want(201, "*", "POST", "/jobs", ownJob+`,"unique_key":"k","unique_while":"active"}`, x.root...))["id"].(string)
	dies(own)
	gone := x.secret(`,"idempotency_key":"dead"`)
	dies(gone)
	print := object(t, x.want(200, "*", "GET", "/dead/"+gone, "", x.root...))["fingerprint"].(string)
	x.secret(`,"unique_key":"k","unique_while":"active"`)
	delete(x.marks, "MARKmessage") // the job of a died of it too
	x.asks(409, "POST", "/dead/"+own+"/replay", "")
	x.asks(403, "GET", "/dead/"+gone, "")
	x.asks(403, "POST", "/dead/"+gone+"/replay", "")
	x.asks(403, "GET", "/dead/groups/"+print, "")
	x.asks(403, "PATCH", "/dead/groups/"+print, `{"paused":true}`)
	x.asks(200, "GET", "/dead?queue=a1&fingerprint="+print, "")
	x.asks(200, "GET", "/dead/export?queue=a1", "")
	for _, filter := range []string{`"fingerprint":["` + print + `"]`, `"id":["` + gone + `"]`, `"group":["MARKgroup"]`} {
		x.asks(403, "POST", "/dead/replay", `{"filter":{`+filter+`}}`)
		x.asks(200, "POST", "/dead/replay", `{"filter":{"queue":["a1"],`+filter+`},"dry_run":true}`)
		x.asks(202, "POST", "/dead/delete", `{"filter":{"queue":["a1"],"text":"none",`+filter+`}}`)
	}
	run := object(t, x.want(202, "*", "POST", "/dead/replay", `{"filter":{"queue":["b-MARK"],"text":"none"}}`, x.root...))["id"].(string)
	x.asks(403, "GET", "/replays/"+run, "")
	x.asks(403, "DELETE", "/replays/"+run, "")
	x.want(200, "*", "GET", "/dead/"+gone, "", x.root...) // it is there yet
}

func TestIDsAndGroupsAreNoWayIntoAnotherQueue(t *testing.T) {
	x := startIndirect(t)
	id := x.secret("")
	x.want(201, "*", "POST", "/sessions", `{"id":"a-session"}`, x.root...)
	for _, name := range []string{"MARKsession", "a-z-session"} {
		x.want(201, "*", "POST", "/sessions", `{"id":"`+name+`"}`, x.root...)
	}
	x.marks["MARKsession"] = "a session"
	task := object(t, x.want(201, "*", "POST", "/sessions/MARKsession/tasks", `{"tasks":[{"seq":7,"payload":"MARKpayload"}]}`, x.root...))
	_ = task
	x.want(200, "*", "PUT", "/inboxes/a-inbox", ordersInbox, x.root...)
	x.want(200, "*", "PUT", "/inboxes/b-MARK-inbox", ordersInbox, x.root...)
	message := object(t, x.want(201, "*", "POST", "/inboxes/b-MARK-inbox/messages", `{"order":"MARKpayload"}`, append(slices.Clone(x.root), "X-Correlate-Id", "m1")...))["id"].(string)
	x.want(201, "*", "POST", "/crons/MARKcron/entries", `{"name":"e","expression":"0 0 1 1 *","job":{"type":"MARKtype","queue":"b-MARK","payload":1}}`, x.root...)
	for _, c := range []struct {
		status             int
		method, path, body string
	}{
		{404, "GET", "/sessions/a-session/tasks/" + id, ""},
		{404, "GET", "/sessions/a-session/tasks/7", ""},
		{404, "GET", "/sessions/a-session/tasks/" + id + "/explain", ""},
		{400, "POST", "/sessions/a-session/tasks", `{"tasks":[{"seq":1,"payload":1,"needs":[7]}]}`},
		{403, "GET", "/sessions/MARKsession/results", ""},
		{200, "GET", "/sessions?limit=1", ""},
		{200, "GET", "/sessions?limit=1&after=a-session", ""},
		{200, "GET", "/sessions?limit=2", ""},
		{200, "GET", "/sessions", ""},
		{200, "GET", "/queues?rates=true", ""},
		{200, "GET", "/inboxes", ""},
		{404, "GET", "/inboxes/a-inbox/messages/" + id, ""},
		{404, "GET", "/inboxes/a-inbox/messages/" + message, ""},
		{404, "GET", "/inboxes/a-inbox/messages/m1", ""},
		{404, "PATCH", "/inboxes/a-inbox/messages/" + message, `{"payload":1}`},
		{404, "DELETE", "/inboxes/a-inbox/messages/" + message, ""},
		{403, "GET", "/inboxes/b-MARK-inbox/messages", ""},
		{403, "GET", "/crons", ""},
		{403, "GET", "/crons/MARKcron", ""},
		{403, "POST", "/crons/MARKcron/entries/e/run", ""},
		{403, "PUT", "/crons/a", `{"entries":[]}`},
		{403, "GET", "/locks", ""},
		{403, "POST", "/locks/b-lock", `{"most_ms":1000}`},
		{403, "POST", "/locks/b-lock/break", ""},
		{403, "GET", "/locks/inbox%2Fb-MARK-inbox", ""},
		{403, "GET", "/metrics", ""},
		{403, "GET", "/audit", ""},
		{403, "GET", "/budgets", ""},
		{403, "GET", "/engines", ""},
		{200, "GET", "/jobs?queue=a1&id=" + id, ""},
		{200, "GET", "/jobs/count?queue=a1&id=" + id, ""},
		{200, "DELETE", "/jobs?queue=a1&id=" + id, ""},
		{200, "PATCH", "/jobs?queue=a1&id=" + id, `{"priority":1}`},
		{403, "PATCH", "/jobs?queue=a1&id=" + id, `{"queue":"b-MARK"}`},
		{403, "PATCH", "/jobs/" + id, `{"queue":"a1"}`},
		{200, "POST", "/dead/replay", `{"filter":{"queue":["a1"],"id":["` + id + `"]},"dry_run":true}`},
		{403, "GET", "/jobs/" + id + "/explain", ""},
		{403, "GET", "/jobs/" + id + "/errors/1", ""},
		{403, "POST", "/jobs/" + id + "/progress", `{}`},
		{403, "POST", "/queues/b-MARK/hold", `{"group":"MARKgroup","for_ms":1000}`},
	} {
		x.asks(c.status, c.method, c.path, c.body)
	}
	if next := object(t, x.asks(200, "GET", "/sessions?limit=1", ""))["next"]; next != "a-session" {
		t.Errorf("the next page begins behind %v", next)
	}
	x.want(200, "*", "GET", "/jobs/"+id, "", x.root...)
}
