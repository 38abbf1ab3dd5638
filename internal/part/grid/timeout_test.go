package grid_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// Many runs that overrun within one second (acceptance test A10). The simulated
// clock says that each is ended at its own millisecond, and the writes that many at
// the same moment cost what they cost one by one; BenchmarkTimeouts says what that
// takes of the real clock.

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
			m.Read()
			for _, name := range names {
				if _, has := m.Held[name]; has {
					m.starts(name)
					began[name] = g.Clock.Wall()
				}
			}
			g.Pass(job.Second / engines)
		}
		g.beating(most+job.Second, up...) // engines that live and do not stop by themselves
		told := 0
		for _, m := range up {
			told += len(m.Read())
		}
		if told < len(names) {
			t.Errorf("%d of %d engines were told to stop", told, len(names))
		}
		for _, name := range names {
			a := g.Job(name).History()
			if len(a) == 0 || a[0].Why != job.AttemptTimeout || a[0].Ended != began[name]+most || a[0].Charged != job.ChargedRetry {
				t.Fatalf("%s, which began at %d: %+v", name, began[name], a)
			}
		}
	}, func(r *rig) { r.Twice = false })
}

// A10: of modern's slack of 2 s. An engine that ends its run by itself is free at
// once; one that is mute is told 2 s later, and is trusted with nothing until it
// says that it has stopped.
func TestA10AnEngineThatEndsItsRunIsFreeAndAMuteOneIsEndedAfterTheSlack(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.RunTimeout, q.Grid.TimeoutSlack = 50*job.Second, 2*job.Second })
		g.tasks("s", "A", "B")
		good, mute := g.engine("good", 1), g.engine("mute", 1)
		ran := map[*machine]string{}
		for _, m := range []*machine{good, mute} {
			m.Read()
			for name, d := range m.Held {
				m.starts(name)
				if ran[m] = name; d.StopAfter != 50*job.Second {
					t.Errorf("%s is to end its run after %s", m.name, d.StopAfter)
				}
			}
		}
		began := g.Clock.Wall()
		g.beating(50*job.Second, good, mute)
		d := good.Held[ran[good]]
		_, err := g.Settle(g.Context(), []engine.Settle{{
			ID: d.Job.ID, Token: d.Lease.Token, Outcome: job.Retried, Failure: job.Failure{Type: "timeout", Timeout: true},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if state := good.state(); state.State != gridpart.EngineBusy || len(state.Stopping) > 0 { // it has the next run
			t.Errorf("the engine that ended its run: %+v", state)
		}
		g.Pass(2*job.Second - 1)
		if state := mute.state(); len(state.Stopping) > 0 {
			t.Errorf("the mute engine was told to stop before the slack was over: %+v", state)
		}
		g.Pass(1)
		if state := mute.state(); state.State != gridpart.EngineStopping {
			t.Errorf("the mute engine: %+v", state)
		}
		for m, after := range map[*machine]job.Millis{good: 50 * job.Second, mute: 52 * job.Second} {
			a := g.Job(ran[m]).History()[0]
			if a.Why != job.AttemptTimeout || a.Ended-began != after || a.Charged != job.ChargedRetry {
				t.Errorf("%s: %+v, want a timeout after %s", m.name, a, after)
			}
		}
	})
}

// machineWrites counts the transactions that write the rows of engines, and the rows.
type machineWrites struct {
	store.Store
	parts, rows atomic.Int64
}

func (m *machineWrites) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	rows := int64(0)
	c, err := m.Store.Update(ctx, func(tx store.Tx) error { return fn(&machineWritesTx{tx, &rows}) })
	if m.rows.Add(rows); rows > 0 {
		m.parts.Add(1)
	}
	return c, err
}

type machineWritesTx struct {
	store.Tx
	rows *int64
}

func (t *machineWritesTx) Set(row job.Row) error {
	if row.Table() == job.Holders {
		*t.rows++
	}
	return t.Tx.Set(row)
}

// All tasks of an engine that overrun together are one write of its row, which
// names them all.
func TestA10ManyOverrunsAtOnceAreOneWriteForEachEngine(t *testing.T) {
	const engines, slots = 4, 25
	writes := &machineWrites{}
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.RunTimeout = 50 * job.Second })
		if _, err := g.Put(g.Context(), some(engines*slots, "s", task)); err != nil {
			t.Fatal(err)
		}
		var up []*machine
		for i := range engines {
			up = append(up, g.engine(fmt.Sprintf("w%02d", i), slots))
		}
		for _, m := range up {
			var starts []engine.Extension
			list, err := m.Next(g.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range list {
				starts = append(starts, engine.Extension{ID: d.Job.ID, Token: d.Lease.Token, Started: true})
			}
			if _, err := g.Extend(g.Context(), starts); err != nil || len(starts) != slots {
				t.Fatal(err, len(starts))
			}
		}
		g.beating(49*job.Second, up...)
		writes.parts.Store(0)
		writes.rows.Store(0)
		g.Pass(job.Second)
		if parts, rows := writes.parts.Load(), writes.rows.Load(); parts != 1 || rows != engines {
			t.Errorf("the rows of %d engines were written %d times, by %d transactions", engines, rows, parts)
		}
		for _, m := range up {
			if n := len(m.state().Stopping); n != slots {
				t.Errorf("%s is told to stop %d tasks, want %d", m.name, n, slots)
			}
		}
	}, func(r *rig) {
		r.Twice = false
		r.Around = func(s store.Store) store.Store { writes.Store = s; return writes }
	})
}

// BenchmarkTimeouts is what it costs to end 100,000 runs whose time is up at the
// same moment, through the disk. What ends is counted, not what is told of it.
//
//   - tasks: of 1,000 engines of the grid with 100 slots, all connected, that do
//     not stop by themselves (A10 of the reference).
//   - leases: of a plain queue, whose workers are gone.
//
// timeouts/s is the rate, cpu-ns/op is processor time of all there is here,
// batches how many transactions it took, other-p50-ms and other-max-ms how long
// somebody waits meanwhile who enqueues one job after the other.
func BenchmarkTimeouts(b *testing.B) {
	b.Run("tasks", func(b *testing.B) {
		benchTimeouts(b, func(b *testing.B, e *part.Engine) { runTasks(b, e, 20, func() {}) })
	})
	b.Run("leases", func(b *testing.B) { benchTimeouts(b, runJobs) })
	b.Run("second", benchTimeoutsOfASecond)
}

const timeouts = 100_000

// ahead is the system's clock, which a benchmark sets forward.
type ahead struct {
	engine.Clock
	by atomic.Int64
}

func (c *ahead) Wall() job.Millis   { return c.Clock.Wall() + job.Millis(c.by.Load()) }
func (c *ahead) Steady() job.Millis { return c.Clock.Steady() + job.Millis(c.by.Load()) }

// halted is a clock that stands, and from some moment on goes with the system's.
type halted struct {
	engine.Clock
	at    atomic.Int64
	since atomic.Int64 // the system's time when it began to go; 0 = it stands
}

func (c *halted) Wall() job.Millis { return c.Steady() }

func (c *halted) Steady() job.Millis {
	t := job.Millis(c.at.Load())
	if since := c.since.Load(); since != 0 {
		t += c.Clock.Steady() - job.Millis(since)
	}
	return t
}

// benchTimeoutsOfASecond is A10's "all 100k expiring in one second": the ends of
// 100,000 runs lie evenly over one second. late-N-% is how many of them the engine
// began to end within N ms: the figures are those of its own metric, which knows
// these steps and none between. It ends up to 1,000 in one transaction.
func benchTimeoutsOfASecond(b *testing.B) {
	for range b.N {
		b.StopTimer()
		clock := &halted{Clock: engine.SystemClock()}
		clock.at.Store(int64(clock.Clock.Steady()))
		e, st := benchEngine(b, clock)
		runTasks(b, e, 100, func() { clock.at.Add(10) })
		cpu := cpuTime()
		clock.at.Add(int64(job.Hour - 1010)) // the first is due in 10 ms
		b.StartTimer()
		clock.since.Store(int64(clock.Clock.Steady()))
		for figures(b, e).Lapsed < timeouts {
		}
		b.StopTimer()
		b.ReportMetric(float64(cpuTime()-cpu)/timeouts, "cpu-ns/op")
		tally, _, _ := e.Grid.Measure(b.Context())
		late, sum := tally.Lateness, uint64(0)
		for i, edge := range histogram.Spans {
			if sum += late.Counts[i]; edge >= 50 && edge <= 1000 {
				b.ReportMetric(float64(sum)*100/timeouts, fmt.Sprintf("late-%d-%%", edge))
			}
		}
		if err := errors.Join(e.Stop(b.Context()), st.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

func benchEngine(b *testing.B, clock engine.Clock) (*part.Engine, *embedded.Store) {
	st, err := embedded.Open(embedded.Options{Dir: b.TempDir(), Now: clock.Wall, Logf: b.Logf})
	if err != nil {
		b.Fatal(err)
	}
	src := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
	e := part.New(st, clock, rnd, quiet, engine.Options{Server: rule.DefaultServer()})
	e.Grid.LostAfter = 9 * job.Hour
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	return e, st
}

func benchTimeouts(b *testing.B, runs func(*testing.B, *part.Engine)) {
	for range b.N {
		b.StopTimer()
		clock := &ahead{Clock: engine.SystemClock()}
		e, st := benchEngine(b, clock)
		ctx := b.Context()
		runs(b, e)
		if err := st.Compact(ctx); err != nil {
			b.Fatal(err)
		}
		ended, before := make(chan struct{}), figures(b, e)
		var other sync.WaitGroup
		var waits []time.Duration
		b.StartTimer()
		clock.by.Store(int64(2 * job.Hour))
		other.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				asked := time.Now()
				if _, err := e.Put(ctx, []engine.NewJob{newNamed("other", "payload")}); err != nil {
					b.Error(err)
					return
				}
				waits = append(waits, time.Since(asked))
			}
		})
		after := figures(b, e)
		for ; after.Lapsed-before.Lapsed < timeouts; after = figures(b, e) {
		}
		b.StopTimer()
		close(ended)
		other.Wait()
		slices.Sort(waits)
		b.ReportMetric(float64(after.cpu-before.cpu)/timeouts, "cpu-ns/op")
		b.ReportMetric(float64(after.Batches-before.Batches), "batches")
		b.ReportMetric(timeouts/b.Elapsed().Seconds(), "timeouts/s")
		b.ReportMetric(float64(waits[len(waits)/2])/1e6, "other-p50-ms")
		b.ReportMetric(float64(waits[len(waits)-1])/1e6, "other-max-ms")
		if err := errors.Join(e.Stop(ctx), st.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

type figure struct {
	engine.Stats
	cpu int64
}

func figures(b *testing.B, e *part.Engine) figure {
	s, err := enginetest.Stats(b.Context(), e)
	if err != nil {
		b.Fatal(err)
	}
	return figure{s, cpuTime()}
}

// runTasks has 1,000 engines run 100 tasks each, which they began a few at a time.
func runTasks(b *testing.B, e *part.Engine, rounds int, began func()) {
	const engines = 1000
	ctx := b.Context()
	n := gridpart.NewSession{Queue: *job.NewQueue("s")}
	documented(&n.Queue)
	n.Queue.RunTimeout = job.Hour
	if _, err := e.Grid.OpenSession(ctx, n, job.Actor{}); err != nil {
		b.Fatal(err)
	}
	streams := make([]*engine.Stream, engines)
	for i := range streams {
		name := fmt.Sprintf("w%04d", i)
		in, err := e.Grid.Login(ctx, gridpart.Login{Name: name, Slots: timeouts / engines})
		if err == nil {
			streams[i], err = e.Grid.EngineStream(ctx, name, in.Engine.Epoch, 0, nil)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	todo := make([][][]engine.Extension, rounds)
	for range timeouts / 1000 {
		if _, err := e.Put(ctx, some(1000, "s", task)); err != nil {
			b.Fatal(err)
		}
	}
	for _, s := range streams {
		var mine []engine.Extension
		for len(mine) < timeouts/engines {
			list, err := s.Next(ctx)
			if err != nil {
				b.Fatal(err)
			}
			for _, d := range list {
				mine = append(mine, engine.Extension{ID: d.Job.ID, Token: d.Lease.Token, Started: true})
			}
		}
		for k := range rounds {
			todo[k] = append(todo[k], mine[k*len(mine)/rounds:(k+1)*len(mine)/rounds])
		}
	}
	for _, round := range todo {
		var work sync.WaitGroup
		for _, list := range round {
			work.Go(func() {
				if _, err := e.Extend(ctx, list); err != nil {
					b.Error(err)
				}
			})
		}
		work.Wait()
		began()
	}
}

// runJobs has workers, which are gone, run 100,000 jobs.
func runJobs(b *testing.B, e *part.Engine) {
	for range timeouts / 1000 {
		if _, err := e.Put(b.Context(), some(1000, "s", func(n *engine.NewJob) { n.Job.RunTimeout = job.Hour })); err != nil {
			b.Fatal(err)
		}
		got, err := e.Lease(b.Context(), engine.LeaseOptions{Worker: "w", Max: 1000, For: 9 * job.Hour})
		if err != nil || len(got) != 1000 {
			b.Fatal(len(got), err)
		}
	}
}

// some is so many jobs of a queue.
func some(n int, queue string, edits ...func(*engine.NewJob)) []engine.NewJob {
	list := make([]engine.NewJob, n)
	for i := range list {
		list[i] = newNamed(queue, "payload", edits...)
	}
	return list
}
