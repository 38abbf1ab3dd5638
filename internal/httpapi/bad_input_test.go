package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// eachWay runs a test over each transport and format; call sends JSON text in
// the format and returns the answer as JSON text.
func eachWay(t *testing.T, test func(t *testing.T, a *api, call func(method, path, sent string) answer)) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for _, format := range []string{"application/json", msgpackType} {
			test(t, a, func(method, path, sent string) answer {
				t.Helper()
				if sent != "" && format == msgpackType {
					sent = packed(t, sent)
				}
				got := a.call(method, path, sent, "Accept", format, "Content-Type", format)
				if got.body != "" && format == msgpackType {
					got.body = unpacked(t, got.body)
				}
				return got
			})
		}
	})
}

func TestABadEnqueueIsRefusedByTheNameOfItsField(t *testing.T) { // zizq.md 1.4, 1.7; section 7, item 2
	job := func(more string) string { return `{"type":"t","queue":"q","payload":null` + more + `}` }
	cases := map[string]string{ // body: what the answer says
		job(`,"backoff":{}`):                                                  "exponent",
		job(`,"backoff":{"exponent":2}`):                                      "base_ms",
		job(`,"backoff":{"base_ms":1}`):                                       "exponent",
		job(`,"backoff":{"jitter_ms":1}`):                                     "exponent",
		job(`,"backoff":{"exponent":2,"base_ms":1}`):                          "jitter_ms",
		job(`,"backoff":{"exponent":2,"jitter_ms":1}`):                        "base_ms",
		job(`,"backoff":{"base_ms":1,"jitter_ms":1}`):                         "exponent",
		job(`,"backoff":{"exponent":null,"base_ms":1,"jitter_ms":1}`):         "exponent",
		job(`,"backoff":{"exponent":1e300,"base_ms":1,"jitter_ms":1}`):        "exponent",
		job(`,"backoff":{"exponent":2,"base_ms":4294967296,"jitter_ms":1}`):   "base_ms",
		job(`,"backoff":{"exponent":2,"base_ms":-1,"jitter_ms":1}`):           "base_ms",
		job(`,"backoff":{"exponent":2,"base_ms":1.5,"jitter_ms":1}`):          "base_ms",
		job(`,"backoff":[2,1,1]`):                                             "backoff",
		job(`,"retention":{"dead_ms":-1}`):                                    "dead_ms",
		job(`,"retention":7`):                                                 "retention",
		job(`,"priority":"1"`):                                                "priority",
		job(`,"priority":65536`):                                              "priority",
		job(`,"priority":18446744073709551615`):                               "priority",
		job(`,"ready_at":-1`):                                                 "ready_at",
		job(`,"ready_at":1.5`):                                                "ready_at",
		job(`,"retry_limit":-1`):                                              "retry_limit",
		job(`,"unique_while":"queued"`):                                       "unique_while",
		job(`,"unique_key":"k","unique_while":"never"`):                       "unique_while",
		job(`,"unique_key":"k","batch":{"key":"k","when":"true","fold":"1"}`): "unique_key",
		job(`,"batch":{"key":"k","when":"true"}`):                             "fold",
		`{"type":7,"queue":"q","payload":null}`:                               "type",
		`{"type":"t","queue":null,"payload":null}`:                            "queue",
		`{"type":"t","queue":"q"}`:                                            "payload",
		`"text"`:                                                              "object",
		`null`:                                                                "the job is missing",
	}
	for _, field := range []string{"type", "queue"} {
		other := map[string]string{"type": "queue", "queue": "type"}[field]
		for _, c := range []struct{ name, says string }{
			{`a,b`, "contain ','"},
			{`a\u0000`, "contain null bytes"},
			{`*`, "contain '*' (reserved)"},
			{`?`, "contain '?' (reserved)"},
			{`a[`, "contain '[' (reserved)"},
			{`]`, "contain ']' (reserved)"},
			{`{`, "contain '{' (reserved)"},
			{`}`, "contain '}' (reserved)"},
			{`\\`, `contain '\\' (reserved)`},
			{``, "be empty"},
		} {
			cases[`{"`+field+`":"`+c.name+`","`+other+`":"x","payload":null}`] = field + " must not " + c.says
		}
	}
	eachWay(t, func(t *testing.T, a *api, call func(method, path, sent string) answer) {
		for body, says := range cases {
			if got := call("POST", "/jobs", body); got.status != 400 || !strings.Contains(got.body, says) {
				t.Errorf("%s: %d %s, want 400 with %q", body, got.status, got.body, says)
			}
			bulk := `{"jobs":[` + job("") + `,` + body + `]}`
			if got := call("POST", "/jobs/bulk", bulk); got.status != 400 || !strings.Contains(got.body, "jobs[1]") {
				t.Errorf("%s: %d %s, want 400 with jobs[1]", bulk, got.status, got.body)
			}
		}
		a.want(200, `{"count":0}`, "GET", "/jobs/count", "")
	})
}

func TestPayloadsMayBeDeepButNotWithoutEnd(t *testing.T) { // section 7, item 3
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	eachWay(t, func(t *testing.T, a *api, call func(method, path, sent string) answer) {
		got := call("POST", "/jobs", `{"type":"ü\u0001日","queue":"🎈 q","payload":`+deep(124)+`}`)
		if got.status != 201 || !strings.Contains(got.body, "🎈 q") {
			t.Fatalf("%d %.200s", got.status, got.body)
		}
		id := object(t, got.body)["id"].(string)
		if got := call("GET", "/jobs?queue="+url.QueryEscape("🎈 q")+"&type="+url.QueryEscape("ü\x01日"), ""); !strings.Contains(got.body, deep(124)) {
			t.Errorf("%d %.200s", got.status, got.body)
		}
		a.want(204, "", "DELETE", "/jobs/"+id, "")
	})
	a := start(t, httpapi.Options{})
	const far = 200_000
	begin := "\x83\xa4type\xa1t\xa5queue\xa1q\xa7payload"
	a.want(400, "*", "POST", "/jobs", `{"type":"t","queue":"q","payload":`+deep(far)+`}`)
	a.want(400, "*", "POST", "/jobs", begin+strings.Repeat("\x91", far)+"\xc0", "Content-Type", msgpackType)
	a.want(200, `{"count":0}`, "GET", "/jobs/count", "")
}

func TestABadQueryIsRefusedByTheNameOfItsParameter(t *testing.T) { // zizq.md 1.3, 1.12, 1.13; section 7, items 5 and 6
	bad := map[string]string{
		"nonsense=1": `invalid query parameters: unknown parameter \"nonsense\"`, "%zz": "invalid query parameters: ",
		"status=up": "status must be among", "status=ready,up": "up", "id=x": "invalid job ID: ", "id=" + strings.ToUpper(noID[:24]+"a"): "invalid job ID: ",
		"priority=x": "priority", "priority=2..1": "range lower bound exceeds upper bound", "priority=1...2": "priority", "priority=-1": "priority",
		"ready_at=1.5": "ready_at", "attempts=..x": "attempts", "attempts=18446744073709551616": "attempts",
		"filter=" + url.QueryEscape(".a |"): "invalid filter: ", "filter=" + url.QueryEscape("$existing"): "invalid filter: ",
	}
	paged := map[string]string{
		"limit=0": "limit must be between 1 and 2000", "limit=2001": "limit must be between 1 and 2000", "limit=-1": "limit", "limit=1.5": "limit",
		"limit=x": "limit", "order=up": "order must be asc or desc",
	}
	eachWay(t, func(t *testing.T, a *api, call func(method, path, sent string) answer) {
		got := call("POST", "/jobs", `{"type":"t","queue":"q","payload":"some text"}`)
		id := object(t, got.body)["id"].(string)
		refused := func(method, path, sent, says string) {
			t.Helper()
			if got := call(method, path, sent); got.status != 400 || !strings.Contains(got.body, says) {
				t.Errorf("%s %s: %d %s, want 400 with %q", method, path, got.status, got.body, says)
			}
		}
		for query, says := range bad {
			refused("GET", "/jobs?"+query, "", says)
			refused("GET", "/jobs/count?"+query, "", says)
			refused("DELETE", "/jobs?"+query, "", says)
			refused("PATCH", "/jobs?"+query, `{"priority":1}`, says)
		}
		for query, says := range paged {
			refused("GET", "/jobs?"+query, "", says)
			refused("GET", "/jobs/"+id+"/errors?"+query, "", says)
			refused("GET", "/jobs/count?"+query, "", "unknown parameter") // it has no pages
		}
		refused("GET", "/jobs/"+id+"/errors?status=ready", "", "unknown parameter")
		for query, n := range map[string]string{
			"limit=1": "1", "limit=2000": "1", "priority=32768..32768": "1", "priority=..": "1", "priority=0..32767": "0", "attempts=..0": "1",
			"queue=x,q,q&type=t,,u&status=ready,dead": "1", "queue=q&type=u": "0", "queue=": "1", "status=": "1", "id=" + id + "," + noID: "1", "": "1",
			"filter=" + url.QueryEscape(`contains("me te")`): "1", "filter=" + url.QueryEscape(`.[-4:] == "text"`): "1",
			"filter=" + url.QueryEscape(`.[5:]`): "1", "filter=" + url.QueryEscape(`.a.b`): "0", "filter=" + url.QueryEscape(`contains(1)`): "0",
			"filter=" + url.QueryEscape(`null, empty`): "0",
		} {
			if got := call("GET", "/jobs?"+query, ""); got.status != 200 || strings.Count(got.body, `"id":`) != len(n)*int(n[0]-'0') {
				t.Errorf("%s: %d %s, want %s", query, got.status, got.body, n)
			}
			if strings.HasPrefix(query, "limit") {
				continue
			}
			if got := call("GET", "/jobs/count?"+query, ""); got.body != `{"count":`+n+`}` {
				t.Errorf("%s: %d %s, want %s", query, got.status, got.body, n)
			}
		}
		a.want(204, "", "DELETE", "/jobs/"+id, "")
	})
}

// What clients could not read is refused wherever it could be stored, by its
// place: the stream of who gets it would end, again and again.
func TestWhatClientsCannotReadIsRefused(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.client = http.DefaultClient
	deep := strings.Repeat("[", 125) + strings.Repeat("]", 125)
	a.want(200, "*", "PUT", "/inboxes/in", `{"group":{"header":"g"},"batch":{"mode":"fail_first","query":"none"}}`)
	a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
	a.put("")
	j := object(t, a.want(200, "*", "POST", "/jobs/lease", `{"worker":"w","queues":["q"]}`))["jobs"].([]any)[0].(map[string]any)
	settle := func(rest string) string { return fmt.Sprintf(`[{"id":%q,"lease":%q,%s}]`, j["id"], j["lease"], rest) }
	for _, c := range []struct{ method, path, before, after, says string }{
		{"POST", "/jobs", `{"type":"t","queue":"q","payload":`, `}`, "payload"},
		{"POST", "/jobs/bulk", `{"jobs":[{"type":"t","queue":"q","payload":1},{"type":"t","queue":"q","payload":`, `}]}`, "jobs[1]: payload"},
		{"PUT", "/crons/c", `{"entries":[{"name":"e","expression":"* * * * *","job":{"type":"t","queue":"q","payload":`, `}}]}`, "payload"},
		{"POST", "/jobs", `{"type":"t","queue":"q","payload":[1],"batch":{"key":"k","when":"true","fold":"reduce range(200) as $i (1; [.])"},"labels":{"x":"`, `"}}`, "fold"},
		{"POST", "/jobs/settle", strings.TrimSuffix(settle(`"outcome":"ok","result":`), "}]"), `}]`, "result"},
		{"POST", "/jobs/" + j["id"].(string) + "/progress", fmt.Sprintf(`{"lease":%q,"checkpoint":`, j["lease"]), `}`, "checkpoint"},
		{"POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":`, `}]}`, "tasks[0].payload"},
		{"POST", "/inboxes/in/messages", ``, ``, "payload"},
		{"POST", "/inboxes/in/messages/bulk", `{"messages":[{"headers":{"g":"1"},"payload":`, `}]}`, "payload"},
	} {
		for value, at := range map[string]string{deep: "nested deeper", `{"a":[0,1e400]}`: ".a[1] is a number", `{"a":[0,-1e999,` + deep + `]}`: "is"} {
			sent := c.before + value + c.after
			if c.says == "fold" {
				sent = c.before + c.after
				at = "nested deeper"
			}
			got := a.call(c.method, c.path, sent, "g", "1")
			if got.status != 400 && got.status != 422 && !strings.Contains(got.body, `"code"`) || !strings.Contains(got.body, at) || !strings.Contains(got.body, c.says) {
				t.Errorf("%s %s %.200s\n got %d %s\nwant %s", c.method, c.path, sent, got.status, got.body, c.says+at)
			}
		}
	}
	// and the same as MessagePack
	got := a.call("POST", "/jobs", packed(t, `{"type":"t","queue":"q","payload":`+deep+`}`), "Content-Type", msgpackType)
	if got.status != 400 || !strings.Contains(got.body, "nested deeper") {
		t.Errorf("as MessagePack: %d %s", got.status, got.body)
	}
	a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"q","payload":`+deep[1:249]+`}`)
}

func TestWhatIsNoJSONAndNoNameIsTheCallersFault(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.client = http.DefaultClient
	for _, body := range []string{`{`, `{"group":1,`, `{"group":1}x`, `{"nosuch":1,{`, "{\"group\":{\"header\":1},\xff}"} {
		a.want(400, "*", "PUT", "/inboxes/in", body)
	}
	for _, path := range []string{"/queues/%c3%28", "/inboxes/%c3%28", "/crons/%ff", "/jobs/%c3%28", "/sessions/%c3%28", "/locks/%c3%28", "/jobs?queue=%c3%28"} {
		a.want(400, "*", "GET", path, "")
	}
}
