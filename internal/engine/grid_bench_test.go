package engine_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// BenchmarkAssign is what an assignment costs with a million tasks of ten
// sessions in line and 1,000 engines of one slot: each engine settles what it has
// and waits for the next. tasks/s is the rate, p99-ms the time from the settle
// that frees a slot until the next task is there, both through the disk;
// assign-p99-ms is from the answer to that settle, which is when the slot is
// known to be free. Run it with -benchtime 200000x.
func BenchmarkAssign(b *testing.B) {
	const tasks, engines, sessions = 1_000_000, 1000, 10
	clock := engine.SystemClock()
	st, err := embedded.Open(embedded.Options{Dir: b.TempDir(), Now: clock.Wall, Logf: b.Logf})
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	src := rand.New(rand.NewPCG(1, 2))
	rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
	e := engine.New(st, clock, rnd, slog.Default(), engine.Options{Server: rule.DefaultServer(), LostAfter: job.Hour})
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	for i := range sessions {
		n := engine.NewSession{Queue: *job.NewQueue(fmt.Sprint("s", i))}
		documented(&n.Queue)
		n.Queue.RetainDone, n.Queue.Grid.Weight = 0, uint8(i%9+1)
		if _, err := e.OpenSession(ctx, n, job.Actor{}); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; i < max(tasks, b.N+engines); i += 1000 {
		list := make([]engine.NewJob, 1000)
		for k := range list {
			list[k] = newNamed(fmt.Sprint("s", i/1000%sessions), "payload", task)
		}
		if _, err := e.Put(ctx, list); err != nil {
			b.Fatal(err)
		}
	}
	var streams []*engine.Stream
	for i := range engines {
		name := fmt.Sprintf("w%04d", i)
		in, err := e.Login(ctx, engine.Login{Name: name, Host: fmt.Sprint("h", i/8), Slots: 1})
		if err != nil {
			b.Fatal(err)
		}
		s, err := e.MachineStream(ctx, name, in.Machine.Epoch, 0, nil)
		if err != nil {
			b.Fatal(err)
		}
		streams = append(streams, s)
	}
	took, waits := make([][]time.Duration, engines), make([][]time.Duration, engines)
	var work sync.WaitGroup
	before := cpuTime()
	b.ResetTimer()
	for i, s := range streams {
		work.Go(func() {
			got, err := s.Next(ctx)
			for n := 0; err == nil && n < b.N/engines; n++ {
				began := time.Now()
				var v []engine.Verdict
				if v, err = e.Settle(ctx, []engine.Settle{{ID: got[0].Job.ID, Token: got[0].Lease.Token}}); err == nil {
					err = v[0].Err
				}
				free := time.Now()
				if err == nil {
					got, err = s.Next(ctx)
				}
				took[i], waits[i] = append(took[i], time.Since(began)), append(waits[i], time.Since(free))
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	work.Wait()
	b.StopTimer()
	p99 := func(lists [][]time.Duration) float64 {
		all := slices.Concat(lists...)
		slices.Sort(all)
		return float64(all[len(all)*99/100]) / 1e6
	}
	if b.N >= engines {
		b.ReportMetric(float64(b.N/engines*engines)/b.Elapsed().Seconds(), "tasks/s")
		b.ReportMetric(p99(took), "p99-ms")
		b.ReportMetric(p99(waits), "assign-p99-ms")
		b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
	}
	if err := errors.Join(e.Stop(ctx), st.Close()); err != nil {
		b.Fatal(err)
	}
}
