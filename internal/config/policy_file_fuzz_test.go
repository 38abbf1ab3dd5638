package config

import (
	"encoding/json"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// FuzzReadPolicy reads a policy from a file. What is taken is valid, and means
// the same when it is written as JSON; a refusal says what is wrong, briefly.
func FuzzReadPolicy(f *testing.F) {
	for _, file := range []string{
		"limit: 3\ncurve: {kind: list, delays: [1s, 2m, P1D], jitter: ±10%}\n",
		"retry:\n  limit: unlimited\n  max_age: 2d\n  curve:\n    kind: exponential\n    unit: 1s\n    factor: 2\n",
		`{"limit":null,"curve":{"kind":"polynomial","exponent":4}}`,
		"retry: 7\nqueues: {}\n", "retry: {limit: &a 3, loss_limit: *a}\n", "curve: !!binary aGk=\n", "- 1\n", "\x00", "limit: ${env:HOME}\n",
	} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := ReadPolicy("policy.yaml", file)
		if err != nil {
			if job.KindOf(err) != job.Invalid || !r.IsZero() || len(err.Error()) > 64<<10 {
				t.Errorf("%q: %+v, with %d bytes of %.300v", file, r, len(err.Error()), err)
			}
			return
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("%q was read, but: %v", file, err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadPolicy("policy.json", text)
		if whole, _ := json.Marshal(again); err != nil || string(whole) != string(text) {
			t.Errorf("%q is %s, which is read as %s, %v", file, text, whole, err)
		}
	})
}
