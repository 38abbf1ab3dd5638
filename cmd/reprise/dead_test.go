package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// post sends JSON and reads the answer into v.
func post(t *testing.T, url string, body, v any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// kill lets n new jobs of a queue die, and returns their ids.
func kill(t *testing.T, url, queue string, n int, f wire.Failure) (ids []string) {
	t.Helper()
	for range n {
		well(t, "enqueue", "--url", url, "--queue", queue, "--type", "t")
	}
	var leased struct{ Jobs []wire.Job }
	post(t, url+"/jobs/lease", map[string]any{"worker": "w", "queues": []string{queue}, "max": n}, &leased)
	var ends []wire.Settle
	for _, j := range leased.Jobs {
		ids = append(ids, j.ID)
		ends = append(ends, wire.Settle{ID: j.ID, Lease: j.Lease, Outcome: wire.OutcomeDead, Error: &f})
	}
	post(t, url+"/jobs/settle", ends, &wire.Verdicts{})
	return ids
}

func TestTheDeadAreGroupedListedReplayedAndDeleted(t *testing.T) {
	url := serverURL(t)
	ids := kill(t, url, "morgue", 3, wire.Failure{Message: "no answer in 3s\x1b", ErrorType: "Timeout"})
	kill(t, url, "morgue", 1, wire.Failure{Message: "no such user 'x'", ErrorType: "NotFound"})
	dead := func(args ...string) string {
		t.Helper()
		return well(t, append([]string{"dead", args[0], "--url", url}, args[1:]...)...)
	}
	wants := func(out string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("%q is missing in\n%s", part, out)
			}
		}
	}
	group := field(t, strings.SplitN(dead("groups", "--queue", "morgue", "--json"), "\n", 2)[0], "fingerprint")
	wants(dead("groups", "--queue", "morgue"), "FINGERPRINT", group, " 3 ", "morgue", "Timeout: no answer in #\\x1b", "·█", `NotFound: no such user ""`)
	wants(dead("list", "--queue", "morgue", "--fingerprint", group), ids[0], ids[2], "killed", "no answer in 3s\\x1b")
	wants(dead("show", ids[0]), "group "+group+": 3 jobs died of it", "attempt 1, ", "Timeout")
	wants(dead("show", ids[0], "--json"), `"fingerprint":"`+group+`"`, `"errors":[{`)
	if lines := strings.Count(dead("export", "--queue", "morgue", "--error-type", "Timeout"), "\n"); lines != 3 {
		t.Errorf("%d lines are exported", lines)
	}

	wants(dead("mark", group, "--mute", "--note", "known"), "muted true, paused false, note \"known\"")
	if out := dead("groups", "--queue", "morgue"); strings.Contains(out, group) {
		t.Errorf("a muted group is shown:\n%s", out)
	}
	wants(dead("groups", "--queue", "morgue", "--muted"), "[muted] [known]")

	if out := dead("replay", ids[0], "--payload", `{"edited":1}`); out != "1 job replayed\n" {
		t.Error(out)
	}
	wants(well(t, "jobs", "show", "--url", url, ids[0]), `"edited": 1`, "ready")
	wants(dead("replay", "--fingerprint", group, "--queue", "morgue"), "2 jobs would be replayed; add --yes", ids[1])
	wants(dead("replay", "--fingerprint", group, "--dry-run", "--json"), `"dry_run":true,"count":2`)
	if out := dead("replay", "--fingerprint", group, "--rate", "5000", "--yes"); out != "2 jobs replayed\n" {
		t.Error(out)
	}
	wants(dead("delete", "--queue", "morgue"), "1 job would be deleted")
	if out := dead("delete", "--queue", "morgue", "--yes"); out != "1 job deleted\n" {
		t.Error(out)
	}
	if out := dead("list", "--queue", "morgue"); out != "no such dead job\n" {
		t.Error(out)
	}
	if out := dead("groups", "--queue", "morgue"); out != "nothing is dead\n" {
		t.Error(out)
	}
	wants(dead("audit"), "replay edited", "delete done", "mute", ids[0])

	more := kill(t, url, "morgue", 2, wire.Failure{Message: "m"})
	if out := dead("delete", more[0]); out != "1 job deleted\n" {
		t.Error(out)
	}
	run := field(t, dead("replay", "--queue", "morgue", "--rate", "0.001", "--yes", "--detach", "--json"), "id")
	wants(dead("runs"), run, "running", "replay")
	wants(dead("runs", run, "--cancel"), "cancelled")
	if _, stderr, code := cli(t, "", "dead", "runs", "--url", url, run, "--cancel"); code != 1 || !strings.Contains(stderr, "cancelled already") {
		t.Errorf("%d: %s", code, stderr)
	}
}

func TestDeadCommandLinesThatCannotBeUnderstood(t *testing.T) {
	t.Setenv("REPRISE_URL", "http://127.0.0.1:1")
	for _, tt := range []struct{ line, says string }{
		{"dead bury", "no command"},
		{"dead groups x", "takes no argument"},
		{"dead groups --limit -1", "use 0 for all"},
		{"dead list --reason bored", "the reasons are exhausted"},
		{"dead list --since soon", "neither a span"},
		{"dead list --until -1h", "neither a span"},
		{"dead show", "id of one job"},
		{"dead replay", "either their ids, or a filter"},
		{"dead replay a --queue q", "either their ids, or a filter"},
		{"dead replay --all --queue q", "exclude each other"},
		{"dead replay a --rate 5", "--rate is for a filter"},
		{"dead replay --queue q --rate -5", "use 0 for no limit"},
		{"dead replay --queue q --ramp 5s", "needs a --rate"},
		{"dead replay --queue q --payload 1", "for one job by its id"},
		{"dead replay a b --payload 1", "2 ids were given"},
		{"dead replay a --payload {", "not JSON"},
		{"dead delete", "either their ids, or a filter"},
		{"dead export x", "takes no argument"},
		{"dead mark", "takes one argument, the fingerprint of a group"},
		{"dead mark a", "say what shall change"},
		{"dead runs --cancel", "needs the id"},
		{"dead runs a b", "2 arguments"},
		{"dead audit --limit 0", "between 1 and"},
	} {
		out, stderr, code := cli(t, "", strings.Fields(tt.line)...)
		if code != 2 || !strings.Contains(stderr, tt.says) || out != "" {
			t.Errorf("%s: exit code %d\nstdout: %s\nstderr: %s", tt.line, code, out, stderr)
		}
	}
	for _, line := range []string{
		"dead groups", "dead list", "dead show x", "dead replay x", "dead replay --all --yes", "dead delete x", "dead export", "dead runs", "dead audit",
		"dead mark x --mute",
	} {
		if _, stderr, code := cli(t, "", strings.Fields(line)...); code != 1 || !strings.Contains(stderr, "reprise serve") {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}

func TestInstantsAreTimesOrSpansBeforeNow(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour} {
		if got, err := instant("--since", text, now); err != nil || got != now.Add(-want).UnixMilli() {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	if got, err := instant("--since", "2026-03-01T12:00:00Z", now); err != nil || got != 1_772_366_400_000 {
		t.Errorf("%d, %v", got, err)
	}
}

func TestTheProgressOfARunIsABarWithItsRate(t *testing.T) {
	r := &wire.Replay{Done: 400, Guarded: 100, Total: 2000}
	want := "[███████░░░░░░░░░░░░░░░░░░░░░░░] 400 of 2,000 replayed, 50/s, 30s left"
	if got := progressBar(r, "replayed", 10*time.Second); got != want {
		t.Errorf("%s", got)
	}
	for _, r := range []*wire.Replay{{}, {Total: 3, Done: 9}} {
		if got := progressBar(r, "replayed", time.Second); len([]rune(got)) > 80 {
			t.Errorf("%s", got)
		}
	}
	got := summary(&wire.Replay{Done: 1, Refused: 2, Guarded: 1, Skipped: 3, Status: wire.RunCancelled}, "replayed", "no reason")
	for _, part := range []string{"1 job replayed", "2 jobs refused", "1 job left dead", "3 jobs skipped", "cancelled"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
}
