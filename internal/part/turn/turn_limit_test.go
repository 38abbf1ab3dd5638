package turn_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// The heads of several groups are found together; what the members behind the first
// ones use up is not there for the others.
func TestLimitsHoldOverTheTurnsOfOneTake(t *testing.T) { // retry.md 4
	for name, limit := range map[string]func(*job.Queue){
		"runs at once": func(q *job.Queue) { q.Protection.MaxRunning = 2 },
		"a rate":       func(q *job.Queue) { q.Protection.Rate = job.Rate{PerSecond: 0.01, Burst: 2} },
	} {
		t.Run(name, func(t *testing.T) {
			inbox(t, bothModes, func(r *rig) {
				r.SetQueue("in", limit)
				r.Members("a1", "b1", "a2", "b2")
				r.Took(whole, "a: a1 a2")
			})
		})
	}
}
