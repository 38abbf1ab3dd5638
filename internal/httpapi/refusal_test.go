package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// A body that was forgotten is refused by what it would have to hold, wherever one is wanted.
func TestAnEmptyBodyIsToldWhatIsWanted(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.client = http.DefaultClient
	a.want(200, "*", "PUT", "/inboxes/in", `{"group":{"header":"g"},"batch":{"query":"none"}}`)
	a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
	for call, member := range map[string]string{
		"POST /budgets": "allocation", "PUT /budgets/b": "allocation", "PATCH /budgets/b": "strategy", "PUT /jobs/" + noID + "/budgets": "budgets",
		"PATCH /jobs/budgets/b?queue=q": "cost", "POST /locks/x": "lock_at_most_ms", "POST /locks/x/extend": "token",
		"POST /jobs": "payload", "POST /jobs/bulk": "jobs", "POST /jobs/success": "ids", "POST /jobs/settle": "outcome", "POST /jobs/extend": "leases",
		"POST /jobs/lease": "queues", "PATCH /jobs?queue=q": "priority", "PATCH /jobs/" + noID: "priority", "POST /jobs/" + noID + "/failure": "message",
		"POST /jobs/" + noID + "/progress": "checkpoint", "PUT /crons/g": "entries", "PATCH /crons/g": "paused", "POST /crons/g/entries": "expression",
		"PUT /crons/g/entries/e": "expression", "PATCH /crons/g/entries/e": "paused", "PATCH /queues/q": "concurrency",
		"PUT /inboxes/in": "group", "POST /inboxes/in/preview": "group", "POST /inboxes/in/messages": "payload", "POST /inboxes/in/messages/bulk": "messages",
		"POST /inboxes/in/lease": "worker", "POST /inboxes/in/actions": "action", "PATCH /inboxes/in/messages/1": "payload",
		"POST /sessions/s/tasks": "tasks", "PATCH /sessions/s": "options", "POST /engines": "slots", "POST /engines/e/heartbeat": "epoch",
	} {
		method, path, _ := strings.Cut(call, " ")
		for _, format := range []string{"application/json", msgpackType} {
			got := a.call(method, path, "", "Content-Type", format)
			text := got.body
			if (got.status != 400 && got.status != 422) || !strings.Contains(text, "empty") || !strings.Contains(text, "JSON") || !strings.Contains(text, member) {
				t.Errorf("%s as %s: %d %s, want what is to be sent, with %s", call, format, got.status, text, member)
			}
		}
	}
	a.want(400, `{"error":"the body is empty; send a JSON object with cost","code":"invalid"}`, "PATCH", "/jobs/budgets/b?queue=q", "")
}

// What is wrong with one value is no reason to keep quiet about another one.
func TestAWrongTypeHidesNothing(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.client = http.DefaultClient
	a.want(200, "*", "PUT", "/inboxes/in", `{"group":{"header":"g"},"batch":{"query":"none"}}`)
	a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               []string // each in a line of its own
	}{
		{"PATCH", "/jobs?queue=q", `{"expires_at":"x","run_timeout_ms":0,"queue":"a,b","backoff":{"exponent":1}}`, 422, []string{
			"expires_at must be a whole number from 1 to 18446744073709551615", "run_timeout_ms must be a whole number from 1 to 18446744073709551615",
			"queue must not contain ','", "backoff.base_ms is missing", "backoff.jitter_ms is missing",
		}},
		{"PATCH", "/jobs?queue=q", `{"ready_at":-1,"start_timeout_ms":-1,"retention":{"dead_ms":-1}}`, 422, []string{
			"ready_at must be a whole number from 0 to 18446744073709551615", "start_timeout_ms must be a whole number from 1 to 18446744073709551615",
			"retention.dead_ms must be a whole number from 0 to 18446744073709551615",
		}},
		{"PATCH", "/jobs?queue=q", `{"retry":{"limit":"x"},"priority":null}`, 422, []string{
			`retry is refused: retry policy refused: limit: limit \"x\": use a whole number from 0 to 4294967295, unlimited or none`, "priority must not be null; leave it out instead",
		}},
		{"POST", "/budgets", `{"allocation":"x","strategy":{"type":"y","duration_ms":-1,"burst":0}}`, 422, []string{
			"key is missing", "allocation must be a whole number", "strategy.type must be one of while_in_flight time_based",
			"strategy.duration_ms must be a whole number from 1 to 18446744073709551615", "strategy.burst must be a whole number from 1 to 1000000",
		}},
		{"PUT", "/jobs/" + noID + "/budgets", `{"budgets":[{"key":"a,b","cost":0},{"cost":2},{"key":"c","create_with":{"allocation":0}}]}`, 400, []string{
			"budgets[0].key must not contain ','", "budgets[0].cost must be a whole number from 1 to 1000000", "budgets[1].key is missing",
			"budgets[2].create_with.allocation must be a whole number from 1 to 1000000",
		}},
		{"POST", "/locks/x", `{"lock_at_most_ms":"a","lock_at_least_ms":-1,"owner":3}`, 400, []string{
			"lock_at_most_ms must be a whole number", "lock_at_least_ms must be a whole number from 0 to 2592000000", "owner must be a string",
		}},
		{"POST", "/locks/x", `{"lock_at_most_ms":0,"lock_at_least_ms":-1}`, 400, []string{
			"lock_at_most_ms must be a whole number from 1 to 2592000000", "lock_at_least_ms must be a whole number from 0 to 2592000000",
		}},
		{"POST", "/locks/x/extend", `{"token":"y","lock_at_most_ms":0}`, 400, []string{"token must be the token", "lock_at_most_ms must be a whole number from 1"}},
		{"POST", "/jobs/lease", `{"max":0,"lease_ms":"x","wait_ms":-1,"worker":"a,b","queues":["q","a,b","*"]}`, 400, []string{
			"max must be a whole number from 1 to 1000", "lease_ms must be a whole number", "wait_ms must be a whole number from 0 to 300000",
			"worker must not contain ','", "queues[1] must not contain ','", "queues[2] must not contain '*' (reserved)",
		}},
		{"POST", "/jobs/extend", `{"ms":"x","leases":[{"id":"y","lease":"z","ms":-1},{"id":3}]}`, 400, []string{
			"ms must be a whole number", "leases[1].id must be a string",
			"leases[0].id is refused: ", "leases[0].lease is refused: ", "leases[0].ms must be a whole number from 0 to 86400000", "leases[1].lease is refused: ",
		}},
		{"POST", "/jobs/extend", `{"leases":[{"id":"y","lease":"z","ms":-1}]}`, 400, []string{
			"leases[0].id ", "leases[0].lease ", "leases[0].ms must be a whole number from 0 to 86400000",
		}},
		{"POST", "/dead/replay", `{"rate":"x","ramp_ms":-1,"budget":"y","place":"z","filter":{"reason":["no"],"fingerprint":["f"],"text":3}}`, 400, []string{
			"rate must be a number", "ramp_ms must be between 0 and a day", "budget must be fresh or remaining", "place must be keep, front or back",
			`filter.reason \"no\"`, `filter.fingerprint \"f\"`, "filter.text must be a string",
		}},
		{"POST", "/dead/delete", `{"rate":-1,"ramp_ms":"x"}`, 400, []string{"rate must be between", "ramp_ms must be a whole number", "filter is empty"}},
		{"POST", "/dead/" + noID + "/replay", `{"budget":"y","place":3}`, 400, []string{"budget must be fresh or remaining", "place must be a string"}},
		{"POST", "/tokens", `{"name":"a,b","scopes":["x"],"queues":3}`, 400, []string{"name must be at most", `there is no scope \"x\"; choose from`, "queues must be an array"}},
		{"POST", "/sessions", `{"id":"a,b","service":3,"options":{"weight":"x","max_copies":0}}`, 400, []string{
			"id must not contain ','", "service must be a string", "options.weight must be a whole number from 0 to 9", "options.max_copies must be a whole number from 1 to 16",
		}},
		{"PATCH", "/sessions/s", `{"suspend":"x","options":{"weight":"x","max_copies":0}}`, 400, []string{
			"suspend must be true or false", "options.weight must be a whole number from 0 to 9", "options.max_copies must be a whole number from 1 to 16",
		}},
		{"POST", "/engines", `{"id":"a,b","host":"c,d","slots":0,"properties":3}`, 400, []string{
			"id must not contain ','", "host must not contain ','", "slots must be a whole number from 1 to 10000", "properties must be an object",
		}},
		{"POST", "/engines/e/heartbeat", `{"epoch":0,"stopped":["x"],"running":3}`, 400, []string{"epoch must be", "stopped[0] is no token", "running must be an array"}},
		{"POST", "/inboxes/in/lease", `{"lease_ms":0,"wait_ms":"x","worker":"a,b"}`, 400, []string{
			"lease_ms must be a whole number from 1 to 86400000", "wait_ms must be a whole number", "worker must not contain ','",
		}},
		{"POST", "/queues/q/hold", `{"for_ms":-1,"group":3}`, 400, []string{"for_ms must be a whole number from 0", "group must be a string"}},
		{"POST", "/queues/q/breaker", `{"state":"x","group":3}`, 400, []string{"state must be one of closed open auto", "group must be a string"}},
	} {
		text := a.want(c.status, "*", c.method, c.path, c.body)
		lines := strings.Split(object(t, text)["error"].(string), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%s %s %s: %s, want %d problems", c.method, c.path, c.body, text, len(c.want))
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %s %s: %s, want %s", c.method, c.path, c.body, text, want)
			}
		}
	}
}

func TestAFaultOfACronEntryIsNamedByItsPlace(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.client = http.DefaultClient
	entry := func(name, rest string) string { return `{"name":"` + name + `","expression":"* * * * *",` + rest + `}` }
	good := `"job":{"type":"t","queue":"q","payload":1}`
	two := func(second string) string { return `{"entries":[` + entry("a", good) + `,` + second + `]}` }
	for body, want := range map[string]string{
		two(`{"name":"b","expression":"* * *",` + good + `}`):                                  "entries[1].expression ",
		two(`{"name":"b","expression":3,` + good + `}`):                                        "entries[1].expression must be a string",
		two(entry("b", `"timezone":"Mars",`+good)):                                             "entries[1].timezone ",
		two(entry("b", `"missed":"x",`+good)):                                                  "entries[1].missed must be one of once skip all",
		two(entry("a", good)):                                                                  "entries[1].name: the group has two entries of the name 'a'",
		two(entry("a,b", good)):                                                                "entries[1].name must not contain ','",
		two(entry("b", `"job":{"type":"t","queue":"a,b","payload":1}`)):                        "entries[1].job.queue must not contain ','",
		two(entry("b", `"job":{"type":"t","queue":"q"}`)):                                      "entries[1].job.payload is missing",
		two(entry("b", `"job":{"type":"t","queue":"q","payload":1,"ready_at":5}`)):             "entries[1].job.ready_at cannot be set in a cron entry: its expression says when",
		two(entry("b", `"job":{"type":"t","queue":"q","payload":1,"backoff":{"exponent":1}}`)): "entries[1].job.backoff.base_ms is missing",
		two(entry("b", `"job":{"type":"t","queue":"q","payload":1,"retry":{"limit":-1}}`)):     "entries[1].job.retry is refused: ",
		two(entry("b", `"job":3`)):                                                             "entries[1].job must be an object",
		two(entry("b", `"job":null`)):                                                          "entries[1].job is missing",
		two(`3`):                                                                               "entries[1] must be an object",
		two(`null`):                                                                            "entries[1]",
		two(entry("b", `"job":{"type":"t","queue":"q","payload":"`+strings.Repeat("x", 1<<16)+`"}`)): "entries[1].job.payload must not be larger than 65536 bytes in a cron entry",
		two(entry("b", `"job":{"type":"t","queue":"q","payload":1,"budgets":[{"key":"none"}]}`)):     "cron entry 'b': budget 'none' does not exist",
		`{"timezone":"Mars","entries":[]}`: "timezone ",
		`{"timezone":3,"missed":"x","paused":"y","entries":[{"expression":"x","job":{"type":7}},{}]}`: "entries[0].job.type must be a string",
	} {
		got := a.call("PUT", "/crons/g", body)
		if text, _ := object(t, got.body)["error"].(string); got.status/100 != 4 || !strings.HasPrefix(text, want) && !strings.Contains(text, "\n"+want) {
			t.Errorf("%.300s: %d %s, want %s", body, got.status, got.body, want)
		}
	}
	all := object(t, a.want(400, "*", "PUT", "/crons/g", `{"timezone":3,"missed":"x","paused":"y","entries":[{"name":"a","expression":4,"job":{"type":7}},{"name":"b"}]}`))["error"].(string)
	for _, want := range []string{"timezone must be a string", "missed must be one of", "paused must be true or false", "entries[0].expression must be a string", "entries[0].job.type must be a string", "entries[1].expression is missing", "entries[1].job is missing"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s, want also %s", all, want)
		}
	}
	a.want(200, "*", "PUT", "/crons/g", two(entry("b", good)))
	for body, want := range map[string]string{
		`{"name":"c","expression":"x",` + good + `}`: "expression ", entry("c", `"job":{"type":"t","queue":"*","payload":1}`): "job.queue must not contain '*'",
		entry("c", `"job":{"type":"t","queue":"q","payload":1,"run_timeout_ms":0}`): "job.run_timeout_ms must be a whole number from 1", entry("c", `"timezone":"Mars",`+good): "timezone ",
	} {
		for call, sent := range map[string]string{"POST /crons/g/entries": body, "PUT /crons/g/entries/c": strings.Replace(body, `"name":"c",`, "", 1)} {
			method, path, _ := strings.Cut(call, " ")
			if text := object(t, a.want(400, "*", method, path, sent))["error"].(string); !strings.HasPrefix(text, want) {
				t.Errorf("%s %s: %s, want %s", call, sent, text, want)
			}
		}
	}
	a.want(404, "*", "GET", "/crons/g/entries/c", "")
}

// A null that would change nothing is a mistake of who sent it.
func TestANullThatWouldBeLostIsRefused(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.client = http.DefaultClient
	a.want(201, "*", "POST", "/budgets", `{"key":"b","allocation":3,"strategy":{"type":"time_based","duration_ms":1000,"burst":5}}`)
	was := a.want(200, "*", "GET", "/budgets/b", "")
	for body, field := range map[string]string{
		`{"allocation":null}`: "allocation", `{"strategy":null}`: "strategy", `{"strategy":{"type":null}}`: "strategy.type",
		`{"strategy":{"duration_ms":null}}`: "strategy.duration_ms", `{"strategy":{"type":"time_based","duration_ms":null}}`: "strategy.duration_ms",
	} {
		a.want(422, `{"error":"`+field+` must not be null; leave it out instead","code":"unprocessable"}`, "PATCH", "/budgets/b", body)
	}
	a.want(422, `{"error":"strategy.type must not be null; leave it out instead","code":"unprocessable"}`, "POST", "/budgets", `{"key":"c","allocation":1,"strategy":{"type":null}}`)
	for _, call := range []string{"PATCH /budgets/b", "POST /budgets", "PUT /budgets/b", "POST /locks/l", "PATCH /queues/q", "PATCH /jobs?queue=q", "POST /jobs/lease", "POST /dead/replay", "PATCH /crons/g", "PUT /crons/g", "POST /tokens"} {
		method, path, _ := strings.Cut(call, " ")
		if got := a.call(method, path, "null"); got.status/100 != 4 || !strings.Contains(got.body, `"the body must be an object"`) {
			t.Errorf("%s with null: %d %s", call, got.status, got.body)
		}
	}
	if is := a.want(200, "*", "GET", "/budgets/b", ""); is != was {
		t.Errorf("it was %s and is %s", was, is)
	}
	a.want(200, "*", "PATCH", "/budgets/b", `{"strategy":{"type":"while_in_flight","duration_ms":null,"burst":null}}`) // which has neither
}

func TestAnInboxThatIsNotThereIsNotFoundWhateverIsSent(t *testing.T) {
	a := start(t, httpapi.Options{BodyMax: 100})
	a.client = http.DefaultClient
	for _, call := range []string{"POST /messages", "POST /messages/bulk", "PATCH /messages/1", "POST /actions", "POST /lease"} {
		method, path, _ := strings.Cut(call, " ")
		for _, body := range []string{"", `{"a"`, `null`, `{"nosuch":1}`, strings.Repeat(" ", 200)} {
			for _, format := range []string{"application/json", msgpackType, "text/plain"} {
				got := a.call(method, "/inboxes/nope"+path, body, "Content-Type", format)
				if got.status != 404 || !strings.Contains(got.body, "there is no inbox") {
					t.Errorf("%s %q as %s: %d %s", call, body, format, got.status, got.body)
				}
			}
		}
	}
}

func TestANameOfTheCallerThatIsTooLongIsRefusedByEveryCall(t *testing.T) {
	a := start(t, httpapi.Options{})
	for _, name := range []string{strings.Repeat("a", 129), "a\tb"} {
		for _, call := range []string{
			"GET /jobs", "POST /jobs", "POST /jobs/bulk", "POST /jobs/lease", "POST /jobs/settle", "POST /jobs/extend", "POST /jobs/success",
			"POST /jobs/" + noID + "/success", "PATCH /queues/q", "POST /locks/l", "DELETE /jobs?queue=q", "GET /dead/export", "GET /health",
			"GET /metrics", "GET /openapi.json", "GET /version", "POST /inboxes/in/messages", "GET /sessions/s/results", "POST /backup", "GET /jobs/take", "GET /events",
		} {
			method, path, _ := strings.Cut(call, " ")
			got := a.call(method, path, "", "Reprise-Actor", name)
			if got.status != 400 || got.body != `{"error":"the header Reprise-Actor must be a name of at most 128 printable bytes","code":"invalid"}` {
				t.Fatalf("%s: %d %s", call, got.status, got.body)
			}
		}
	}
	a.want(200, `{"deleted":0}`, "DELETE", "/jobs?queue=q", "", "Reprise-Actor", strings.Repeat("a", 128))
}

func TestAPatchOfJobsWithTooMuchOrTwiceTheSameIsUnprocessable(t *testing.T) {
	a := start(t, httpapi.Options{})
	many := make([]string, 257)
	for i := range many {
		many[i] = `"m` + strings.Repeat("x", i) + `":1`
	}
	for _, path := range []string{"/jobs?queue=q", "/jobs/" + a.enqueue("q", "1", "")} {
		a.want(422, `{"error":"the body must not have more than 256 fields","code":"invalid"}`, "PATCH", path, `{`+strings.Join(many, ",")+`}`)
		a.want(422, `{"error":"priority is there twice","code":"invalid"}`, "PATCH", path, `{"priority":1,"priority":2}`)
		a.want(422, `{"error":"retention.dead_ms is there twice\nready_at must be a whole number from 0 to 18446744073709551615","code":"invalid"}`,
			"PATCH", path, `{"retention":{"dead_ms":1,"dead_ms":2},"ready_at":"x"}`)
		a.want(400, "*", "PATCH", path, `{"priority":`)
	}
	a.want(422, `{"error":"allocation is there twice","code":"unprocessable"}`, "PATCH", "/budgets/b", `{"allocation":1,"allocation":2}`)
	a.want(400, `{"error":"paused is there twice","code":"invalid"}`, "PATCH", "/queues/q", `{"paused":true,"paused":false}`)
}

// However much is wrong with a body, the answer stays short.
func TestOnlySoManyProblemsOfABodyAreTold(t *testing.T) {
	a := start(t, httpapi.Options{})
	got := a.call("POST", "/jobs/extend", `{"leases":[`+strings.Repeat("{},", 100_000)+`{}]}`)
	if got.status != 400 || len(got.body) > 16<<10 || !strings.Contains(got.body, "leases[0].id") {
		t.Errorf("%d, %d bytes: %.200s", got.status, len(got.body), got.body)
	}
}

// What a cron group was read as may be sent back, also by who wants every member known.
func TestACronGroupMayBeSentBackAsItWasRead(t *testing.T) {
	a := start(t, httpapi.Options{})
	strict := []string{"Prefer", "handling=strict"}
	a.want(200, "*", "PUT", "/crons/g", `{"timezone":"Europe/Berlin","entries":[{"name":"e","expression":"@daily","job":{"type":"t","queue":"q","payload":1}}]}`)
	a.want(200, "*", "PATCH", "/crons/g/entries/e", `{"paused":true}`)
	group := a.want(200, "*", "GET", "/crons/g", "")
	a.want(200, group, "PUT", "/crons/g", group, strict...)
	entry := a.want(200, "*", "GET", "/crons/g/entries/e", "")
	a.want(200, entry, "PUT", "/crons/g/entries/e", entry, strict...)
	a.want(409, "*", "POST", "/crons/g/entries", entry, strict...)
	a.want(400, "*", "PUT", "/crons/g/entries/e", strings.Replace(entry, `"paused_at"`, `"paused_since"`, 1), strict...)
}

// A budget that is made for a job may leave its strategy out; a call to budgets may not.
func TestABudgetMadeForAJobNeedsNoStrategy(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"q","payload":1,"budgets":[{"key":"k","create_with":{"allocation":3}}]}`)
	if got := a.want(200, "*", "GET", "/budgets/k", ""); !strings.Contains(got, `"strategy":{"type":"while_in_flight"}`) {
		t.Error(got)
	}
	a.want(200, "*", "PUT", "/crons/g", `{"entries":[{"name":"e","expression":"@daily","job":{"type":"t","queue":"q","payload":1,"budgets":[{"key":"m","create_with":{"allocation":3}}]}}]}`)
	a.want(422, "*", "POST", "/jobs", `{"type":"t","queue":"q","payload":1,"budgets":[{"key":"n","create_with":{"allocation":3,"strategy":null}}]}`)
	a.want(422, "*", "POST", "/budgets/x", `{"allocation":3}`)
}
