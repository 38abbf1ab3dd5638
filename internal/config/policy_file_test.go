package config

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestAPolicyIsReadFromEveryFormOfItsShape(t *testing.T) {
	want, err := job.ParseRetry([]byte(`{"limit":"unlimited","max_age":"3d","curve":{"kind":"exponential","jitter":"±10%"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"retry:\n  limit: unlimited\n  max_age: 72h\n  curve: {kind: exponential, jitter: ±10%}\n",
		"limit: unlimited # for ever\nmax_age: P3D\ncurve:\n  kind: exponential\n  jitter: ±10%\n",
		`{"limit": "unlimited", "max_age": 259200000, "curve": {"kind": "exponential", "jitter": "±10%"}}`,
		`{"retry": {"limit": "unlimited", "max_age": "3d", "curve": {"kind": "exponential", "jitter": "\u00b110%"}}}`,
	} {
		r, err := ReadPolicy("p", []byte(text))
		if err != nil || showRetry(r) != showRetry(want) {
			t.Errorf("%s\nis %s, want %s: %v", text, showRetry(r), showRetry(want), err)
		}
	}
	for _, empty := range []string{"", "# nothing\n", "{}", "retry:\n"} {
		if r, err := ReadPolicy("p", []byte(empty)); err != nil || !r.IsZero() {
			t.Errorf("%q: %s %v", empty, showRetry(r), err)
		}
	}
}

func TestEverythingWrongWithAPolicyIsToldWithItsLine(t *testing.T) {
	for text, says := range map[string][]string{
		"limit: -1\ncurve:\n  kind: uniform\n  base: 1m\n  cap: 1s\n": {"p.yaml:1: limit: ", "p.yaml:5: curve.cap: 1s is below base 1m"},
		"retry:\n  limt: 3\n  place: top\n":                           {"p.yaml:2: retry.limt: unknown key", "p.yaml:3: retry.place: "},
		"retry: {limit: 3}\nport: 1\n":                                {"p.yaml:2: port: stands beside retry"},
		"retry: 5\n":                                                  {"p.yaml:1: retry: must have keys"},
		"- a\n":                                                       {"must be keys with values"},
		"a: [\n":                                                      {"is not YAML"},
		"limit: 3\n---\nlimit: 4\n":                                   {"only one document"},
		"limit: 3\nlimit: 4\n":                                        {"p.yaml:2: limit: is there twice"},
	} {
		_, err := ReadPolicy("p.yaml", []byte(text))
		if job.KindOf(err) != job.Invalid {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for _, want := range says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v lacks %q", text, err, want)
			}
		}
	}
}
