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

// The next member of an ordered group may stand better than the one before it.
func TestANextMemberAtTheFrontGoesFirst(t *testing.T) { // core.md 1 and 2
	for name, fair := range map[string]*job.FairShare{"in line order": nil, "fair": {}} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.queue("q", func(q *job.Queue) { q.Order, q.Protection.Fair = job.OrderStart, fair })
				r.put("q", "a1", grouped("a"))
				r.put("p", "x")
				r.put("q", "a2", grouped("a"), func(n *engine.NewJob) { n.Place = job.PlaceFront })
				r.anonymous(3).gets("a1", "a2", "x")
			})
		})
	}
}
