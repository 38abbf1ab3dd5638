package grid_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Runs that time_left would copy, and that may have no copy when it looks: the
// clock passes them by. An error there would be everybody's in the transaction, and
// would come again with the next.

func TestTimeLeftPassesByWhatMayHaveNoCopySinceTheSessionWasChanged(t *testing.T) {
	for name, edit := range map[string]func(*job.Queue){
		"max_reschedules": func(q *job.Queue) { q.Grid.MaxReschedules = 0 },
		"max_copies":      func(q *job.Queue) { q.Grid.MaxCopies = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				m, idle := g.timed(func(r *job.Redundancy) { r.LeftFactor = 2.8 })
				m.tells("B", 0.2) // it is copied one second and one millisecond later
				change := func(q *job.Queue) error { edit(q); return nil }
				if _, err := g.Part.Grid.ChangeSession(g.Context(), "s", change, driver); err != nil {
					t.Fatal(err)
				}
				g.beating(job.Second+1, m, idle)
				g.tasks("s", "more")
				if got := m.Read(); len(got)+len(idle.Read()) != 1 {
					t.Errorf("the first engine was given %v", got)
				}
				g.counters("B", counts{"live": 1})
			})
		})
	}
}

// gate is a store whose transactions wait while it is shut.
type gate struct {
	store.Store
	shut atomic.Pointer[chan struct{}] // nil = open
}

func (g *gate) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	if shut := g.shut.Load(); shut != nil {
		<-*shut
	}
	return g.Store.Update(ctx, fn)
}

func TestTimeLeftPassesByARunThatEndsInTheTransactionInWhichItLooks(t *testing.T) {
	for _, how := range []job.Outcome{job.OK, job.Retried, job.Released, job.Died} {
		t.Run(how.String(), func(t *testing.T) {
			st := &gate{}
			grid(t, func(g *gridRig) {
				m, idle := g.timed(func(*job.Redundancy) {})
				m.tells("C", 0.5)
				idle.Gets()
				m.tells("B", 0.2) // it is copied one second later
				synctest.Wait()
				shut := make(chan struct{})
				st.shut.Store(&shut)
				g.Pass(job.Second)
				told := make(chan error, 1)
				go func() {
					list, err := g.Settle(g.Context(), []engine.Settle{{ID: g.IDs["B"], Token: m.Held["B"].Lease.Token, Outcome: how, Failure: job.Failure{Type: "E"}}})
					if err == nil {
						err = list[0].Err
					}
					told <- err
				}()
				synctest.Wait()
				close(shut)
				if err := <-told; err != nil {
					t.Errorf("the end of the run was refused: %v", err)
				}
				if s := g.state("s"); s.Redundant.Started[job.RedundantTimeLeft] != 0 {
					t.Errorf("%+v", s.Redundant)
				}
			}, func(r *rig) {
				r.Twice, r.Around = false, func(s store.Store) store.Store { st.Store = s; return st }
			})
		})
	}
}
