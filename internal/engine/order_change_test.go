package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

// A dead head that holds its group belongs to it in the order it died in: a new one
// would let another member stand before it, which may park the group in its place.
func TestADeadHeadKeepsTheOrderOfItsQueue(t *testing.T) { // core.md 2, on_dead
	for _, onDead := range []job.OnDead{job.DeadBlock, job.DeadPark} {
		scenario(t, func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.Order, q.OnDead = job.OrderStart, onDead })
			r.Add("q", "a1", grouped("a"))
			r.Settled(r.Leased(engine.LeaseOptions{Max: 1}, "a1")["a1"], job.Died)
			change := func() error {
				_, err := r.Part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Order = job.OrderStrict; return nil }, job.Actor{})
				return err
			}
			if err := change(); job.KindOf(err) != job.WrongState {
				t.Errorf("on_dead %s: the order changed beside a dead head: %v", onDead, err)
			}
			if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a1"]); err != nil {
				t.Fatal(err)
			}
			if err := change(); err != nil {
				t.Errorf("on_dead %s: %v", onDead, err)
			}
		})
	}
}
