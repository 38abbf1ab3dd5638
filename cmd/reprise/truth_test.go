package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a command says to an operator is so.
func TestAnOperatorIsToldWhatIs(t *testing.T) {
	url := serverURL(t)
	well(t, "enqueue", "--url", url, "--queue", "truthful", "--type", "t")
	inbox := filepath.Join(t.TempDir(), "inbox.yaml")
	if err := os.WriteFile(inbox, []byte("group: {json: .id}\nmessage: {time-to-live: PT1S}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	well(t, "inbox", "set", "truthful-inbox", "-f", inbox, "--url", url)
	well(t, "inbox", "send", "truthful-inbox", "--payload", `{"id":"a"}`, "--url", url)
	message := field(t, well(t, "jobs", "list", "--queue", "truthful-inbox", "--json", "--url", url), "id")
	if _, stderr, code := cli(t, "1\n", "grid", "submit", "--session", "truthful-session", "--url", url); code != 0 {
		t.Fatal(stderr)
	}
	well(t, "grid", "cancel", "truthful-session", "--url", url)
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"queue pause truthful", 0, "queue truthful is paused\n"},
		{"queue resume truthfull", 0, "queue truthfull is resumed: no job has been in it yet; did you mean truthful?\n"},
		{"queue show truthfull", 0, "queue truthfull: no job has been in it yet; did you mean truthful?"},
		{"queue breaker truthfull auto", 0, ": no job has been in it yet; did you mean truthful?"},
		{"queue hold truthful --for 30m", 0, "(in 3"},
		{"queue hold truthful --for 2h", 0, "that is the longest hold, not the 2h that were asked for"},
		{"queue set truthful rat=5", 1, "rat is not known here; did you mean rate?"},
		{"work --queue truthful-inbox --exec cat", 2, "is an inbox: its messages go to the receiver of deliver.http"},
		{"work --queue truthful-session --exec cat", 2, `its tasks go to engines ("reprise engine")`},
		{"jobs explain " + message, 0, "workers of the queue get nothing of an inbox"},
		{"dead replay --queue truthful-session --yes", 0, "0 jobs replayed\n"}, // what was cancelled is not dead
	} {
		out, stderr, code := cli(t, "", append(strings.Fields(c.line), "--url", url)...)
		if code != c.code || !strings.Contains(out+stderr, c.says) {
			t.Errorf("%s: exit code %d: %s%s, want %q", c.line, code, out, stderr, c.says)
		}
	}
	offset := time.Now().Format(" -07:00")
	if out := well(t, "jobs", "explain", "--url", url, field(t, well(t, "enqueue", "--url", url, "--queue", "truthful", "--type", "t", "--delay", "1h", "--json"), "id")); !strings.Contains(out, "it is not due until ") || !strings.Contains(out, offset+" (") || wireDate.MatchString(out) {
		t.Errorf("its times are not those of this machine: %s", out)
	}
}

// A session that no engine works at says so to who waits for it, and Ctrl-C says
// what goes on.
func TestWhoWaitsInVainIsToldSo(t *testing.T) {
	url := serverURL(t)
	cmd := exec.Command(os.Args[0], "grid", "submit", "--session", "in-vain", "--requires", "nobody=1", "--wait", "--url", url)
	cmd.Stdin = strings.NewReader("1\n")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if told = append(told, lines.Text()); len(told) == 1 {
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	text := strings.Join(told, "\n")
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(text, "session in-vain waits: no engine may run any of its tasks") ||
		!strings.Contains(text, `reprise: interrupted; session in-vain goes on in the server: "reprise grid results in-vain"`) || strings.Contains(text, "http://") {
		t.Errorf("exit code %d: %s", code, text)
	}
	well(t, "grid", "cancel", "in-vain", "--url", url)
}
