package grid_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// pieces counts the jobs that each transaction writes, and does something after
// some of them: the power goes, somebody calls.
type pieces struct {
	store.Store
	most  int // jobs written by one transaction
	parts int // transactions that wrote jobs
	after map[int]func()
	dead  bool
}

type pieceTx struct {
	store.Tx
	n int
}

func (p *pieceTx) Write(old, new *job.Job) error {
	p.n++
	return p.Tx.Write(old, new)
}

func (p *pieces) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	if p.dead {
		return nil, errDisk
	}
	var tx *pieceTx
	c, err := p.Store.Update(ctx, func(inner store.Tx) error {
		tx = &pieceTx{Tx: inner}
		return fn(tx)
	})
	if tx != nil && tx.n > 0 {
		p.most = max(p.most, tx.n)
		p.parts++
		if do := p.after[p.parts]; do != nil {
			do()
		}
	}
	return c, err
}

// dependents of the tests on the dumb store, which looks at all of them each time.
const dependents = 1_200

// waiting submits a task A and many that need it, some of them by way of others.
func (g *gridRig) waiting(on job.OnDepFail) {
	g.Helper()
	g.session("s", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(0) })
	g.Add("s", "A", needs("A", 0))
	var list []engine.NewJob
	for i := range dependents {
		n, need := newNamed("s", strconv.Itoa(i)), "A"
		if i%10 == 9 {
			need = strconv.Itoa(i - 1)
		}
		needs(strconv.Itoa(i), on, need)(&n)
		list = append(list, n)
	}
	added, err := g.Put(g.Context(), list)
	if err != nil {
		g.Fatal(err)
	}
	for i, a := range added {
		g.Call(a.ID, strconv.Itoa(i))
	}
}

// aside counts the tasks that wait for others, and those in each state.
func (g *gridRig) aside() (waiting int, states map[job.State]int) {
	g.Helper()
	states = map[job.State]int{}
	err := g.Mem.View(g.Context(), func(v store.Reader) error {
		list, err := v.List(store.Filter{Queues: []string{"s"}}, 2*dependents)
		for _, j := range list {
			if states[j.State]++; j.Park != "" {
				waiting++
			}
		}
		return err
	})
	if err != nil {
		g.Fatal(err)
	}
	return waiting, states
}

// Whoever has many dependents does not stop everybody else while they are told:
// a transaction tells some of them. One that is lost half way, or the power with
// it, loses none of them.
func TestManyDependentsAreToldPieceByPieceAndNoneIsForgotten(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails bool
		after int // pieces until it happens
		what  func(g *gridRig, p *pieces)
	}{
		{"undisturbed", false, 0, nil},
		{"undisturbed, and all fail", true, 0, nil},
		{"power cut", false, 2, func(_ *gridRig, p *pieces) { p.dead = true }},
		{"power cut, and all fail", true, 2, func(_ *gridRig, p *pieces) { p.dead = true }},
		{"a commit fails", false, 2, func(g *gridRig, _ *pieces) { g.Mem.FailNextCommit(errDisk) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &pieces{}
			grid(t, func(g *gridRig) {
				g.waiting(job.DepFail)
				m := g.engine("e", 1)
				m.Gets("A")
				*p = pieces{Store: p.Store, after: map[int]func(){}}
				if c.what != nil {
					p.after[c.after] = func() { c.what(g, p) }
				}
				if c.fails {
					m.Fails("A")
				} else {
					m.OK("A")
				}
				m.End()
				if g.Pass(0); p.dead {
					if waiting, _ := g.aside(); waiting == 0 || waiting == dependents {
						t.Fatalf("the power went, and %d of %d wait", waiting, dependents)
					}
					g.PowerCut()
				} else if c.what != nil {
					g.Recovered()
				}
				g.Pass(job.Second)
				waiting, states := g.aside()
				switch {
				case c.fails && (waiting > 0 || states[job.Dead] != dependents+1):
					t.Errorf("all that need A fail with it: %d wait, %v", waiting, states)
				case !c.fails && (waiting != dependents/10 || states[job.Ready]+states[job.Leased] != dependents || states[job.Done] != 1):
					t.Errorf("%d wait for others yet, want %d; %v", waiting, dependents/10, states)
				}
				if s := g.state("s"); s.Failed != int64(states[job.Dead]) || s.Open() != int64(states[job.Ready]+states[job.Leased]) {
					t.Errorf("%+v, there are %v", s.Session, states)
				}
				if p.most > 520 || p.parts < 3 {
					t.Errorf("%d transactions, one of which wrote %d tasks", p.parts, p.most)
				}
			}, func(r *rig) {
				r.Twice = false
				r.Around = func(s store.Store) store.Store { *p = pieces{Store: s, most: p.most, parts: p.parts}; return p }
			})
		})
	}
}

// A task that is brought back while those that need it are told of its failure
// is waited for again by the rest of them.
func TestDependentsOfATaskThatIsRevivedWaitForIt(t *testing.T) {
	p := &pieces{}
	grid(t, func(g *gridRig) {
		g.waiting(job.DepFail)
		m := g.engine("e", 1)
		m.Gets("A")
		revived := make(chan error, 1)
		*p = pieces{Store: p.Store, after: map[int]func(){1: func() { // more wait yet than one transaction tells
			go func() {
				_, err := enginetest.Operate(g.Context(), g.Engine, g.IDs["A"], rule.Command{Verb: rule.Revive})
				revived <- err
			}()
			<-time.After(time.Nanosecond) // it waits for its turn now
		}}}
		m.Fails("A")
		if err := <-revived; err != nil {
			t.Fatal(err)
		}
		m.Gets("A")
		waiting, states := g.aside()
		if failed := states[job.Dead]; failed == 0 || waiting == 0 || waiting+failed < dependents {
			t.Errorf("%d wait, %v", waiting, states)
		}
		m.OK("A")
		m.End()
		g.Pass(0)
		if waiting, states = g.aside(); waiting > dependents/10 {
			t.Errorf("%d wait, %v", waiting, states)
		}
	}, func(r *rig) { r.Twice = false; r.Around = func(s store.Store) store.Store { p.Store = s; return p } })
}

// What failed is known for as long as it may be needed, also in a session whose
// results nobody collects and on a server that keeps no dead.
func TestDependentsOfATaskThatLeavesAtOnceFailWithIt(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) {
			q.Retry.Limit, q.RetainDone, q.RetainDead, q.Grid.Collection = job.LimitOf(0), 0, job.Unset, job.CollectNever
		})
		g.Add("s", "A", needs("1", 0))
		g.Add("s", "B", needs("2", 0, "1"))
		m := g.engine("e", 1)
		m.Gets("A")
		m.Fails("A")
		m.Gets()
		g.Add("s", "C", needs("3", 0, "1"))
		m.Gets()
		if s := g.state("s"); s.Failed != 3 {
			t.Errorf("%+v", s.Session)
		}
	}, func(r *rig) { r.Opts.Server.RetainDead = 0 })
}

// Ten thousand, on a server that is killed while they are told, or on a disk that
// loses its power, and what was not synced.
func TestTenThousandDependentsOutliveAPowerCut(t *testing.T) {
	t.Run("killed", func(t *testing.T) { tenThousandDependents(t, 100) })
	t.Run("power cut", func(t *testing.T) { tenThousandDependents(t, 50) })
}

// tenThousandDependents loses all but so many percent of what is not synced.
func tenThousandDependents(t *testing.T, kept int) {
	t.Parallel()
	const many = 10_000
	ctx, fs := t.Context(), vfs.NewCrashableMem()
	var p *pieces
	life := func(fs vfs.FS) (*part.Engine, func()) {
		clock := engine.SystemClock()
		st, err := embedded.Open(embedded.Options{Dir: "data", FS: fs, Now: clock.Wall})
		if err != nil {
			t.Fatal(err)
		}
		p = &pieces{Store: st, after: map[int]func(){}}
		e := part.New(p, clock, dice(uint64(clock.Wall())).Uint64, quiet, engine.Options{Server: rule.DefaultServer()})
		if err := e.Start(ctx); err != nil {
			t.Fatal(err)
		}
		return e, func() {
			if err := errors.Join(e.Stop(context.Background()), st.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	e, end := life(fs)
	n := gridpart.NewSession{Queue: *job.NewQueue("s")}
	documented(&n.Queue)
	if _, err := e.Grid.OpenSession(ctx, n, driver); err != nil {
		t.Fatal(err)
	}
	list := []engine.NewJob{newNamed("s", "A", needs("A", 0))}
	for i := range many {
		need := "A"
		if i%2 == 1 {
			need = strconv.Itoa(i - 1)
		}
		list = append(list, newNamed("s", "x", needs(strconv.Itoa(i), job.DepFail, need)))
	}
	added, err := e.Put(ctx, list)
	if err != nil {
		t.Fatal(err)
	}
	var after *vfs.MemFS
	dark := make(chan struct{})
	p.parts, p.after = 0, map[int]func(){13: func() { // half of them needed A; of the others some know
		after = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: dice(9)})
		close(dark)
	}}
	if _, err := enginetest.Operate(ctx, e.Engine, added[0].ID, cancel); err != nil {
		t.Fatal(err)
	}
	<-dark
	end()
	e, end = life(after)
	defer end()
	for calls := 0; ; calls++ { // each is a transaction, and tells some
		s, err := e.Grid.Session(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		if calls == 0 && (s.Failed == 0 || s.Failed == many) {
			t.Errorf("when the power went %d of %d had been told", s.Failed, many)
		}
		if s.Failed == many && s.Cancelled == 1 && s.Open() == 0 {
			break
		}
		if calls > 100 {
			t.Fatalf("%+v", s.Session)
		}
	}
	if p.most > 520 {
		t.Errorf("a transaction wrote %d tasks", p.most)
	}
}
