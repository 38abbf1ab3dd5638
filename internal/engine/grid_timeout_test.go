package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// Many runs that overrun within one second (acceptance test A10). The simulated
// clock says that each is ended at its own millisecond; BenchmarkA10Timeouts says
// what that takes of the real one.

func TestA10EveryOverrunIsEndedInItsOwnMillisecond(t *testing.T) {
	const engines, slots, most = 5, 10, 50 * job.Second
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.RunTimeout = most })
		var names []string
		for i := range engines * slots {
			names = append(names, fmt.Sprint("t", i))
		}
		g.tasks("s", names...)
		var up []*machine
		for i := range engines {
			up = append(up, g.engine(fmt.Sprint("w", i), slots))
		}
		began := map[string]job.Millis{}
		for _, m := range up { // their runs begin within one second
			m.read()
			for _, name := range names {
				if _, has := m.held[name]; has {
					m.starts(name)
					began[name] = g.clock.Wall()
				}
			}
			g.pass(job.Second / engines)
		}
		g.beating(most+job.Second, up...) // engines that live and do not stop by themselves
		told := 0
		for _, m := range up {
			told += len(m.read())
		}
		if told < len(names) {
			t.Errorf("%d of %d engines were told to stop", told, len(names))
		}
		for _, name := range names {
			a := g.job(name).History()
			if len(a) == 0 || a[0].Why != job.AttemptTimeout || a[0].Ended != began[name]+most || a[0].Charged != job.ChargedRetry {
				t.Fatalf("%s, which began at %d: %+v", name, began[name], a)
			}
		}
	}, func(r *rig) { r.twice = false })
}

// ahead is the system's clock, which a benchmark sets forward.
type ahead struct {
	engine.Clock
	by atomic.Int64
}

func (c *ahead) Wall() job.Millis   { return c.Clock.Wall() + job.Millis(c.by.Load()) }
func (c *ahead) Steady() job.Millis { return c.Clock.Steady() + job.Millis(c.by.Load()) }

// BenchmarkA10Timeouts is how long the clock takes to end 100,000 runs, on 1,000
// engines, that overrun at the same moment, through the disk.
func BenchmarkA10Timeouts(b *testing.B) {
	const engines, slots = 1000, 100
	clock := &ahead{Clock: engine.SystemClock()}
	st, err := embedded.Open(embedded.Options{Dir: b.TempDir(), Now: clock.Wall, Logf: b.Logf})
	if err != nil {
		b.Fatal(err)
	}
	src := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
	e := engine.New(st, clock, rnd, quiet, engine.Options{Server: rule.DefaultServer(), LostAfter: 9 * job.Hour})
	ctx := b.Context()
	n := engine.NewSession{Queue: *job.NewQueue("s")}
	documented(&n.Queue)
	n.Queue.RunTimeout = job.Hour
	if err := e.Start(ctx); err != nil {
		b.Fatal(err)
	}
	if _, err := e.OpenSession(ctx, n, job.Actor{}); err != nil {
		b.Fatal(err)
	}
	for range engines {
		list := make([]engine.NewJob, slots)
		for k := range list {
			list[k] = newNamed("s", "payload", task)
		}
		if _, err := e.Put(ctx, list); err != nil {
			b.Fatal(err)
		}
	}
	for i := range engines {
		name := fmt.Sprintf("w%04d", i)
		in, err := e.Login(ctx, engine.Login{Name: name, Slots: slots})
		if err != nil {
			b.Fatal(err)
		}
		list, err := e.MachineLease(ctx, name, in.Machine.Epoch, slots, nil)
		if err != nil || len(list) != slots {
			b.Fatal(len(list), err)
		}
		starts := make([]engine.Extension, slots)
		for k, d := range list {
			starts[k] = engine.Extension{ID: d.Job.ID, Token: d.Lease.Token, Started: true}
		}
		if _, err := e.Extend(ctx, starts); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	clock.by.Store(int64(2 * job.Hour))
	for left := int64(1); left > 0; {
		s, err := e.Session(ctx, "s")
		if err != nil {
			b.Fatal(err)
		}
		left = s.Depth.Leases
	}
	b.StopTimer()
	b.ReportMetric(engines*slots/b.Elapsed().Seconds(), "timeouts/s")
	if err := errors.Join(e.Stop(ctx), st.Close()); err != nil {
		b.Fatal(err)
	}
}
