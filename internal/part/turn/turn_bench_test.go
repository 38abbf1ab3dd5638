package turn_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// onDisk is an engine with an inbox on a store on disk, by the clock of the machine.
func onDisk(t testing.TB, settings func(*job.Queue)) *part.Engine {
	t.Helper()
	clock := engine.SystemClock()
	st, err := embedded.Open(embedded.Options{Dir: t.TempDir(), Now: clock.Wall, Logf: func(string, ...any) {}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	src := rand.New(rand.NewPCG(1, 2))
	rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
	e := part.New(st, clock, rnd, slog.New(slog.DiscardHandler), engine.Options{Server: rule.DefaultServer()})
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := e.Stop(ctx); err == nil {
			_ = st.Close()
		}
	})
	if _, err := e.Desk.SetQueue(ctx, "in", func(q *job.Queue) error { settings(q); return nil }, job.Actor{}); err != nil {
		t.Fatal(err)
	}
	return e
}

// fill puts n messages into as many groups (0 = into none), one after the other, in
// bulks of 1,000.
func fill(t testing.TB, e *part.Engine, n, groups int) {
	t.Helper()
	payload := make([]byte, 128)
	for at := 0; at < n; {
		list := make([]engine.NewJob, 0, 1000)
		for ; at < n && len(list) < 1000; at++ {
			group := ""
			if groups > 0 {
				group = "group " + strconv.Itoa(at%groups)
			}
			list = append(list, engine.NewJob{Job: job.Job{
				Queue: "in", Type: "t", Group: group, Priority: job.PriorityDefault,
				RetainDone: job.Unset, RetainDead: job.Unset,
			}, Payload: payload})
		}
		if _, err := e.Put(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
}

// Ten thousand groups whose heads are not due, and one that is fresh: it is the one
// that the next run visits.
func TestBlockedGroupsStarveNobody(t *testing.T) { // inbox.md 5, reference 2.6 row 14
	const blocked = 10_000
	e := onDisk(t, failFirst)
	fill(t, e, blocked, blocked)
	run := func(round int64) (tried []string) {
		for {
			turns, err := e.Turns.Lease(t.Context(), turn.Options{Queue: "in", Turns: 1000, Members: -1, Local: true, Before: round, Once: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(turns) == 0 {
				return tried
			}
			var fails []engine.Settle
			for _, turn := range turns {
				d := turn.Deliveries[0]
				tried = append(tried, turn.Group)
				fails = append(fails, engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: job.Retried, RetryIn: job.Hour})
			}
			if _, err := e.Settle(t.Context(), fails); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := func() []string {
		round, err := e.Turns.Round(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return run(round)
	}
	if n := len(next()); n != blocked {
		t.Fatalf("the first run visited %d groups", n)
	}
	if list := next(); len(list) != 0 {
		t.Errorf("a run visited %d groups that are not due", len(list))
	}
	fill(t, e, blocked, blocked) // behind the heads
	if _, err := e.Put(t.Context(), []engine.NewJob{newNamed("in", "m", grouped("fresh"))}); err != nil {
		t.Fatal(err)
	}
	if list := next(); len(list) != 1 || list[0] != "fresh" {
		t.Errorf("the next run visited %d groups", len(list))
	}
}

// BenchmarkIntake is what a message costs in bulks of 1,000: into a plain queue, and
// into an inbox with ten in each group.
func BenchmarkIntake(b *testing.B) {
	for name, mode := range map[string]func(*job.Queue){"plain": func(*job.Queue) {}, "inbox": failFirst} {
		b.Run(name, func(b *testing.B) {
			e := onDisk(b, mode)
			before := cpuTime()
			b.ResetTimer()
			fill(b, e, b.N, map[string]int{"inbox": max(1, b.N/10)}[name])
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkTurns delivers messages to a sink inside the process, ten in each group:
// 64 deliverers, and each message is acknowledged right after its own success.
func BenchmarkTurns(b *testing.B) {
	for name, mode := range bothModes {
		b.Run(name, func(b *testing.B) {
			e := onDisk(b, mode)
			fill(b, e, b.N, max(1, b.N/10))
			var left atomic.Int64
			left.Store(int64(b.N))
			before := cpuTime()
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() {
					o := turn.Options{Worker: fmt.Sprint("deliverer ", i), Queue: "in", Turns: 4, Members: -1, Local: true, Once: true}
					for left.Load() > 0 {
						turns, err := e.Turns.Lease(b.Context(), o)
						if err != nil {
							b.Error(err)
							return
						}
						if len(turns) == 0 {
							return
						}
						for _, t := range turns {
							for _, d := range t.Deliveries {
								v, err := e.Settle(b.Context(), []engine.Settle{{ID: d.Job.ID, Token: d.Lease.Token}})
								if err != nil || v[0].Err != nil {
									b.Error(err, v)
									return
								}
								left.Add(-1)
							}
						}
					}
				})
			}
			all.Wait()
			if n := left.Load(); n != 0 {
				b.Errorf("%d are left", n)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
