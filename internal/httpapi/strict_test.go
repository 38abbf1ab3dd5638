package httpapi_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/wire"
)

// misspelt are bodies with one member that is not known, and its path.
var misspelt = []struct{ method, path, body, member, meant string }{
	{"POST", "/jobs", `{"queue":"q","type":"t","payload":0,"retry_limt":3}`, "retry_limt", "retry_limit"},
	{"POST", "/jobs", `{"queue":"q","type":"t","payload":0,"backoff":{"exponent":1,"base_ms":1,"jitter_ms":1,"jiter_ms":1}}`, "backoff.jiter_ms", "jitter_ms"},
	{"POST", "/jobs", `{"queue":"q","type":"t","payload":0,"batch":{"key":"k","when":"true","fold":"$new","fuld":1}}`, "batch.fuld", "fold"},
	{"POST", "/jobs", `{"queue":"q","type":"t","payload":0,"retention":{"completd_ms":5}}`, "retention.completd_ms", "completed_ms"},
	{"POST", "/jobs", `{"queue":"q","type":"t","payload":0,"budgets":[{"key":"b","costs":2,"create_with":{"allocation":1,"strategy":{"type":"while_in_flight"}}}]}`, "budgets.costs", "cost"},
	{"POST", "/jobs/bulk", `{"jobs":[{"queue":"q","type":"t","payload":0},{"queue":"q","type":"t","payload":0,"grup":"g"}]}`, "jobs[1].grup", "group"},
	{"POST", "/jobs/bulk", `{"jobs":[],"job":[]}`, "job", "jobs"},
	{"POST", "/jobs/lease", `{"queues":["none"],"wait":5}`, "wait", "wait_ms"},
	{"POST", "/jobs/extend", `{"leases":[{"id":"` + noID + `","lease":"` + strings.Repeat("0", 40) + `","mss":1}]}`, "leases[0].mss", "ms"},
	{"POST", "/jobs/settle", `[{"id":"` + noID + `","outcome":"retry","error":{"message":"m","eror_type":"e"}}]`, "error.eror_type", "error_type"},
	{"POST", "/jobs/settle", `[{"id":"` + noID + `","outcome":"ok","leese":"m"}]`, "settles[0].leese", "lease"},
	{"PUT", "/crons/g", `{"entries":[{"name":"e","expression":"@daily","job":{"queue":"q","type":"t","payload":0,"prio":5}}]}`, "prio", "priority"},
	{"PUT", "/crons/g", `{"timezon":"UTC","entries":[]}`, "timezon", "timezone"},
	{"PATCH", "/crons/g", `{"paused":false,"timezon":"UTC"}`, "timezon", "timezone"},
	{"PUT", "/budgets/b", `{"allocation":1,"strategy":{"type":"while_in_flight"},"alocation":1}`, "alocation", "allocation"},
	{"POST", "/locks/l", `{"owner":"o","lock_at_most_ms":5000,"lock_at_least":5}`, "lock_at_least", "lock_at_least_ms"},
	{"PATCH", "/jobs", `{"priority":1,"redy_at":5}`, "redy_at", "ready_at"},
}

// A misspelt member is ignored, as Zizq does, but nobody is left to find out.
func TestAMisspeltMemberIsTold(t *testing.T) {
	var log bytes.Buffer
	a := start(t, httpapi.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, c := range misspelt {
		got := a.call(c.method, c.path, c.body)
		told := got.header.Get(wire.WarningHeader)
		if got.status >= 400 ||
			!strings.Contains(told, c.member+" is not known here; did you mean "+c.meant+"?") {
			t.Errorf("%s %s %s: %d %s, told %q", c.method, c.path, c.body, got.status, got.body, told)
		}
	}
	a.call("POST", "/jobs", `{"queue":"q","type":"t","payload":0,"retry_limt":3}`)
	if n := strings.Count(log.String(), "member=retry_limt"); n != 1 {
		t.Errorf("retry_limt was logged %d times, once is enough:\n%s", n, &log)
	}
	if got := a.call("POST", "/jobs", `{"queue":"q","type":"t","payload":0}`); got.header.Get(wire.WarningHeader) != "" {
		t.Errorf("a right body is warned of: %v", got.header)
	}
	many := a.call("POST", "/jobs", `{"queue":"q","type":"t","payload":{"retry_limt":1},"a1":0,"a2":0,"a3":0,"a4":0,"a5":0,"a6":0,"a7":0,"a8":0,"a9":0}`)
	if n := len(many.header[wire.WarningHeader]); n != 8 {
		t.Errorf("%d warnings, not 8: %q", n, many.header[wire.WarningHeader])
	}
	evil := a.call("POST", "/jobs", `{"queue":"q","type":"t","payload":0,"a\r\nSet-Cookie: x":1}`)
	if told := evil.header.Get(wire.WarningHeader); evil.status != 201 || !strings.HasPrefix(told, "a??Set-Cookie: x is not known here") {
		t.Errorf("%d %q", evil.status, told)
	}
}

func TestAMisspeltMemberIsRefusedWhereThatIsWanted(t *testing.T) {
	refused := func(a *api, header ...string) {
		t.Helper()
		for _, c := range misspelt {
			got := a.call(c.method, c.path, c.body, header...)
			if got.status != 400 && c.method != "PATCH" || got.status < 400 || !strings.Contains(got.body, c.member+" is not known here; did you mean "+c.meant+"?") {
				t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, got.status, got.body)
			}
		}
		if body := a.want(200, "*", "GET", "/jobs/count", ""); body != `{"count":0}` {
			t.Errorf("something was taken in: %s", body)
		}
	}
	refused(start(t, httpapi.Options{Live: httpapi.NewLive(httpapi.Changeable{Strict: true})}))
	a := start(t, httpapi.Options{})
	refused(a, "Prefer", "handling=strict")
	for _, prefer := range []string{`respond-async, handling="strict"; x=1`, "Handling=Strict"} {
		a.want(400, "*", "POST", "/jobs", misspelt[0].body, "Prefer", prefer)
	}
	for _, prefer := range []string{"handling=lenient", "return=minimal", "handling"} {
		a.want(201, "*", "POST", "/jobs", misspelt[0].body, "Prefer", prefer)
	}
}

// A body that is read by its shape is told all that is wrong with it.
func TestAllProblemsOfABodyAreToldAtOnce(t *testing.T) {
	a := start(t, httpapi.Options{})
	for _, c := range []struct{ method, path, body, says string }{
		{"POST", "/budgets/k", `{"allocation":0,"strategy":{"type":"x","burst":0}}`, "allocation must be a whole number from 1 to 1000000\nstrategy.type must be one of while_in_flight time_based\nstrategy.burst must be a whole number from 1 to 1000000"},
		{"POST", "/queues/q/hold", `{"until":"soon","group":7}`, "until must be a whole number\ngroup must be a string"},
		{"POST", "/dead/replay", `{"filtr":{},"rate":"x"}`, "filtr is not known here; did you mean filter?\nrate must be a number\nfilter is empty, which means every dead job; say \"all\": true if that is meant"},
		{"PATCH", "/jobs", `{"priority":70000,"payload":1,"queue":"a,b","run_timeout_ms":-1}`, "priority must be a whole number from 0 to 65535\npayload of a job cannot be changed\nrun_timeout_ms must be a whole number from 1 to 18446744073709551615\nqueue must not contain ','"},
		{"PATCH", "/jobs", `{"queue":"a,b","run_timeout_ms":0,"backoff":{}}`, "run_timeout_ms must be a whole number from 1 to 18446744073709551615\nqueue must not contain ','\nbackoff.exponent is missing\nbackoff.base_ms is missing\nbackoff.jitter_ms is missing"},
	} {
		got := a.call(c.method, c.path, c.body)
		if text, _ := object(t, got.body)["error"].(string); got.status < 400 || text != c.says {
			t.Errorf("%s %s %s: %d\n%s\nwant\n%s", c.method, c.path, c.body, got.status, text, c.says)
		}
	}
}
