package engine_test

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// bodiesOf are the payloads of the jobs in a state, sorted.
func (r *rig) bodiesOf(state job.State) (out []string) {
	r.Helper()
	list, err := enginetest.Page(r.Context(), r.Engine, store.Filter{States: []job.State{state}}, 100)
	if err != nil {
		r.Fatal(err)
	}
	for _, l := range list {
		if string(l.Payload) == "" || len(l.Payload) != int(l.Job.PayloadSize) {
			r.Errorf("job %s has %d bytes %q", l.Job.ID, l.Job.PayloadSize, l.Payload)
		}
		out = append(out, string(l.Payload))
	}
	slices.Sort(out)
	return out
}

// leaseOf takes the job whose payload is body, which comes next.
func (r *rig) leaseOf(body string) engine.Delivery {
	r.Helper()
	list, err := r.Lease(r.Context(), engine.LeaseOptions{Max: 1, For: job.Minute})
	if err != nil || len(list) != 1 || string(list[0].Payload) != body {
		r.Fatalf("got %+v (%v), want %s", list, err, body)
	}
	return list[0]
}

// TestAPartOfAJobGoesOnAlone: two of five records are delivered, one is dead, and two are
// tried again by the job itself, whose attempts go on.
func TestAPartOfAJobGoesOnAlone(t *testing.T) { // pipeline.md, decision 6
	scenario(t, func(r *rig) {
		r.Add("q", "abcde", func(n *engine.NewJob) { n.Job.Retry = &job.Retry{Limit: job.LimitOf(2)} })
		first := r.leaseOf("abcde")
		r.Settled(first, job.Retried, func(s *engine.Settle) {
			s.Rest = []byte("bc")
			s.Pieces = []engine.Piece{{Payload: []byte("d"), Outcome: job.Died, Failure: job.Failure{Type: "400", Message: "mapping"}}}
		})
		if got := r.bodiesOf(job.Dead); !slices.Equal(got, []string{"d"}) {
			r.Fatalf("dead: %q", got)
		}
		if got := r.bodiesOf(job.Scheduled); !slices.Equal(got, []string{"bc"}) {
			r.Fatalf("to be tried again: %q", got)
		}
		if r.Payloads(first.Job.Payload) != 0 {
			r.Error("the whole payload is still kept (I8)")
		}
		dead, err := r.List(r.Context(), store.Filter{States: []job.State{job.Dead}}, 1)
		if err != nil || dead[0].Job.Attempts != 1 || dead[0].Job.Reason != job.Killed {
			r.Fatalf("the dead piece: %+v, %v", dead, err)
		}
		r.PowerCut()
		r.Pass(job.Hour)
		again := r.leaseOf("bc")
		if again.Job.ID != first.Job.ID || again.Job.Attempts != 1 {
			r.Fatalf("job %s comes again after %d attempts", again.Job.ID, again.Job.Attempts)
		}
		if s, err := enginetest.Stats(r.Context(), r.Engine); err != nil || s.Died != 0 || s.Done != 0 {
			r.Errorf("this life counts %+v, %v", s, err)
		}
		r.Settled(again, job.OK)
		if got := r.bodiesOf(job.Leased); got != nil {
			r.Errorf("runs: %q", got)
		}
	})
}

// TestAJobIsHalved: a target refuses it as too large; both halves are due at once, and
// nobody is to blame.
func TestAJobIsHalved(t *testing.T) { // pipeline.md, decision 6
	scenario(t, func(r *rig) {
		r.AddAll("q", "abcd")
		r.Settled(r.leaseOf("abcd"), job.Released, func(s *engine.Settle) {
			s.Rest, s.Pieces = []byte("ab"), []engine.Piece{{Payload: []byte("cd"), Outcome: job.Released}}
		})
		for _, want := range []string{"ab", "cd"} {
			d := r.leaseOf(want)
			if d.Job.Attempts != 0 {
				r.Errorf("%s was charged", want)
			}
			r.Settled(d, job.OK)
		}
	})
}

// TestNoPiecesOfWhatIsRefused: a late token, and a member of a group.
func TestNoPiecesOfWhatIsRefused(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		d := r.leaseOf("a")
		cut := func(s *engine.Settle) {
			s.Rest, s.Pieces = []byte("x"), []engine.Piece{{Payload: []byte("y"), Outcome: job.Died}}
		}
		r.Settled(d, job.Released, func(s *engine.Settle) { s.Delay = job.Hour })
		s := engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: job.Retried}
		cut(&s)
		if v := r.Try(s); job.KindOf(v.Err) != job.Superseded && job.KindOf(v.Err) != job.NotFound {
			r.Errorf("a late token: %v", v.Err)
		}
		r.Add("q", "b", func(n *engine.NewJob) { n.Job.Group = "g" })
		d = r.leaseOf("b")
		s = engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: job.Retried}
		cut(&s)
		if v := r.Try(s); job.KindOf(v.Err) != job.WrongState {
			r.Errorf("a member of a group: %v", v.Err)
		}
		if got := append(r.bodiesOf(job.Dead), r.bodiesOf(job.Scheduled)...); !slices.Equal(got, []string{"a"}) {
			r.Errorf("pieces came to be: %q", got)
		}
		if got := r.bodiesOf(job.Leased); !slices.Contains(got, "b") {
			r.Errorf("the member of the group does not run any more: %q", got)
		}
	})
}
