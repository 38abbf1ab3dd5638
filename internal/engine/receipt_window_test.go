package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// TestAReceiptPastItsWindowSaysNothingThoughItIsThere: the clock was set
// forward, and the put comes before anybody could forget the receipt.
func TestAReceiptPastItsWindowSaysNothingThoughItIsThere(t *testing.T) { // core.md section 7
	for _, c := range []struct {
		step      job.Millis
		duplicate bool
	}{{job.Hour - 1, true}, {job.Hour, false}} {
		scenario(t, func(r *rig) {
			r.Add("q", "a", keyed("k"))
			r.Pass(0)
			r.Clock.Step.Add(int64(c.step))
			if again := r.PutAgain(newNamed("q", "a", keyed("k")))[0]; again.Duplicate != c.duplicate {
				r.Errorf("%s later: duplicate %t, want %t", c.step, again.Duplicate, c.duplicate)
			}
		})
	}
}
