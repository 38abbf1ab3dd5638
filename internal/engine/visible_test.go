package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

func TestACountSeesWhatAListShows(t *testing.T) { // a terminal job past its retention is gone for everybody
	scenario(t, func(r *rig) {
		r.Add("q", "a", func(n *engine.NewJob) { n.Job.RetainDead = job.Hour })
		r.AddAll("q", "b", "waits")
		w := r.Anonymous(2)
		w.Gets("a", "b")
		r.Settled(w.Held["a"], job.Died)
		r.Settled(w.Held["b"], job.Released, func(s *engine.Settle) { s.Delay = job.Day })
		w.End()
		r.Jump(2 * job.Hour) // past the retention of a; the clock waits before it purges
		for _, f := range []engine.Filter{
			{},
			{Queues: []string{"q"}},
			{Types: []string{"t"}},
			{Queues: []string{"q"}, Types: []string{"t"}},
			{States: []job.State{job.Dead}},
			{IDs: []job.ID{r.IDs["a"], r.IDs["b"]}},
		} {
			list, err := r.List(r.Context(), f, 9)
			n, errCount := r.Count(r.Context(), f)
			if err != nil || errCount != nil || int(n) != len(list) {
				r.Errorf("%+v: counted %d, listed %d (%v, %v)", f, n, len(list), err, errCount)
			}
		}
		if _, err := r.Failures(r.Context(), r.IDs["a"], 0, false, 9); job.KindOf(err) != job.NotFound {
			r.Errorf("the errors of a job that is hidden: %v", err)
		}
		if s := r.Stats(); s.Purged != 0 {
			r.Error("nothing was hidden: the test shows nothing")
		}
	})
}
