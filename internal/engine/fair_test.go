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
		r.SetQueue("q", func(q *job.Queue) {
			q.Protection.Fair = &job.FairShare{}
			q.Retry.Curve = &job.Curve{Kind: job.CurveImmediate}
		})
		r.AddAll("q", "x")
		w := r.Anonymous(1)
		w.Gets("x")
		r.Add("q", "y")
		r.SetQueue("q", func(q *job.Queue) { q.Paused = true })
		w.Fails("x", func(s *engine.Settle) { s.Place = job.PlaceBack })
		r.Add("q", "a", grouped("a"))
		w.End()
		v := r.Anonymous(3)
		r.SetQueue("q", func(q *job.Queue) { q.Paused = false })
		v.Gets("y", "a", "x") // fresh y and retried x share a turn
	})
}

// The next member of an ordered group may stand better than the one before it.
func TestANextMemberAtTheFrontGoesFirst(t *testing.T) { // core.md 1 and 2
	for name, fair := range map[string]*job.FairShare{"in line order": nil, "fair": {}} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.SetQueue("q", func(q *job.Queue) { q.Order, q.Protection.Fair = job.OrderStart, fair })
				r.Add("q", "a1", grouped("a"))
				r.Add("p", "x")
				r.Add("q", "a2", grouped("a"), func(n *engine.NewJob) { n.Place = job.PlaceFront })
				r.Anonymous(3).Gets("a1", "a2", "x")
			})
		})
	}
}
