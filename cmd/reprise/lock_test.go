package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func TestLockRunPassesOnWhatTheCommandSaysAndHowItEnds(t *testing.T) {
	url := serverURL(t)
	for _, c := range []struct {
		name, stdin string
		args        []string
		out, stderr string
		code        int
	}{
		{"output and input", "hello\n", []string{"l1", "--", "sh", "-c", `cat; echo "$REPRISE_LOCK $REPRISE_URL"; echo oops >&2`}, "hello\nl1 " + url + "\n", "oops\n", 0},
		{"exit code", "", []string{"l2", "--", "sh", "-c", "exit 42"}, "", "", 42},
		{"signal", "", []string{"l3", "--", "sh", "-c", "kill -KILL $$"}, "", "", 128 + 9},
		{"no such command", "", []string{"l4", "--", "/no/such/command"}, "", "starting the command", 1},
		{"flags of the command", "", []string{"l5", "--at-most", "2s", "--", "echo", "--at-most", "x"}, "--at-most x\n", "", 0},
		{"no name", "", []string{"--", "true"}, "", "name the lock", 2},
		{"no command", "", []string{"l6"}, "", "say what to run", 2},
		{"two names", "", []string{"a", "b", "--", "true"}, "", "one name comes before --", 2},
		{"too short", "", []string{"l7", "--at-most", "1ms", "--", "true"}, "", "give at least 1s", 1},
		{"too long", "", []string{"l7", "--at-most", "999999h", "--", "true"}, "", "lock_at_most_ms must be", 1},
		{"least above most", "", []string{"l7", "--at-least", "1h", "--", "true"}, "", "must be between 0 and AtMost 30s", 1},
		{"no exit code", "", []string{"l7", "--held-exit", "300", "--", "true"}, "", "between 0 and 255", 2},
		{"a name that is none", "", []string{"a,b", "--", "true"}, "", "name must not contain ','", 1},
		{"NUL in the name", "", []string{"a\x00b", "--", "true"}, "", "name must not contain control characters", 1},
	} {
		out, stderr, code := cli(t, c.stdin, append([]string{"lock", "run", "--url", url}, c.args...)...)
		if out != c.out || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" || code != c.code {
			t.Errorf("%s: exit code %d, %q, %q", c.name, code, out, stderr)
		}
	}
	cl, err := client.New(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	list, err := cl.Locks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		if strings.HasPrefix(l.Name, "l") && l.Status != wire.LockFree {
			t.Errorf("left behind: %+v", l)
		}
	}
}

func TestALockThatIsHeldRunsNothingAndSaysWhoHasIt(t *testing.T) {
	url := serverURL(t)
	cl, err := client.New(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	held, err := cl.TakeLock(t.Context(), "held", wire.TakeLock{Owner: "ann", LockAtMostMS: 3_600_000, LockAtLeastMS: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ran")
	refusal := func(want string, code int, args ...string) {
		t.Helper()
		_, stderr, got := cli(t, "", append(append([]string{"lock", "run", "held", "--url", url}, args...), "--", "touch", file)...)
		if !strings.Contains(stderr, want) || got != code {
			t.Errorf("exit code %d, %q", got, stderr)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("it ran")
		}
	}
	refusal("nothing was run: ann has the lock held since", 75)
	refusal("nothing was run: ann has the lock held since", 7, "--held-exit", "7")
	if out := well(t, "lock", "list", "--url", url); !strings.Contains(out, "held") || !strings.Contains(out, "ann") {
		t.Error(out)
	}
	if out := well(t, "lock", "list", "--json", "--url", url); !strings.Contains(out, `"name":"held","status":"held"`) || strings.Contains(out, held.Token) {
		t.Error(out)
	}
	if _, err := cl.Unlock(t.Context(), "held", held.Token); err != nil {
		t.Fatal(err)
	}
	refusal("ann gave the lock held back and it is kept for its --at-least", 75)
	if out := well(t, "lock", "break", "held", "--url", url); out != "the lock held is free; ann had it last\n" {
		t.Error(out)
	}
	well(t, "lock", "run", "held", "--url", url, "--", "touch", file)
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	_, stderr, code := cli(t, "", "lock", "break", "none", "--url", url)
	if code != 1 || !strings.Contains(stderr, `there is no lock "none"`) {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestLockRunStopsItsCommandWhenItIsStoppedAndGivesTheLockBack(t *testing.T) {
	url := serverURL(t)
	p := start(t, "lock", "run", "stopped", "--url", url, "--", "sh", "-c", `trap 'exit 9' TERM; echo ready >&2; while :; do sleep 0.01; done`)
	p.hear("ready")
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 9 {
		t.Errorf("exit code %d", code)
	}
	well(t, "lock", "run", "stopped", "--url", url, "--", "true")
}

func TestLockRunStopsItsCommandWhenTheLockIsLost(t *testing.T) {
	url := serverURL(t)
	p := start(t, "lock", "run", "lost", "--at-most", "1s", "--url", url, "--", "sh", "-c", `trap 'echo stopped >&2; exit 0' TERM; echo ready >&2; while :; do sleep 0.01; done`)
	p.hear("ready")
	well(t, "lock", "break", "lost", "--url", url)
	p.hear("stopped")
	p.hear("somebody else may have run under this lock too")
	if code := p.end(); code != 1 {
		t.Errorf("exit code %d", code)
	}
}
