package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/client"
)

// numbered is so many lines, of which one, from 1 on, is no JSON; 0 = all are.
func numbered(n, bad int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if i == bad {
			b.WriteString("{oops\n")
			continue
		}
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func TestASubmitWithABadLineOpensNoSession(t *testing.T) {
	url := serverURL(t)
	file := filepath.Join(t.TempDir(), "tasks.ndjson")
	if err := os.WriteFile(file, []byte(numbered(2000, 1500)), 0o600); err != nil {
		t.Fatal(err)
	}
	before := well(t, "grid", "sessions", "--url", url) // of other tests
	for id, c := range map[string]struct {
		stdin string
		args  []string
		says  string
	}{
		"bad-in-a-file":  {"", []string{file}, "line 1500 of " + file + ": the payload is not JSON: {oops"},
		"bad-in-a-pipe":  {numbered(9, 3), nil, "line 3 of standard input: the payload is not JSON: {oops"},
		"bad-affinity":   {"1\n\n2\n", []string{"--affinity", "a,b"}, "line 1 of standard input, task 1: "},
		"bad-in-options": {"1\n", []string{"-O", "weight=11"}, "options.weight must be"},
	} {
		args := append([]string{"grid", "submit", "--url", url, "--session", id}, c.args...)
		if _, stderr, code := cli(t, c.stdin, args...); code == 0 || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d: %s", id, code, stderr)
		}
		if out, stderr, code := cli(t, "", "grid", "status", "--url", url, id); code == 0 || !strings.Contains(stderr, "not_found") {
			t.Errorf("%s: there is a session: %s%s", id, out, stderr)
		}
	}
	_, stderr, _ := cli(t, "1\n", "grid", "submit", "--url", url, "--affinity", "a,b")
	if !strings.Contains(stderr, "tasks[0].affinity") || !strings.Contains(stderr, "nothing was submitted") {
		t.Error(stderr)
	}
	if out := well(t, "grid", "sessions", "--url", url); out != before {
		t.Errorf("a session with a made up id is there: %s", out)
	}
}

// What a pipe has submitted before a bad line is cancelled, unless somebody else
// opened the session: then the command is repeated, and adds what is missing.
func TestASubmitThatBreaksOffEndsTheSessionThatItOpened(t *testing.T) {
	url := serverURL(t)
	submit := []string{"grid", "submit", "--url", url, "--session"}
	_, stderr, code := cli(t, numbered(2000, 1500), append(submit, "mine")...)
	if code == 0 || !strings.Contains(stderr, "line 1500 of standard input") || !strings.Contains(stderr, "session mine is cancelled, with the 1,000 tasks before it") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if out := well(t, "grid", "status", "--url", url, "mine"); !strings.Contains(out, "cancelled") || !strings.Contains(out, "1,000 submitted") {
		t.Error(out)
	}
	well(t, append(submit, "theirs", "--open", os.DevNull)...)
	if _, stderr, code := cli(t, numbered(2000, 1500), append(submit, "theirs")...); code == 0 || strings.Contains(stderr, "cancelled") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	file := filepath.Join(t.TempDir(), "tasks.ndjson")
	if err := os.WriteFile(file, []byte(numbered(2000, 0)), 0o600); err != nil {
		t.Fatal(err)
	}
	well(t, append(submit, "theirs", file)...)
	if out := well(t, "grid", "status", "--url", url, "theirs"); !strings.Contains(out, "closed") || !strings.Contains(out, "2,000 submitted") {
		t.Error(out)
	}
}

// A part is one call: large payloads do not wait for a thousand others.
func TestLargeTasksAreSubmittedInSmallParts(t *testing.T) {
	large := `"` + strings.Repeat("x", submitBytes/2) + `"` + "\n"
	l, err := openTasks(strings.NewReader(strings.Repeat(large, 3)+"4\n"), nil, &client.Task{}, 7)
	if err != nil {
		t.Fatal(err)
	}
	var seqs, lines []string
	for {
		p, err := l.part()
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			break
		}
		for i := range p.tasks {
			seqs, lines = append(seqs, fmt.Sprint(p.tasks[i].Seq, len(p.tasks[i].Payload.(json.RawMessage)))), append(lines, fmt.Sprint(p.lines[i]))
		}
		seqs, lines = append(seqs, "|"), append(lines, "|")
	}
	if got, want := strings.Join(lines, " "), "1 | 2 | 3 4 |"; got != want {
		t.Errorf("lines %s, want %s", got, want)
	}
	n := len(large) - 1
	if got, want := strings.Join(seqs, " "), fmt.Sprintf("7 %d | 8 %d | 9 %d 10 1 |", n, n, n); got != want {
		t.Errorf("tasks %s, want %s", got, want)
	}
}
