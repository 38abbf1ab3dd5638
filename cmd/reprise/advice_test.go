package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// callLines are a command line for each command that calls a server.
var callLines = []string{
	"audit", "backup --out FILE", "budgets list", "budgets show b", "budgets set b --allocation 1", "budgets delete b", "compact",
	"cron list", "cron show g", "cron set g -f SETTINGS", "cron delete g", "cron pause g", "cron resume g e", "cron run g e",
	"dead audit", "dead delete ID", "dead delete --queue q --yes", "dead export", "dead groups", "dead list", "dead mark ede865b8574a584a --mute",
	"dead replay ID", "dead replay --queue q", "dead runs", "dead show ID", "enqueue --queue q --type t", "health",
	"grid cancel s", "grid clear s", "grid drain e", "grid engines", "grid results s --now", "grid sessions", "grid set s --suspend",
	"grid status s", "grid submit", "grid task s 1", "grid try-commit",
	"inbox delete i m", "inbox edit i m --payload 1", "inbox groups i", "inbox list", "inbox pause i", "inbox preview i", "inbox remove i", "inbox resume i",
	"inbox retry i m", "inbox send i --type a.B --payload 1", "inbox set i -f SETTINGS", "inbox show i", "inbox skip i m",
	"jobs cancel ID", "jobs delete ID", "jobs explain ID", "jobs list", "jobs patch ID --at now", "jobs progress ID --lease l", "jobs show ID",
	"lock break l", "lock list", "lock run l -- true", "queue breaker q open", "queue hold q --for 1m", "queue list", "queue pause q",
	"queue release q", "queue resume q", "queue set q rate=1", "queue show q", "token create --name n --scope read", "token list", "token revoke t",
	"version --server", "bench --phases singles",
}

// repeated are those of them that go on for some seconds without an answer, as it may be lost.
var repeated = []string{"enqueue --queue q --type t", "grid try-commit", "inbox send i --type a.B --payload 1", "lock run l -- true"}

// Who is told at night that something is wrong is told in words, and what to do next.
func TestEveryErrorSaysWhatToDo(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(settings, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REPRISE_QUEUE", "s") // what grid try-commit is told
	t.Setenv("REPRISE_ID", "1")
	t.Setenv("REPRISE_LEASE", "l")
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	}))
	t.Cleanup(cut.Close)
	for _, server := range []struct {
		url       string
		answers   bool
		why, step string
	}{
		{"http://127.0.0.1:1", false, "http://127.0.0.1:1 does not answer: connection refused", `Start one with "reprise serve"`},
		{cut.URL, false, cut.URL + " does not answer: the connection was cut", `Start one with "reprise serve"`},
		{refusing(t), true, "no (unauthorized, HTTP 401)", "Give the token in REPRISE_TOKEN or with --token-file"},
		{other.URL, true, "404 page not found (HTTP 404)", "Is " + other.URL + " the address of a Reprise server?"},
		{strings.Replace(other.URL, "http:", "https:", 1), false, "it speaks http, not https", "Write --url " + other.URL},
	} {
		t.Setenv("REPRISE_URL", server.url)
		for _, line := range callLines {
			if !server.answers && slices.Contains(repeated, line) {
				continue
			}
			args := strings.Fields(strings.NewReplacer("ID", "03gq0x7k2m4v9c1d8f5h6j0a1", "SETTINGS", settings, "FILE", filepath.Join(t.TempDir(), "b.tar.gz")).Replace(line))
			if args[0] == "bench" { // whose variable would be a server to measure
				args = append(args, "--url", server.url)
			}
			_, stderr, code := cli(t, "", args...)
			for _, raw := range []string{"dial tcp", `Get "`, `Post "`, `Put "`, `Patch "`, `Delete "`, "EOF", "strconv", "unmarshal"} {
				if strings.Contains(stderr, raw) {
					t.Errorf("reprise %s: it has %q: %s", line, raw, stderr)
				}
			}
			if code != 1 || !strings.Contains(stderr, server.why) || !strings.Contains(stderr, "\n"+server.step) {
				t.Errorf("reprise %s, at %s: exit code %d: %s", line, server.url, code, stderr)
			}
		}
	}
}

// The list above has each command that has a connection, but those that go on trying.
func TestEveryCallHasALine(t *testing.T) {
	goOn := []string{"reprise work", "reprise engine"}
	everyCommand(newRootCommand(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Flags().Lookup("url") == nil || cmd.HasSubCommands() {
			return
		}
		for _, line := range append(callLines, "doctor") {
			if line == strings.TrimPrefix(path, "reprise ") || strings.HasPrefix(line, strings.TrimPrefix(path, "reprise ")+" ") {
				return
			}
		}
		for _, on := range goOn {
			if path == on {
				return
			}
		}
		t.Errorf("%s has no line", path)
	})
}

func TestAMisspeltNameIsToldWhichOneWasMeant(t *testing.T) {
	t.Setenv("REPRISE_URL", serverURL(t))
	well(t, "budgets", "set", "meant-budget", "--allocation", "1")
	t.Cleanup(func() { well(t, "budgets", "delete", "meant-budget") })
	well(t, "enqueue", "--queue", "meant-queue", "--type", "t")
	if _, stderr, code := cli(t, "1\n", "grid", "submit", "--session", "meant-session", "-"); code != 0 {
		t.Fatal(stderr)
	}
	for line, want := range map[string]string{
		"budgets show meant-bugdet":            "did you mean meant-budget?\n\"reprise budgets list\" shows those there are",
		"grid status meant-sesion":             "did you mean meant-session?\n\"reprise grid sessions\" shows those there are",
		"inbox show nothing-like-it":           "\n\"reprise inbox list\" shows those there are",
		"jobs explain 03gq0x7k2m4v9c1d8f5h6j0": "\n\"reprise jobs list\" shows those there are",
		"cron set x -f /nowhere/at/all":        "cannot open /nowhere/at/all: no such file or directory",
	} {
		if _, stderr, code := cli(t, "", strings.Fields(line)...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("reprise %s: exit code %d: %s", line, code, stderr)
		}
	}
	for line, want := range map[string]string{
		"jobs list --queue meant-quue":               "no such job\nno job is in queue meant-quue; did you mean meant-queue?\n",
		"jobs delete --queue meant-quue":             "no such job\nno job is in queue meant-quue; did you mean meant-queue?\n",
		"dead replay --queue meant-queue,meant-qeue": "no such dead job\nno job is in queue meant-qeue; did you mean meant-queue?\n",
		"dead list --queue meant-queue":              "no such dead job\n",
	} {
		if got := well(t, strings.Fields(line)...); got != want {
			t.Errorf("reprise %s: %q, not %q", line, got, want)
		}
	}
}
