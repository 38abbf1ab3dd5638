package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func TestEnqueueTakesThePayloadFromAnywhereAndKeepsIt(t *testing.T) {
	url := serverURL(t)
	const payload = `{"n":9007199254740993,"s":"<&>ü"}`
	file := filepath.Join(t.TempDir(), "p.json")
	if err := os.WriteFile(file, []byte(payload), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{payload, "-", "@" + file} {
		out, stderr, code := cli(t, payload, "enqueue", "--url", url, "--queue", "payloads", "--type", "t", "--payload", from, "--json")
		if code != 0 {
			t.Fatalf("%s: %s", from, stderr)
		}
		got := well(t, "jobs", "show", "--url", url, "--json", field(t, out, "id"))
		if !strings.Contains(got, `"payload":`+payload) {
			t.Errorf("%s came back as %s", from, got)
		}
	}
	_, stderr, code := cli(t, "", "enqueue", "--url", url, "--queue", "payloads", "--type", "t", "--payload", "@"+file+".gone")
	if code != 1 || !strings.Contains(stderr, "no such file") {
		t.Errorf("a missing file: exit code %d: %s", code, stderr)
	}
}

func TestEnqueueSaysWhatBecameOfTheJob(t *testing.T) {
	url := serverURL(t)
	add := func(args ...string) string {
		return well(t, append([]string{"enqueue", "--url", url, "--queue", "says", "--type", "t"}, args...)...)
	}
	if out := add(); !strings.HasSuffix(out, "is in queue says (ready)\n") {
		t.Error(out)
	}
	if out := add("--delay", "2h"); !strings.Contains(out, "due ") || !strings.Contains(out, "(in 2h)") {
		t.Error(out)
	}
	if out := add("--at", time.Now().Add(49*time.Hour).Format(time.RFC3339)); !strings.Contains(out, "(in 2d)") {
		t.Error(out)
	}
	add("--idempotency-key", "once")
	if out := add("--idempotency-key", "once"); !strings.Contains(out, "already") || !strings.Contains(out, "nothing was added") {
		t.Error(out)
	}
	out := add("--json", "--priority", "0", "--group", "g", "--retry-limit", "3")
	if field(t, out, "priority") != "0" || field(t, out, "group") != "g" || !strings.Contains(out, "3") {
		t.Error(out)
	}
	if out := add("--json", "--retry-limit", "unlimited"); !strings.Contains(out, `"unlimited"`) {
		t.Error(out)
	}
	_, stderr, code := cli(t, "", "enqueue", "--url", url, "--queue", "a,b", "--type", "t")
	if code != 1 || !strings.Contains(stderr, "queue") || !strings.Contains(stderr, "invalid, HTTP 400") {
		t.Errorf("a name the server refuses: exit code %d: %s", code, stderr)
	}
}

func TestNDJSONIsEnqueuedInPartsAndCanBeRepeated(t *testing.T) {
	url := serverURL(t)
	var lines strings.Builder
	for i := range 1201 {
		fmt.Fprintf(&lines, "{\"n\":%d}\n\n", i) // empty lines are skipped
	}
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"enqueue", "--url", url, "--queue", "lines", "--type", "t", "--idempotency-key", "import", "--ndjson"}
	if out := well(t, append(args, file)...); !strings.HasPrefix(out, "1,201 new jobs in queue lines") {
		t.Error(out)
	}
	if out := well(t, append(args, file)...); !strings.HasPrefix(out, "0 new jobs in queue lines, 1,201 were there already") {
		t.Error(out)
	}
	out, _, _ := cli(t, lines.String()+"{\"n\":1201}", append(args, "-", "--json")...)
	if field(t, out, "enqueued") != "1" || field(t, out, "duplicates") != "1201" {
		t.Error(out)
	}
	listed := strings.Count(well(t, "jobs", "list", "--url", url, "--queue", "lines", "--limit", "0", "--json"), "\n")
	if listed != 1202 {
		t.Errorf("%d jobs are there", listed)
	}
}

func TestNDJSONSaysHowFarItCame(t *testing.T) {
	url := serverURL(t)
	many := strings.Repeat("{}\n", 700)
	for _, tt := range []struct {
		name, in string
		args     []string
		says     []string
	}{
		{"a bad line", many + "oops\n{}\n", nil, []string{"line 701 is not JSON", "Lines up to 700 are enqueued"}},
		{"a bad first line", "oops\n", nil, []string{"line 1 is not JSON", "Nothing was enqueued"}},
		{"a bad line with a key", "1\noops\n", []string{"--idempotency-key", "k"}, []string{"Lines up to 1", "adds only what is missing"}},
		{"a refusal", "1\n2\n", []string{"--type", "a,b"}, []string{"lines 1 to 2", "Nothing was enqueued"}},
		{"no server", "1\n", []string{"--url", "http://127.0.0.1:1"}, []string{"reprise serve", "Nothing was enqueued"}},
		{"a missing file", "", []string{"--ndjson", "/does/not/exist"}, []string{"no such file"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"enqueue", "--url", url, "--queue", "partly", "--type", "t", "--ndjson", "-"}, tt.args...)
			_, stderr, code := cli(t, tt.in, args...)
			for _, text := range tt.says {
				if code != 1 || !strings.Contains(stderr, text) || strings.Contains(stderr, "not known") {
					t.Errorf("exit code %d, %q is missing in:\n%s", code, text, stderr)
				}
			}
		})
	}
}

// The command line can set all that a job can carry, and the server has it then.
func TestEnqueueCarriesAllThatAJobCan(t *testing.T) {
	url := serverURL(t)
	out := well(t, "enqueue", "--url", url, "--queue", "carries", "--type", "t", "--delay", "1d12h", "--expires", "2d", "--place", "front",
		"--run-timeout", "1m", "--start-timeout", "5s", "--label", "a=1", "--label", "b=x=y", "--requires", "cpuMHz > 350", "--copies", "2",
		"--keep", "1d", "--keep-dead", "2h", "--retry", "{limit: 7, curve: {kind: constant, delay: 10s}}",
		"--traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "--json")
	job := well(t, "jobs", "show", "--url", url, field(t, out, "id"), "--json")
	for _, want := range []string{
		`"run_timeout_ms":60000`, `"start_timeout_ms":5000`, `"a":"1"`, `"b":"x=y"`, `"requires":["cpuMHz > 350"]`, `"copies":2`,
		`"completed_ms":86400000`, `"dead_ms":7200000`, `"limit":7`, `"delay":"10s"`, `"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`,
	} {
		if !strings.Contains(job, want) {
			t.Errorf("%s is not in %s", want, job)
		}
	}
}

// A misspelt policy is told by its member, and which was meant.
func TestAMisspeltPolicyOfAnEnqueueIsTold(t *testing.T) {
	for retry, want := range map[string]string{
		"{limt: 5}": "limt: unknown key", "{limit: 5, curve: {kind: constant, dely: 10s}}": "curve.dely: unknown key; the keys are kind, delay; did you mean delay?",
		"{curve: {kind: constnt}}": "did you mean constant?", `{"rules": [{"when": {"stauts": 503}, "do": "dead"}]}`: "rules[0].when.stauts: unknown key",
		"{limit: -1}": "use a whole number", "[1]": "must be keys with values", "{limit": "is not YAML",
	} {
		for _, way := range []string{retry, "@" + filepath.Join(t.TempDir(), "retry.yaml")} {
			if name, isFile := strings.CutPrefix(way, "@"); isFile {
				if err := os.WriteFile(name, []byte(retry), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, text, code := cli(t, "", "enqueue", "--url", "http://127.0.0.1:1", "--queue", "q", "--type", "t", "--retry", way)
			if code != 2 || !strings.Contains(text, want) || strings.Contains(text, "json:") {
				t.Errorf("%s: exit code %d: %s", retry, code, text)
			}
		}
	}
}

// Each member of an enqueue has its field in client.Job, or is said by others.
func TestAClientsJobHasEveryMember(t *testing.T) {
	others := map[string]bool{"ReadyAt": true, "ExpiresAt": true, "RunTimeoutMS": true, "StartTimeoutMS": true, "RetryLimit": true, "Backoff": true} // At, Delay, ExpiresAt, RunTimeout, StartTimeout, Retry
	own := reflect.TypeFor[client.Job]()
	for i := range reflect.TypeFor[wire.Enqueue]().NumField() {
		name := reflect.TypeFor[wire.Enqueue]().Field(i).Name
		if _, there := own.FieldByName(name); !there && !others[name] {
			t.Errorf("client.Job has no %s", name)
		}
	}
}
