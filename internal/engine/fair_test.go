package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Fresh and retried jobs without a group are two lines with one turn: what was
// offered together is not given out together.
func TestATurnIsOverAlsoForWhatWasOfferedTogether(t *testing.T) { // retry.md 4, fair share
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) {
			q.Protection.Fair = &job.FairShare{}
			q.Retry.Curve = &job.Curve{Kind: job.CurveImmediate}
		})
		r.puts("q", "x")
		w := r.anonymous(1)
		w.gets("x")
		r.put("q", "y")
		r.queue("q", func(q *job.Queue) { q.Paused = true })
		w.fail("x", func(s *engine.Settle) { s.Place = job.PlaceBack })
		r.put("q", "a", grouped("a"))
		w.close()
		v := r.anonymous(3)
		r.queue("q", func(q *job.Queue) { q.Paused = false })
		v.gets("y", "a", "x") // fresh y and retried x share a turn
	})
}
