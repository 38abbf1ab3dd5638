package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPreviewPrintsATableForPeopleAndTheJSONOfTheSpecification(t *testing.T) {
	out := well(t, "policy", "preview")
	for _, want := range []string{
		"limit: 25, curve: {kind: polynomial, base: 15s, exponent: 4,",
		"RETRY     EARLIEST         MEAN       LATEST  SUM EARLIEST    SUM LATEST\n    1          15s          15s          15s           15s           15s\n",
		"\n   25   3d20h9m51s  3d20h15m51s  3d20h21m51s   20d9h49m55s  20d12h19m55s\n",
		"20d9h49m55s to 20d12h19m55s after the first failure.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	want := `{"limit":2,"rows":[{"retry":1,"min_ms":5000,"mean_ms":7500,"max_ms":10000,"total_min_ms":5000,"total_max_ms":10000},` +
		`{"retry":2,"min_ms":5000,"mean_ms":12500,"max_ms":20000,"total_min_ms":10000,"total_max_ms":30000}]}` + "\n"
	if got := well(t, "policy", "preview", "--curve", "uniform", "--limit", "2", "--json"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestPreviewReadsAPolicyFromFlagsAFileAndStandardInput(t *testing.T) {
	want := well(t, "policy", "preview", "--curve", "constant", "--delay", "7s", "--limit", "unlimited", "--rows", "3")
	if !strings.Contains(want, "no limit") || strings.Count(want, "7s") < 10 {
		t.Errorf("%s", want)
	}
	yaml := "retry:\n  limit: unlimited\n  curve: {kind: constant, delay: 7s}\n"
	name := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(name, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := well(t, "policy", "preview", "--policy", name, "--rows", "3"); got != want {
		t.Errorf("from the file: %s", got)
	}
	for _, text := range []string{yaml, `{"limit":"unlimited","curve":{"kind":"constant","delay":7000}}`} {
		if got, stderr, _ := cli(t, text, "policy", "preview", "--policy", "-", "--rows", "3"); got != want {
			t.Errorf("from standard input: %s%s", got, stderr)
		}
	}
}

func TestPolicyCommandLinesThatAreWrongNameEverythingAtOnce(t *testing.T) {
	for _, tt := range []struct {
		stdin, line string
		code        int
		says        []string
	}{
		{"", "policy preview --base -1s --exponent x --limit many --rows 0", 2, []string{"4 problems", "--base: ", "--exponent: ", "--limit: ", "--rows: "}},
		{"", "policy preview --curve zigzag", 2, []string{"--curve: ", "use one of polynomial"}},
		{"", "policy preview --limit 1 --limit 2", 2, []string{"--limit: is there twice"}},
		{"", "policy preview --policy p.yaml --limit 1", 2, []string{"--policy and --limit exclude each other"}},
		{"", "policy preview --policy no/such/file", 1, []string{"no such file"}},
		{"limt: 1\nplace: top\n", "policy preview --policy -", 1, []string{"standard input:1: limt: unknown key", "standard input:2: place: "}},
		{"", "policy preview --svg no/such/dir/x.svg", 1, []string{"no such file or directory"}},
		{"", "policy preview x", 2, []string{"takes no argument"}},
		{"", "policy bogus", 2, []string{"no command"}},
		{"", "policy simulate --jobs 0 --arrival -1 --capacity 0 --outage 2m..1m", 2, []string{"4 problems", "jobs: ", "arrival: ", "capacity: ", "outage: "}},
		{"", "policy simulate --outage 5m", 2, []string{"--outage: ", "such as 1m..6m"}},
		{"", "policy simulate --rows 3", 2, []string{"unknown flag"}},
	} {
		out, stderr, code := cli(t, tt.stdin, strings.Fields(tt.line)...)
		if code != tt.code || out != "" {
			t.Errorf("%s: exit code %d, want %d: %s", tt.line, code, tt.code, out)
		}
		for _, want := range tt.says {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: %q lacks %q", tt.line, stderr, want)
			}
		}
	}
}

func TestPicturesGoToAFileOrToStandardOutput(t *testing.T) {
	for _, line := range []string{"policy preview", "policy simulate --jobs 200"} {
		name := filepath.Join(t.TempDir(), "x.svg")
		table := well(t, append(strings.Fields(line), "--svg", name)...)
		svg := well(t, append(strings.Fields(line), "--svg", "-")...)
		written, err := os.ReadFile(name)
		if err != nil || string(written) != svg || !strings.HasPrefix(svg, "<svg ") || strings.Contains(table, "<svg") || table == "" {
			t.Errorf("%s: %v\n%.100s\n%.100s", line, err, svg, table)
		}
	}
}

func TestSimulateTellsTheSameInWordsAndAsJSON(t *testing.T) {
	args := []string{"policy", "simulate", "--jobs", "500", "--arrival", "0", "--outage", "0s..1m", "--capacity", "100", "--curve", "exponential"}
	out := well(t, args...)
	if out != well(t, args...) || out == well(t, append(args, "--seed", "2")...) {
		t.Error("the same seed must print the same, another one must not")
	}
	var report struct {
		Jobs, Done, Dead int
		Wasted           int64  `json:"wasted_attempts"`
		Recovery         *int64 `json:"recovery_ms"`
	}
	if err := json.Unmarshal([]byte(well(t, append(args, "--json")...)), &report); err != nil || report.Jobs != 500 || report.Recovery == nil {
		t.Fatalf("%+v %v", report, err)
	}
	for _, want := range []string{"jobs done", "jobs dead", "time to recover", "peak retry rate", "wasted             " + thousands(report.Wasted) + " ("} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestDecideTellsWhatAPolicyMakesOfAFailure(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(name, []byte("rules:\n- {when: {message: lock}, do: release, delay: 2s}\n- {when: {status: 4xx, timeout: true}, do: dead}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--message a-lock --failed 3":         "rules[0] decides: release\nnot charged; tried again 2s later\n",
		"--status 404 --timed-out":            "rules[1] decides: dead\ncharged as attempt 1; dead, reason killed\n",
		"--status 404 --retry-after 2m":       "no rule matches: the policy decides\ncharged as attempt 1; tried again 2m to 2m12s later\nits group, or else its queue, is held for 2m to 2m12s\n",
		"--error-type E --exit-code 1 --json": `{"rule":null,"do":"retry","charged":true,"attempts":1,"min_ms":15000,"max_ms":15000}` + "\n",
		"--status 404 --timed-out --json":     `{"rule":1,"do":"dead","charged":true,"attempts":1,"reason":"killed","min_ms":0,"max_ms":0}` + "\n",
	} {
		if got := well(t, append([]string{"policy", "decide", "--policy", name}, strings.Fields(line)...)...); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	for _, line := range []string{"--status 1000", "--exit-code 256", "--retry-after -1s", "--limit x", "--failed 4294967295"} {
		if _, stderr, code := cli(t, "", append([]string{"policy", "decide"}, strings.Fields(line)...)...); code != 2 || !strings.Contains(stderr, strings.Fields(line)[0]) {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}
