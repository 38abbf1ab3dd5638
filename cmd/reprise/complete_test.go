package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprisehq/reprise/wire"
)

// completed are the names that a shell would offer for a command line.
func completed(t *testing.T, args ...string) (names []string) {
	t.Helper()
	stdout, stderr, code := cli(t, "", append([]string{"__complete"}, args...)...)
	if code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, stderr)
	}
	for line := range strings.Lines(stdout) {
		if name, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); !strings.HasPrefix(name, ":") {
			names = append(names, name)
		}
	}
	return names
}

func TestLiveNamesAreCompleted(t *testing.T) {
	url := serverURL(t)
	t.Setenv("REPRISE_URL", url)
	id := field(t, well(t, "enqueue", "--queue", "complete-me", "--type", "t", "--json"), "id")
	well(t, "enqueue", "--queue", "complete-too", "--type", "t")
	well(t, "budgets", "set", "complete-gpu", "--allocation", "2")
	t.Cleanup(func() { well(t, "budgets", "delete", "complete-gpu") })
	well(t, "queue", "hold", "complete-me", "--group", "complete-group", "--for", "1m")
	well(t, "lock", "run", "complete-lock", "--", "true")
	file := filepath.Join(t.TempDir(), "settings")
	write := func(text string) string {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	well(t, "cron", "set", "complete-cron", "-f", write("entries: [{name: complete-entry, expression: '0 3 * * *', job: {type: t, queue: nightly}}]"))
	well(t, "inbox", "set", "complete-inbox", "-f", write(`group: {jq: '.g'}`))
	well(t, "inbox", "send", "complete-inbox", "--id", "complete-m", "--type", "a.b.C", "--payload", `{"g": "complete-g"}`)
	if _, stderr, code := cli(t, "{}\n", "grid", "submit", "--session", "complete-session", "-"); code != 0 {
		t.Fatal(stderr)
	}
	dead := kill(t, url, "complete-dead", 1, wire.Failure{Message: "no"})[0]
	for _, tt := range []struct{ line, name string }{
		{"work --queue", "complete-me"},
		{"jobs list --queue", "complete-me"},
		{"jobs patch --to-queue", "complete-me"},
		{"queue pause", "complete-me"},
		{"queue release complete-me --group", "complete-group"},
		{"enqueue --budget", "complete-gpu"},
		{"jobs list --budget", "complete-gpu"},
		{"budgets show", "complete-gpu"},
		{"jobs show", id},
		{"jobs explain", id},
		{"jobs cancel", id},
		{"lock break", "complete-lock"},
		{"lock run", "complete-lock"},
		{"cron pause", "complete-cron"},
		{"cron run complete-cron", "complete-entry"},
		{"inbox show", "complete-inbox"},
		{"inbox retry complete-inbox", "complete-m"},
		{"inbox skip complete-inbox --group", "complete-g"},
		{"grid status", "complete-session"},
		{"engine --session", "complete-session"},
		{"dead show", dead},
		{"dead replay", dead},
		{"queue breaker complete-me", "closed"},
		{"jobs list --status", "in_flight"},
	} {
		if got := completed(t, append(strings.Fields(tt.line), "")...); !slices.Contains(got, tt.name) {
			t.Errorf("reprise %s: %q is not among %q", tt.line, tt.name, got)
		}
	}
	for line, want := range map[string][]string{
		"work --queue complete-m":                       {"complete-me"},
		"work --queue complete-too,complete-m":          {"complete-too,complete-me"},
		"jobs list --queue complete-me,complete-m":      nil, // it was given
		"jobs cancel " + id + " " + id[:len(id)-1]:      nil,
		"queue show complete-me c":                      nil, // it takes one
		"grid status --url http://127.0.0.1:1 complete": nil,
		"grid status --url nonsense complete":           nil,
		"grid status --token-file /nowhere complete":    nil,
		"jobs show --url " + silent(t) + " " + id:       nil,
		"inbox show --url " + refusing(t) + " complete": nil,
	} {
		if got := completed(t, strings.Fields(line)...); !slices.Equal(got, want) {
			t.Errorf("reprise %s: %q, not %q", line, got, want)
		}
	}
}

// silent is the address of a server that takes connections and never answers.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // of a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// refusing is the address of a server that wants another token.
func refusing(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":"no","code":"unauthorized"}`, http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Whoever adds a command that takes a name says of what kind it is.
func TestEveryNameIsOfAKind(t *testing.T) {
	takesAName := regexp.MustCompile(`^\S+ \[?(ID|NAME|KEY|GROUP|ENGINE|FINGERPRINT)\b`)
	live := []string{"queue", "to-queue", "session", "engine", "fingerprint", "status", "state", "reason", "wait", "scope"}
	everyCommand(newRootCommand(), func(cmd *cobra.Command) {
		if takesAName.MatchString(cmd.Use) && cmd.ValidArgsFunction == nil {
			t.Errorf("%s takes a name of no kind: %s", cmd.CommandPath(), cmd.Use)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			words := f.Value.Type() == "bool" || f.Value.Type() == "int" || cmd.CommandPath() == "reprise jobs cancel" && f.Name == "reason"
			if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok && slices.Contains(live, f.Name) && !words {
				t.Errorf("%s --%s is of no kind", cmd.CommandPath(), f.Name)
			}
		})
	})
}
