package grid_test

import (
	"context"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// walks counts how often transactions list engines.
type walks struct {
	store.Store
	n int
}

func (w *walks) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	return w.Store.Update(ctx, func(tx store.Tx) error { return fn(walkTx{tx, &w.n}) })
}

type walkTx struct {
	store.Tx
	n *int
}

func (t walkTx) Rows(table job.Table, after string, n int) ([]job.Row, error) {
	if table == job.Holders {
		*t.n++
	}
	return t.Tx.Rows(table, after, n)
}

// A run that fails, and one that succeeds where another failed, is judged without a
// look at every engine there is.
func TestWhatAFailedRunSaysOfItsEngineCostsNoWalkOverAllEngines(t *testing.T) {
	w := &walks{}
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 0.5}))
		up := []*machine{g.engine("w0", 1), g.engine("w1", 1)}
		g.login("w2", 1) // these two ask for nothing
		g.login("w3", 1)
		g.tasks("s", "A", "B")
		up[0].Gets("A")
		up[1].Gets("B")
		w.n = 0
		up[0].Fails("A")
		up[1].OK("B")
		up[1].Gets("A")
		up[1].OK("A") // elsewhere
		if w.n > 0 {
			t.Errorf("engines were listed %d times", w.n)
		}
		if h := up[0].state().Health; h.State != job.HealthQuarantined {
			t.Errorf("%+v", h)
		}
		if s := g.state("s"); len(s.Strikes) != 1 || s.Strikes[0].Until == 0 {
			t.Errorf("%+v", s.Strikes)
		}
	}, func(r *rig) {
		r.Twice = false
		r.Grid.BlackHoles = &job.BlackHoles{Failures: 1, Fast: job.Second, Elsewhere: 1, Suspended: job.Minute, Quarantined: job.Minute, MaxFraction: 0.5}
		r.Around = func(s store.Store) store.Store { w.Store = s; return w }
	})
}
