package parttest

import (
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Threes is a breaker that opens after three failures in a row.
func Threes() *job.Breaker {
	b := job.DefaultBreaker()
	b.Ratio, b.Consecutive = 0, 3
	return &b
}

// Breaker gives a queue such a breaker, and GroupBreaker each of its groups.
func Breaker(q *job.Queue) { q.Protection.Breaker, q.Retry.Curve = Threes(), Wait(job.Second) }

// GroupBreaker is described at Breaker.
func GroupBreaker(q *job.Queue) {
	q.Protection.GroupBreaker, q.Retry.Curve = Threes(), Wait(job.Second)
}

// Throttle reads what slows a queue or a group down; blank if nothing does.
func (r *Rig) Throttle(queue, group string) job.Throttle {
	r.Helper()
	t := job.Throttle{Queue: queue, Group: group}
	err := r.Mem.View(r.Context(), func(v store.Reader) error {
		row, err := v.Row(job.Throttles, t.Key())
		if row != nil {
			t = *row.(*job.Throttle)
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return t
}

// BreakerIs wants the breaker of a queue, or of a group, in a state.
func (r *Rig) BreakerIs(queue, group string, want job.BreakerState) {
	r.Helper()
	synctest.Wait()
	if t := r.Throttle(queue, group); t.State != want {
		r.Fatalf("the breaker of %q %q is %s, want %s", queue, group, t.State, want)
	}
}

// FailAll ends several attempts at once.
func (s *Stream) FailAll(names ...string) {
	s.r.Helper()
	var list []engine.Settle
	for _, name := range names {
		d := s.Held[name]
		list = append(list, engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: job.Retried, Failure: job.Failure{Message: "boom"}})
	}
	verdicts, err := s.r.Settle(s.r.Context(), list)
	if err != nil {
		s.r.Fatal(err)
	}
	for i, v := range verdicts {
		if v.Err != nil {
			s.r.Fatalf("%s: %v", names[i], v.Err)
		}
	}
}
