package grid_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/store"
)

// Acceptance tests of the reference with all their numbers on the simulated clock
// and engines (A13 to A15, A17, A18); what the rules alone say of them is tested
// there.

// late has a session of so many tasks, the first of which take these seconds, and an
// engine that comes when they are done. The others begin then, a second apart.
func (g *gridRig) late(tasks int, took ...job.Millis) (slow, idle *machine, left []string) {
	g.Helper()
	slow = g.engine("w1", tasks)
	var names []string
	for i := range tasks {
		names = append(names, fmt.Sprintf("t%02d", i))
	}
	g.tasks("s", names...)
	slow.Gets(names...)
	slow.starts(names[:len(took)]...)
	at := job.Millis(0)
	for i, secs := range took {
		g.beating(secs*job.Second-at, slow)
		at = secs * job.Second
		slow.OK(names[i])
	}
	left = names[len(took):]
	for i, name := range left {
		if i > 0 {
			g.beating(job.Second, slow)
		}
		slow.starts(name)
	}
	return slow, g.engine("w2", 2), left
}

func TestA13WithSparksParametersNothingIsCopiedBeforeNineOfTenAreDone(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", redundant(func(r *job.Redundancy) { r.MedianFactor, r.MedianDone = 3, 0.9 }))
		slow, idle, left := g.late(10, 8, 9, 9, 10, 10, 10, 11, 11)
		g.beating(job.Hour, slow, idle)
		idle.Gets()
		g.counters(left[0], counts{"live": 1})
		slow.OK(left[0])
		idle.Gets(left[1]) // the ninth is done: now it is a straggler
	})
}

func TestA14TwoSlowRunsMaskTheThirdFromStddevAndNotFromMedian(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*job.Redundancy)
		above job.Millis
	}{
		"stddev": {strategy(job.RedundantStddev), 80 * job.Second},
		"median": {func(r *job.Redundancy) { r.MedianFactor = 3 }, 30 * job.Second},
	} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", redundant(c.edit))
				slow, idle, left := g.late(12, 10, 10, 10, 10, 10, 10, 10, 10, 60, 60)
				g.beating(c.above-job.Second, slow, idle) // the first of the two that are left began a second ago
				idle.Gets()
				g.beating(1, slow, idle)
				idle.Gets(left[0])
				g.counters(left[1], counts{"live": 1})
			})
		})
	}
}

func TestA15ACopyIsNotStartedBeforeFiveTasksThatWait(t *testing.T) {
	for _, first := range []bool{false, true} { // copies go first
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", redundant(func(r *job.Redundancy) { r.MedianDone = 0.5 }), func(q *job.Queue) {
					if first {
						q.Grid.CopyPlace = job.PlaceFront
					}
				})
				slow, idle, left := g.late(10, 8, 9, 9, 10, 10, 10, 11, 11, 12)
				slow.drain()
				idle.logoff()
				one := g.engine("w3", 1)
				fresh := []string{"f0", "f1", "f2", "f3", "f4", "f5"}
				g.tasks("s", fresh...)
				one.Gets("f0")
				g.beating(20*job.Second+1, slow, one)
				want := append(slices.Clone(fresh[1:]), left...)
				if first {
					want = append(slices.Clone(left), fresh[1:]...)
				}
				last := "f0"
				for _, name := range want {
					one.OK(last)
					one.Gets(name)
					last = name
				}
				if first {
					g.counters(left[0], counts{"reschedules": 1}) // it is done
				} else {
					g.counters(left[0], counts{"live": 2, "reschedules": 1})
				}
			})
		})
	}
}

// A17: 100 engines; two tasks in three are done when all take ten times as long. A
// tenth of what runs may be copies, and they may spend 5 % of the useful time and
// a burst of 60 s: 160 s in all. Then they are taken back, and there are no more.
func TestA17AHundredEnginesThatSlowDownSpendNoMoreThanTheBudget(t *testing.T) {
	const engines, tasks, slow = 100, 260, 60
	grid(t, func(g *gridRig) {
		g.session("s", redundant(), func(q *job.Queue) { q.Grid.MaxReschedules = 9 })
		var list []engine.NewJob
		for i := range tasks {
			list = append(list, newNamed("s", fmt.Sprint("t", i), task))
		}
		added, err := g.Put(g.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range added {
			g.Call(a.ID, fmt.Sprint("t", i))
		}
		up := make([]*machine, engines)
		for i := range up {
			up[i] = g.engine(fmt.Sprintf("w%02d", i), 1)
		}
		run := map[job.Token]job.ID{}
		begin := func() {
			var starts []engine.Extension
			for _, m := range up {
				m.Read()
				for name, d := range m.Held {
					delete(m.Held, name)
					run[d.Lease.Token] = d.Job.ID
					starts = append(starts, engine.Extension{ID: d.Job.ID, Token: d.Lease.Token, Started: true})
				}
			}
			if _, err := g.Extend(g.Context(), starts); err != nil {
				t.Fatal(err)
			}
		}
		end := func() {
			var ends []engine.Settle
			for token, id := range run {
				ends = append(ends, engine.Settle{ID: id, Token: token})
			}
			clear(run)
			if _, err := g.Settle(g.Context(), ends); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			begin()
			g.Pass(10 * job.Second)
			end()
		}
		begin()
		if len(run) != slow {
			t.Fatalf("%d tasks are left", len(run))
		}
		g.Pass(100 * job.Second)
		end()
		var copies []job.Attempt
		spent := job.Millis(0)
		for i := range tasks {
			for _, a := range g.Expect(fmt.Sprint("t", i), job.Done).History() {
				if a.Copy {
					copies = append(copies, a)
					spent += a.Ended - a.Since
				}
			}
		}
		most := 0
		for _, a := range copies {
			n := 0
			for _, b := range copies {
				n += oneOf(b.Since <= a.Since && a.Since < b.Ended)
			}
			most = max(most, n)
		}
		s := g.state("s").Redundant
		if most != 6 || len(copies) != 6 || s.Withdrawn != 6 || s.Started[job.RedundantMedian] != 6 {
			t.Errorf("%d copies, %d at once; %+v", len(copies), most, s)
		}
		if allowed := job.Minute + 2000*job.Second/20; spent > allowed || spent < allowed-job.Second || s.Seconds != spent {
			t.Errorf("they took %s, allowed are %s: %+v", spent, allowed, s)
		}
		if s.Suppressed["running_share"] == 0 || s.Suppressed["seconds_share"] == 0 {
			t.Errorf("nothing was barred: %+v", s.Suppressed)
		}
	}, func(r *rig) { r.Twice, r.Grid.LostAfter = false, job.Hour })
}

func TestA18NoStrategyCopiesANonIdempotentTask(t *testing.T) {
	grid(t, func(g *gridRig) {
		all := job.RedundancyOf(job.RedundantTail, job.RedundantMean, job.RedundantStddev, job.RedundantMedian, job.RedundantTimeLeft, job.RedundantHedge, job.RedundantClone)
		g.session("s", redundant(func(r *job.Redundancy) { r.Strategies, r.HedgeSamples = all, 5 }), func(q *job.Queue) { q.NonIdempotent = true })
		slow, idle := g.sample()
		slow.tells("t9", 0.1)
		g.beating(10*job.Minute, slow, idle)
		idle.Gets()
		g.counters("t9", counts{"live": 1})
	})
}

// However many runs are over their time at once, one transaction ends no more than
// 1,000 of them, and all end in the same millisecond.
func TestOneTransactionEndsNoMoreThanAThousandRuns(t *testing.T) {
	const runs = 1_100
	p := &parts{}
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.RunTimeout = 50 * job.Second })
		list := make([]engine.NewJob, runs)
		for i := range list {
			list[i] = newNamed("s", fmt.Sprint(i), task)
		}
		added, err := g.Put(g.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		in := g.login("w", runs)
		var starts []engine.Extension
		for len(starts) < runs {
			taken, err := g.Part.Grid.EngineLease(g.Context(), "w", in.Engine.Epoch, runs, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range taken {
				starts = append(starts, engine.Extension{ID: d.Job.ID, Token: d.Lease.Token, Started: true})
			}
		}
		if _, err := g.Extend(g.Context(), starts); err != nil {
			t.Fatal(err)
		}
		over := g.Clock.Wall() + 50*job.Second
		for range 5 {
			if _, err := g.Part.Grid.Heartbeat(g.Context(), "w", gridpart.Beat{Epoch: in.Engine.Epoch}); err != nil {
				t.Fatal(err)
			}
			if g.Pass(9 * job.Second); over-g.Clock.Wall() > 6*job.Second {
				g.Pass(job.Second)
			}
		}
		g.Pass(over - g.Clock.Wall() - 1)
		p.most.Store(0)
		p.n.Store(0)
		g.Pass(1)
		if n, most := p.n.Load(), p.most.Load(); most != 1000 || n != 2 {
			t.Errorf("%d transactions, one of which ended %d runs", n, most)
		}
		for _, a := range added {
			j, _, err := g.Get(g.Context(), a.ID)
			if err != nil {
				t.Fatal(err)
			}
			if h := j.History(); len(h) != 1 || h[0].Why != job.AttemptTimeout || h[0].Ended != over {
				t.Fatalf("%+v, want the end at %d", h, over)
			}
		}
	}, func(r *rig) { r.Twice = false; r.Around = func(s store.Store) store.Store { p.Store = s; return p } })
}

// parts counts the transactions that write jobs, and how many one wrote at most.
type parts struct {
	store.Store
	n, most atomic.Int64
}

func (p *parts) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	var tx *pieceTx
	c, err := p.Store.Update(ctx, func(inner store.Tx) error {
		tx = &pieceTx{Tx: inner}
		return fn(tx)
	})
	if tx != nil && tx.n > 0 {
		p.n.Add(1)
		p.most.Store(max(p.most.Load(), int64(tx.n)))
	}
	return c, err
}
