package main

import (
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

func TestQueuesAreSetStoppedAndShown(t *testing.T) {
	url := serverURL(t)
	queue := func(args ...string) string {
		t.Helper()
		return well(t, append(append([]string{"queue"}, args...), "--url", url)...)
	}
	says := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), w) {
				t.Errorf("%q lacks %q", out, w)
			}
		}
	}
	id := field(t, well(t, "enqueue", "--url", url, "--queue", "guarded", "--type", "t", "--group", "g", "--json"), "id")
	explain := func() string { t.Helper(); return well(t, "jobs", "explain", "--url", url, id) }
	says(explain(), `ready no worker is connected to queue "guarded"`)
	says(queue("set", "guarded", "breaker=on", "group_rate=2.5", `group_breaker={"consecutive":3}`, "on_dead=park", "max_running=7"),
		`breaker {"window":20,"failure_ratio":0.5,`, `group_rate {"per_second":2.5}`, `"consecutive":3`, "on_dead park", "max_running 7")
	out := queue("set", "guarded", "breaker=off", "max_running=0")
	if strings.Contains(out, "  breaker") {
		t.Errorf("the breaker is not off: %s", out)
	}
	says(queue("set", "guarded", "run_timeout=30s", "start_timeout_ms=500", "retention.completed=1d", "max_bytes=1GiB", "paused=off", "late_ok=never", "rate=50", `retry={"limit":3}`),
		"run_timeout_ms 30000", "start_timeout_ms 500", `retention {"completed_ms":86400000}`, "max_bytes 1073741824", "late_ok never", `rate {"per_second":50}`, `retry {"limit":3}`)
	if out := queue("set", "guarded", "max_running=7"); !strings.Contains(out, "7") {
		t.Errorf("max_running is not 7: %s", out)
	}
	says(queue("set", "guarded", "max_running=null", "paused=null"), "guarded")
	out = queue("set", "guarded", "run_timeout=off", "retention.completed=off", "max_bytes=0", "late_ok=off", "rate=off", "retry=off")
	for _, gone := range []string{"run_timeout_ms", "completed_ms", "max_bytes", "never", "  rate ", "retry"} {
		if strings.Contains(out, gone) {
			t.Errorf("%s is not off: %s", gone, out)
		}
	}
	says(queue("pause", "guarded"), "queue guarded is paused")
	says(queue("hold", "guarded", "--group", "g", "--for", "10m"), "group g of queue guarded is held until")
	says(queue("breaker", "guarded", "open", "--group", "g"), "the breaker of group g of queue guarded is set to open")
	says(queue("breaker", "guarded", "open"), "the breaker of queue guarded is set to open")
	says(explain(), `queue "guarded" is paused`, `group "g" is held until`, `the breaker of queue "guarded" was opened by an operator`, `the breaker of group "g" was`)
	says(queue("show", "guarded"), "state paused; breaker open, by an operator", "1 ready", "0 taken, 0 completed, 0 failed per second, over ", "groups that are held or slowed down g held, in 1", "; breaker open")
	says(queue("list"), "guarded 0 1 0 0 ", " 0 0 paused; breaker open, by an operator")
	queue("resume", "guarded")
	queue("release", "guarded", "--group", "g")
	queue("breaker", "guarded", "auto", "--group", "g")
	queue("breaker", "guarded", "auto")
	says(explain(), "no worker is connected")
	if out := queue("show", "guarded", "--json"); !strings.Contains(out, `"name":"guarded"`) || !strings.Contains(out, `"groups":`) {
		t.Error(out)
	}
	if out := well(t, "jobs", "explain", "--url", url, id, "--json"); !strings.Contains(out, `"reason":"no_worker"`) {
		t.Error(out)
	}
}

func TestQueueCommandLinesThatAreWrongSaySo(t *testing.T) {
	url := serverURL(t)
	for _, tt := range []struct {
		line string
		code int
		says string
	}{
		{"queue", 0, ""},
		{"queue bogus", 2, "no command"},
		{"queue show", 2, "it is used as: reprise queue show NAME"},
		{"queue pause a b", 2, "it is used as"},
		{"queue set q", 2, "name what to change"},
		{"queue set q paused", 2, "not of the form SETTING=VALUE"},
		{"queue set q paused=true paused=false", 2, "twice"},
		{"queue set q pause=true", 1, "pause is not known here"},
		{"queue set q run_timeout=soon", 2, `run_timeout: duration "soon"`},
		{"queue set q order=fifo", 2, `order: "fifo" must be one of none, start, strict`},
		{"queue set q breaker=5", 2, "breaker: must have keys, not a single value"},
		{"queue set q run_timeout=1s run_timeout_ms=5", 2, "run_timeout_ms is there twice"},
		{`queue set q retention={"dead_ms":5} retention.dead=1d`, 2, "retention and retention.dead: give one of them"},
		{"queue set q rate=-1", 1, "rate.per_second must be a number from 0"},
		{"queue hold q", 2, "--for is how long"},
		{"queue hold q --for x", 2, "write a span of time"},
		{"queue breaker q ajar", 2, "open, closed or auto"},
		{"jobs explain", 2, "takes one argument, the id of one job"},
		{"jobs explain nothing", 1, "job not found"},
	} {
		args := strings.Fields(tt.line)
		if len(args) > 2 && tt.code < 2 {
			args = append(args, "--url", url)
		}
		if _, stderr, code := cli(t, "", args...); code != tt.code || !strings.Contains(stderr, tt.says) {
			t.Errorf("%s: exit code %d: %s", tt.line, code, stderr)
		}
	}
}

func TestBreakersAreToldInWords(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	at := now.Add(20 * time.Second).UnixMilli()
	for _, tt := range []struct {
		state wire.BreakerState
		want  string
	}{
		{wire.BreakerState{State: wire.BreakerOpen, Until: at}, "breaker open, probes in 20s"},
		{wire.BreakerState{State: wire.BreakerHalfOpen, Until: at, Allowed: 1, Running: 1}, "breaker half open, 1 of 1 run"},
		{wire.BreakerState{State: wire.BreakerRamping, Until: at, Allowed: 8, Running: 3}, "breaker ramping, 3 of 8 run"},
		{wire.BreakerState{State: wire.BreakerClosed, Forced: true}, "breaker closed, by an operator"},
	} {
		if got := breakerWords(&tt.state, now); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	aside := wire.Aside{Group: "g", HoldUntil: at, RateUntil: at}
	if got := asideWords(aside, now); got != "held, in 20s; rate used up, in 20s" {
		t.Error(got)
	}
}

// A session that is over does not work, however many tasks it keeps.
func TestTheStateOfAQueueThatIsASession(t *testing.T) {
	for session, want := range map[string]string{
		"": "works", wire.SessionOpen: "works", wire.SessionCancelled: "session cancelled", wire.SessionErrors: "session done with errors",
	} {
		if got := queueState(&wire.Queue{Session: session}, time.Now()); got != want {
			t.Errorf("%q: %s, want %s", session, got, want)
		}
	}
	if got := removal(&wire.Job{PurgeAt: 1 << 62}, time.Now()); got != "" {
		t.Errorf("what stays for ever is %s", got)
	}
}
