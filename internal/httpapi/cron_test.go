package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/wire"
)

const mail = `"job":{"type":"mail","queue":"q","payload":{"n":1}}`

func TestCronGroupsAndEntriesHaveTheShapesOfTheReference(t *testing.T) { // reference 1.18
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(200, `{"crons":[]}`, "GET", "/crons", "")
		a.want(200, `{"name":"empty","paused":false,"entries":[]}`, "PUT", "/crons/empty", `{"entries":[]}`)
		never := `{"name":"e","expression":"0 0 30 2 *","paused":false,"job":{"type":"mail","queue":"q","priority":32768,"payload":{"n":1}}}`
		a.want(201, never, "POST", "/crons/empty/entries", `{"name":"e","expression":"0 0 30 2 *",`+mail+`}`)
		a.want(200, never, "GET", "/crons/empty/entries/e", "")
		a.want(200, `{"name":"empty","paused":false,"entries":[`+never+`]}`, "GET", "/crons/empty", "")
		a.want(409, `{"error":"cron entry 'e' already exists in group 'empty'","code":"exists"}`, "POST", "/crons/empty/entries", `{"name":"e","expression":"* * * * *",`+mail+`}`)
		full := `{"name":"x","expression":"0 0 30 2 *","timezone":"Asia/Kathmandu","missed":"all","paused":false,` +
			`"job":{"type":"t","queue":"q","priority":5,"payload":null,"retry_limit":3,"backoff":{"exponent":2,"base_ms":10,"jitter_ms":0},` +
			`"retention":{"dead_ms":7},"group":"g","run_timeout_ms":9,"start_timeout_ms":8,"copies":2,"requires":["os = linux"],"labels":{"team":"x"},` +
			`"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","place":"front"}}`
		a.want(200, full, "PUT", "/crons/new/entries/x", strings.Replace(full, `"name":"x"`, `"name":"the one of the path wins"`, 1))
		a.want(200, `{"crons":["empty","new"]}`, "GET", "/crons", "")
		var e wire.CronEntry
		read := func(into any, status int, method, path, body string) {
			t.Helper()
			d := json.NewDecoder(strings.NewReader(a.want(status, "*", method, path, body)))
			d.DisallowUnknownFields()
			if err := d.Decode(into); err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
		}
		read(&e, 200, "PATCH", "/crons/new/entries/x", `{"paused":true}`)
		if e.PausedAt == 0 || e.ResumedAt != 0 || !*e.Paused || e.Job.Labels["team"] != "x" {
			t.Errorf("%+v", e)
		}
		var g wire.CronGroup
		read(&g, 200, "PATCH", "/crons/new", `{"paused":true}`)
		if g.PausedAt == 0 || g.ResumedAt != 0 || !*g.Paused || len(g.Entries) != 1 {
			t.Errorf("%+v", g)
		}
		g = wire.CronGroup{}
		read(&g, 200, "PUT", "/crons/new", `{"timezone":"Europe/Berlin","missed":"skip","entries":[{"name":"y","expression":"@daily",`+mail+`}]}`)
		if !*g.Paused || g.Timezone != "Europe/Berlin" || g.Missed != "skip" || len(g.Entries) != 1 || g.Entries[0].Name != "y" || g.Entries[0].NextEnqueueAt == 0 {
			t.Errorf("%+v", g)
		}
		a.want(204, "", "DELETE", "/crons/new/entries/y", "")
		a.want(204, "", "DELETE", "/crons/empty", "")
		a.want(200, `{"deleted":1}`, "DELETE", "/crons", "")
		a.want(200, `{"deleted":0}`, "DELETE", "/crons", "")
	})
}

func TestCronNamesAreSegmentsOfThePath(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PUT", "/crons/my%20app%2Fv2/entries/a%2Fb", `{"expression":"0 0 30 2 *",`+mail+`}`)
	a.want(200, `{"crons":["my app/v2"]}`, "GET", "/crons", "")
	a.want(200, "*", "GET", "/crons/my%20app%2Fv2/entries/a%2Fb", "")
	a.want(201, "*", "POST", "/crons/my%20app%2Fv2/entries/a%2Fb/run", "")
	a.want(204, "", "DELETE", "/crons/my%20app%2Fv2/entries/a%2Fb", "")
	a.want(200, `{"name":"preview","paused":false,"entries":[]}`, "PUT", "/crons/preview", `{"entries":[]}`)
	a.want(200, `{"name":"preview","paused":false,"entries":[]}`, "GET", "/crons/preview", "")
	for _, path := range []string{"/crons/", "/crons/a/", "/crons/a/entries/", "/crons/a/b", "/crons/a/entries/b/c", "/crons/a/entries/b/run/x"} {
		a.want(404, `{"error":"not found","code":"not_found"}`, "GET", path, "")
	}
	for path, allow := range map[string]string{
		"/crons": "DELETE, GET, HEAD", "/crons/a": "DELETE, GET, HEAD, PATCH, PUT", "/crons/a/entries": "POST",
		"/crons/a/entries/b": "DELETE, GET, HEAD, PATCH, PUT", "/crons/a/entries/b/run": "POST",
	} {
		if got := a.call("OPTIONS", path, ""); got.status != 405 || got.header.Get("Allow") != allow {
			t.Errorf("%s: %d, allow %q", path, got.status, got.header.Get("Allow"))
		}
	}
}

func TestRunningACronEntryAnswersLikeAnEnqueue(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PUT", "/crons/g/entries/e", `{"expression":"0 0 30 2 *",`+mail+`}`)
	j := object(t, a.want(201, "*", "POST", "/crons/g/entries/e/run", ""))
	labels := j["labels"].(map[string]any)
	if j["duplicate"] != false || j["status"] != "ready" || j["type"] != "mail" || len(labels) != 2 || labels["cron_group"] != "g" || labels["cron_entry"] != "e" {
		t.Errorf("%v", j)
	}
	w := a.take("")
	if got := w.next(); got["id"] != j["id"] || got["payload"].(map[string]any)["n"].(json.Number) != "1" {
		t.Errorf("%v", got)
	}
	a.want(200, "*", "PATCH", "/queues/q", `{"max_jobs":1}`)
	if got := a.call("POST", "/crons/g/entries/e/run", ""); got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestCronPreview(t *testing.T) {
	a := start(t, httpapi.Options{})
	var p wire.CronPreview
	if err := json.Unmarshal([]byte(a.want(200, "*", "GET", "/crons/preview?expression=0+3+*+*+*&timezone=Europe%2FBerlin&n=3", "")), &p); err != nil {
		t.Fatal(err)
	}
	if p.Expression != "0 3 * * *" || p.Timezone != "Europe/Berlin" || len(p.Ticks) != 3 || p.Ticks[2]-p.Ticks[0] < 47*3_600_000 {
		t.Errorf("%+v", p)
	}
	a.want(200, `{"expression":"0 0 30 2 *","ticks":[]}`, "GET", "/crons/preview?expression=0+0+30+2+*", "")
	for query, want := range map[string]string{
		"expression=x":                        "has 1 fields",
		"expression=@daily&timezone=Nowhere":  "timezone",
		"expression=@daily&n=0":               "n must be a whole number from 1 to 100",
		"expression=@daily&n=101":             "n must be a whole number from 1 to 100",
		"expression=@daily&zone=x":            "unknown parameter",
		"expression=@daily&expression=@daily": "is there twice",
	} {
		if got := a.call("GET", "/crons/preview?"+query, ""); got.status != 400 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

func TestCronRefusals(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.want(200, "*", "PUT", "/crons/g/entries/e", `{"expression":"0 0 30 2 *",`+mail+`}`)
	before := a.want(200, "*", "GET", "/crons/g", "")
	one := func(members string) string { return `{"name":"x","expression":"@daily",` + members + `}` }
	withJob := func(members string) string { return one(`"job":{"type":"t","queue":"q","payload":1,` + members + `}`) }
	for _, c := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"PUT", "/crons/g", `{}`, 400, "entries is missing"},
		{"PUT", "/crons/g", `{"entries":{}}`, 400, "entries must be an array"},
		{"PUT", "/crons/g", `{"entries":[],"timezone":"Nowhere"}`, 400, `timezone \"Nowhere\" is not known`},
		{"PUT", "/crons/g", `{"entries":[],"missed":"never"}`, 400, "missed must be one of once skip all"},
		{"PUT", "/crons/g", `{"entries":[],"paused":1}`, 400, "paused must be true or false"},
		{"PUT", "/crons/g", `{"entries":[` + one(mail) + `,` + one(mail) + `]}`, 400, "two entries of the name 'x'"},
		{"PUT", "/crons/g", `{"entries":[` + one(mail) + `,{"name":"y","expression":"@daily"}]}`, 400, "entries[1].job is missing"},
		{"PUT", "/crons/g", `{"entries":[{"expression":"@daily",` + mail + `}]}`, 400, "entries[0].name is missing"},
		{"PUT", "/crons/g", `{"entries":[{"name":"a,b","expression":"@daily",` + mail + `}]}`, 400, "entries[0].name must not contain ','"},
		{"PUT", "/crons/a%2Cb", `{"entries":[]}`, 400, "name must not contain ','"},
		{"PUT", "/crons/g/entries/a*", one(mail), 400, "name must not contain '*' (reserved)"},
		{"POST", "/crons/a%5B/entries", one(mail), 400, "name must not contain '[' (reserved)"},
		{"POST", "/crons/g/entries", `{"name":"x",` + mail + `}`, 400, "expression is missing"},
		{"POST", "/crons/g/entries", `{"name":"x","expression":"61 * * * *",` + mail + `}`, 400, `expression is refused: the minute \"61\" must be from 0 to 59`},
		{"POST", "/crons/g/entries", `{"name":"x","expression":5,` + mail + `}`, 400, "expression must be a string"},
		{"POST", "/crons/g/entries", withJob(`"ready_at":5`), 400, "job.ready_at cannot be set in a cron entry"},
		{"POST", "/crons/g/entries", withJob(`"ready_at":0`), 400, "job.ready_at cannot be set"},
		{"POST", "/crons/g/entries", withJob(`"expires_at":5`), 400, "job.expires_at cannot be set"},
		{"POST", "/crons/g/entries", withJob(`"idempotency_key":"k"`), 400, "job.idempotency_key cannot be set"},
		{"POST", "/crons/g/entries", withJob(`"priority":65536`), 400, "priority must be"},
		{"POST", "/crons/g/entries", one(`"job":{"type":"t","queue":"q"}`), 400, "payload is missing"},
		{"POST", "/crons/g/entries", one(`"job":{"type":"t","queue":"q","payload":"` + strings.Repeat("x", 64<<10) + `"}`), 400, "must not be larger than 65536 bytes"},
		{"POST", "/crons/g/entries", ``, 400, "the body is empty"},
		{"PATCH", "/crons/g", `{"timezone":"Mars/Base"}`, 400, "timezone"},
		{"PATCH", "/crons/g", `{"missed":"never"}`, 400, "missed must be one of"},
		{"POST", "/crons/g/entries", withJob(`"budgets":[{"key":"nobody"}]`), 422, "budget 'nobody' does not exist; create it, or give create_with"},
		{"PATCH", "/crons/g/entries/e", `{"paused":null}`, 400, "paused is missing"},
		{"PATCH", "/crons/none", `{"paused":true}`, 404, "cron group 'none' not found"},
		{"PATCH", "/crons/g/entries/none", `{"paused":true}`, 404, "cron entry 'none' not found in group 'g'"},
		{"GET", "/crons/none", ``, 404, "cron group 'none' not found"},
		{"GET", "/crons/g/entries/none", ``, 404, "cron entry 'none' not found in group 'g'"},
		{"GET", "/crons/none/entries/e", ``, 404, "cron group 'none' not found"},
		{"DELETE", "/crons/none", ``, 404, "cron group 'none' not found"},
		{"DELETE", "/crons/g/entries/none", ``, 404, "cron entry 'none' not found in group 'g'"},
		{"POST", "/crons/g/entries/none/run", ``, 404, "cron entry 'none' not found in group 'g'"},
	} {
		if got := a.call(c.method, c.path, c.body); got.status != c.status || !strings.Contains(got.body, c.text) {
			t.Errorf("%s %s %.200s: %d %s, want %d %s", c.method, c.path, c.body, got.status, got.body, c.status, c.text)
		}
	}
	if after := a.want(200, "*", "GET", "/crons/g", ""); after != before {
		t.Errorf("what was refused changed something:\n%s\n%s", before, after)
	}
	a.want(200, `{"crons":["g"]}`, "GET", "/crons", "")
	j := withJob(`"ready_at":null`) // null is not given
	a.want(201, "*", "POST", "/crons/g/entries", j)
	a.put(`,"ready_at":5`) // and elsewhere it is a field like any other
}

func TestACronEntryMayHaveABatch(t *testing.T) { // reference 1.18
	a := start(t, httpapi.Options{})
	batch := func(fold string) string {
		return `{"expression":"0 0 30 2 *","job":{"type":"t","queue":"q","payload":["x"],"batch":{"key":"k","when":"true","fold":"` + fold + `"}}}`
	}
	e := object(t, a.want(200, "*", "PUT", "/crons/g/entries/e", batch("$existing + $new")))
	if b, _ := e["job"].(map[string]any)["batch"].(map[string]any); b["key"] != "k" || b["fold"] != "$existing + $new" {
		t.Errorf("%v", e)
	}
	first := object(t, a.want(201, "*", "POST", "/crons/g/entries/e/run", ""))
	again := object(t, a.want(200, "*", "POST", "/crons/g/entries/e/run", ""))
	if again["folded"] != true || again["id"] != first["id"] {
		t.Errorf("%v, then %v", first, again)
	}
	if got := a.want(200, "*", "GET", "/jobs/"+first["id"].(string), ""); !strings.Contains(got, `"payload":["x","x"]`) {
		t.Error(got)
	}
	a.want(422, "*", "PUT", "/crons/g/entries/e", batch("empty"))
	a.want(422, "*", "PUT", "/crons/g/entries/e", batch("("))
	a.want(204, "", "POST", "/reset", "")
	a.want(200, `{"crons":[]}`, "GET", "/crons", "")
}
