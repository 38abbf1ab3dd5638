package main

import (
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

func TestListShowAndDelete(t *testing.T) {
	url := serverURL(t)
	var ids []string
	for _, kind := range []string{"a", "a", "b"} {
		ids = append(ids, field(t, well(t, "enqueue", "--url", url, "--queue", "shelf", "--type", kind, "--group", "of-"+kind, "--label", "n="+kind, "--label", "m=1", "--json"), "id"))
	}
	list := func(args ...string) string {
		return well(t, append([]string{"jobs", "list", "--url", url, "--queue", "shelf"}, args...)...)
	}
	lines := strings.Split(strings.TrimSpace(list("--oldest")), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "ID ") || !strings.HasPrefix(lines[1], ids[0]) || !strings.Contains(lines[1], " ready ") {
		t.Errorf("%q", lines)
	}
	if out := list("--type", "b"); strings.Contains(out, ids[0]) || !strings.Contains(out, ids[2]) {
		t.Error(out)
	}
	if out := list("--limit", "1"); strings.Contains(out, ids[1]) || !strings.Contains(out, ids[2]) {
		t.Error(out)
	}
	if out := list("--group", "of-b,of-c"); strings.Contains(out, ids[0]) || !strings.Contains(out, ids[2]) {
		t.Error(out)
	}
	if out := list("--label", "n=b", "--label", "m=1"); strings.Contains(out, ids[0]) || !strings.Contains(out, ids[2]) {
		t.Error(out)
	}
	if out := well(t, "jobs", "show", ids[0], "--url", url); !strings.Contains(out, "m=1, n=") {
		t.Errorf("show tells no labels:\n%s", out)
	}
	if out := list("--label", "n=b", "--label", "m=2"); out != "no such job\n" {
		t.Error(out)
	}
	if out := list("--newest", "--oldest", "--limit", "1"); strings.Contains(out, ids[2]) || !strings.Contains(out, ids[0]) {
		t.Error(out)
	}
	if _, stderr, _ := cli(t, "", "jobs", "list", "--url", url, "--queue", "shelf", "--limit", "2"); !strings.Contains(stderr, "more than these 2") {
		t.Error(stderr)
	}
	if _, stderr, _ := cli(t, "", "jobs", "list", "--url", url, "--queue", "shelf", "--limit", "3"); stderr != "" {
		t.Error(stderr)
	}
	if out := list("--status", "dead,completed"); out != "no such job\n" {
		t.Error(out)
	}
	if out := list("--status", "dead", "--json"); out != "" {
		t.Error(out)
	}

	if out := well(t, "jobs", "show", "--url", url, ids[0]); !strings.Contains(out, "waits for a worker") || !strings.Contains(out, "payload\n  null\n") {
		t.Error(out)
	}
	if _, stderr, code := cli(t, "", "jobs", "show", "--url", url, "nothing"); code != 1 || !strings.Contains(stderr, "retention") {
		t.Errorf("%d: %s", code, stderr)
	}

	if out := well(t, "jobs", "delete", "--url", url, ids[0]); out != "1 job deleted\n" {
		t.Error(out)
	}
	_, stderr, code := cli(t, "", "jobs", "delete", "--url", url, ids[1], ids[0])
	if code != 1 || !strings.Contains(stderr, ids[0]) || !strings.Contains(stderr, "1 job deleted before") {
		t.Errorf("%d: %s", code, stderr)
	}
}

func TestDeleteByFilterCountsFirst(t *testing.T) {
	url := serverURL(t)
	for range 3 {
		well(t, "enqueue", "--url", url, "--queue", "bin", "--type", "t")
	}
	if out := well(t, "jobs", "delete", "--url", url, "--queue", "bin"); out != "3 jobs would be deleted; add --yes to do it\n" {
		t.Error(out)
	}
	out, stderr, code := cli(t, "", "jobs", "delete", "--url", url, "--queue", "bin", "--yes")
	if code != 0 || out != "3 jobs deleted\n" {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

func TestExplainSaysWhyAJobIsWhereItIs(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	ms := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	for _, tt := range []struct {
		job  wire.Job
		says string
	}{
		{wire.Job{Status: wire.Scheduled, ReadyAt: ms(time.Hour)}, "waits for its time, "},
		{wire.Job{Status: wire.Scheduled, ReadyAt: ms(90 * time.Second), Attempts: 2}, "failed 2 times so far; the next attempt is due"},
		{wire.Job{Status: wire.Ready, ReadyAt: ms(-time.Minute)}, "waits for a worker since"},
		{wire.Job{Status: wire.Ready, Attempts: 1}, "failed once so far and waits"},
		{wire.Job{Status: wire.Ready, Wait: "pause"}, "out of line: pause"},
		{wire.Job{Status: wire.InFlight, DequeuedAt: ms(-time.Second), Attempts: 4}, "as attempt 5"},
		{wire.Job{Status: wire.Completed, CompletedAt: ms(-time.Hour), PurgeAt: ms(time.Hour)}, "1h ago); removed"},
		{wire.Job{Status: wire.Dead, Reason: wire.ReasonExhausted, Attempts: 3}, "failed 3 times, and its retry policy"},
		{wire.Job{Status: wire.Dead, Reason: wire.ReasonKilled}, "trying again cannot help"},
		{wire.Job{Status: wire.Dead, Reason: wire.ReasonExpired}, "expired"},
		{wire.Job{Status: wire.Dead, Reason: wire.ReasonLost}, "vanished too often"},
		{wire.Job{Status: wire.Dead, Reason: wire.ReasonRejected}, "refused"},
		{wire.Job{Status: wire.Dead, Reason: wire.ReasonEvicted}, "full"},
		{wire.Job{Status: wire.Dead, Reason: wire.ReasonCancelled}, "was cancelled"},
		{wire.Job{Status: wire.Dead, Reason: wire.ReasonCancelled, PurgeAt: 1 << 62}, "was cancelled"},
		{wire.Job{Status: wire.Dead, Attempts: 1}, "given up after 1 failure"},
	} {
		if got := explain(&tt.job, nil, now); !strings.Contains(got, tt.says) {
			t.Errorf("%+v: %q does not say %q", tt.job, got, tt.says)
		}
	}
}

func TestShowKeepsWhatOthersWroteFromSteeringTheTerminal(t *testing.T) {
	j := &wire.Job{
		ID: "x", Type: "t\x1b[2J", Status: wire.Dead, Payload: []byte("\"\x1b]0;title\x07\""), Attempts: 1,
		Retry: &wire.Retry{Limit: 3, MaxAge: "7d", Curve: &wire.Curve{Kind: wire.Constant}}, Losses: 2, Evictions: 1,
	}
	failures := []wire.JobError{{Attempt: 1, DequeuedAt: 1, Message: "bad\x1b[31m", ErrorType: "T\r", Backtrace: "one\n\ttwo\x1b"}}
	var out strings.Builder
	if err := showJob(&out, j, failures, time.Now()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07\r") {
		t.Errorf("%q", out.String())
	}
	for _, text := range []string{"at most 3, constant curve of its own, for at most 7d", "2 times: its worker vanished", "once: without blame", "      one\n          two"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is missing in\n%s", text, out.String())
		}
	}
}

// A record of no attempt, as of a cancel, is told and is not counted as a failure.
func TestShowCountsFailuresOfAttemptsOnly(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	cancelled := wire.JobError{Attempt: 1, Message: "cancelled by ann", ErrorType: "Cancelled", FailedAt: now.UnixMilli()}
	boom := wire.JobError{Attempt: 2, Message: "boom", ErrorType: "E", DequeuedAt: now.UnixMilli() - 1, FailedAt: now.UnixMilli()}
	for _, tt := range []struct {
		failures []wire.JobError
		heading  string
		lines    []string
	}{
		{[]wire.JobError{cancelled}, "\n0 failures\n", []string{"  of no attempt, "}},
		{[]wire.JobError{cancelled, boom}, "\n1 failure\n", []string{"  of no attempt, ", "  attempt 2, "}},
	} {
		var out strings.Builder
		if err := showJob(&out, &wire.Job{Status: wire.Dead, Reason: wire.ReasonCancelled, Payload: []byte("1")}, tt.failures, now); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), tt.heading) || strings.Contains(out.String(), "attempt 1") || !strings.Contains(out.String(), "cancelled by ann") {
			t.Errorf("%s", out.String())
		}
		for _, line := range tt.lines {
			if strings.Count(out.String(), line) != 1 {
				t.Errorf("%q is missing in\n%s", line, out.String())
			}
		}
	}
}
