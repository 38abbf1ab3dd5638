package grid_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// BenchmarkAssign is what an assignment costs with a million tasks of ten
// sessions in line. An assignment is a task handed to an engine: it begins when
// the slot is free, which is when the engine tells that its last task is done,
// with a result of 64 bytes, and ends when the engine has the next one with its
// payload. Between the two lie the settle, which is on disk before it is answered,
// and the lease, which is in the same transaction; the result is kept, as nobody
// collects. All engines have one slot and a stream of their own, eight are on a
// host. They live in this process and use its processors, but no network.
//
//   - flat: 1,000 engines whose tasks take no time, so that slots are always
//     free: the most there is. How long each waits follows from that: it is
//     1,000 divided by the rate, whatever the engine does.
//   - paced: 1,000 engines whose tasks take 31 ms in the mean, exponentially
//     distributed: 32,200 slots a second become free if each is filled at once.
//     This is where to look for both figures of the goal, the rate and p99.
//   - ahead: as paced, with a task at hand beside the one that runs (prefetch 2),
//     as the help of reprise engine advises for short tasks. Here an assignment
//     begins when the slot is free and ends when it begins the next task; that
//     the last one is done is told meanwhile, as package client does it.
//   - crowd: 10,000 engines, 1 ms: A43 of the reference. It is flat, too.
//
// tasks/s is the rate, p50-ms and p99-ms are of assignments but those of the
// first tenth, cpu-ns/op is processor time of all there is here, tasks/batch how
// many share a transaction. Run it with -benchtime 200000x.
func BenchmarkAssign(b *testing.B) {
	for _, c := range []struct {
		name     string
		engines  int
		prefetch int
		runs     time.Duration // in the mean
	}{
		{"flat", 1000, 1, 0},
		{"paced", 1000, 1, 31 * time.Millisecond},
		{"ahead", 1000, 2, 31 * time.Millisecond},
		{"crowd", 10_000, 1, time.Millisecond},
	} {
		b.Run(c.name, func(b *testing.B) { benchAssign(b, c.engines, c.prefetch, c.runs) })
	}
}

func benchAssign(b *testing.B, engines, prefetch int, runs time.Duration) {
	const tasks, sessions = 1_000_000, 10
	ballast := make([]byte, 64<<20) // as the server has
	defer runtime.KeepAlive(ballast)
	clock := engine.SystemClock()
	st, err := embedded.Open(embedded.Options{Dir: b.TempDir(), Now: clock.Wall, Logf: b.Logf})
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	src := rand.New(rand.NewPCG(1, 2))
	rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
	e := part.New(st, clock, rnd, slog.Default(), engine.Options{Server: rule.DefaultServer()})
	e.Grid.LostAfter = job.Hour
	ctx := b.Context()
	if err := e.Start(ctx); err != nil {
		b.Fatal(err)
	}
	for i := range sessions {
		n := gridpart.NewSession{Queue: *job.NewQueue(fmt.Sprint("s", i))}
		documented(&n.Queue)
		n.Queue.Grid.Weight = uint8(i%9 + 1)
		if _, err := e.Grid.OpenSession(ctx, n, job.Actor{}); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; i < max(tasks, b.N+2*prefetch*engines); i += 1000 {
		list := make([]engine.NewJob, 1000)
		for k := range list {
			list[k] = newNamed(fmt.Sprint("s", i/1000%sessions), "payload", task)
		}
		if _, err := e.Put(ctx, list); err != nil {
			b.Fatal(err)
		}
	}
	if err := st.Compact(ctx); err != nil { // that the store is tidied up after a million puts is not measured
		b.Fatal(err)
	}
	slots := make([]*slot, engines)
	for i := range slots {
		slots[i] = newSlot(b, e, i, prefetch)
	}
	batches := func() float64 {
		s, err := enginetest.Stats(ctx, e)
		if err != nil {
			b.Fatal(err)
		}
		return float64(s.Batches)
	}
	earlier := batches()
	var asked atomic.Int64
	var work sync.WaitGroup
	before := cpuTime()
	b.ResetTimer()
	for _, s := range slots {
		work.Go(func() {
			err := s.work(ctx, e, runs, func() (n int64, more bool) { n = asked.Add(1); return n, n <= int64(b.N) }, int64(b.N/10))
			if err != nil {
				b.Error(err)
			}
		})
	}
	work.Wait()
	b.StopTimer()
	var waits []time.Duration
	for _, s := range slots {
		waits = append(waits, s.waits...)
	}
	if slices.Sort(waits); len(waits) > 0 {
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		b.ReportMetric(float64(waits[len(waits)/2])/1e6, "p50-ms")
		b.ReportMetric(float64(waits[len(waits)*99/100])/1e6, "p99-ms")
		b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		b.ReportMetric(float64(b.N)/(batches()-earlier), "tasks/batch")
	}
	if err := errors.Join(e.Stop(ctx), st.Close()); err != nil {
		b.Fatal(err)
	}
}

// slot is an engine with one slot.
type slot struct {
	stream *engine.Stream
	ahead  bool // it has tasks at hand, and does not wait for what it tells
	dice   *rand.Rand
	waits  []time.Duration // from free to the next task
}

func newSlot(b *testing.B, e *part.Engine, i, prefetch int) *slot {
	name := fmt.Sprintf("w%05d", i)
	in, err := e.Grid.Login(b.Context(), gridpart.Login{Name: name, Host: fmt.Sprint("h", i/8), Slots: 1})
	if err != nil {
		b.Fatal(err)
	}
	s, err := e.Grid.EngineStream(b.Context(), name, in.Engine.Epoch, prefetch, nil)
	if err != nil {
		b.Fatal(err)
	}
	return &slot{stream: s, ahead: prefetch > 1, dice: rand.New(rand.NewPCG(3, uint64(i)))}
}

// work runs tasks as long as there are more, and keeps how long it waited for
// those behind number skip.
func (s *slot) work(ctx context.Context, e *part.Engine, runs time.Duration, more func() (int64, bool), skip int64) error {
	list := make([]engine.Settle, 1)
	tell, told := func(done engine.Settle) error {
		list[0] = done
		v, err := e.Settle(ctx, list)
		if err == nil {
			err = v[0].Err
		}
		return err
	}, func() error { return nil }
	if s.ahead {
		tell, told = meanwhile(tell)
	}
	got, err := s.stream.Next(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n, goOn := more(); err == nil && goOn; n, goOn = more() {
		if runs > 0 {
			timer.Reset(time.Duration(s.dice.ExpFloat64() * float64(runs)))
			<-timer.C
		}
		free := time.Now()
		err = tell(engine.Settle{ID: got[0].Job.ID, Token: got[0].Lease.Token, Result: make([]byte, 64)})
		if got = got[1:]; err == nil && len(got) == 0 {
			got, err = s.stream.Next(ctx)
		}
		if n > skip {
			s.waits = append(s.waits, time.Since(free))
		}
	}
	return errors.Join(err, told())
}

// meanwhile tells one after the other, beside its caller. told waits for the last
// and returns what went wrong.
func meanwhile(tell func(engine.Settle) error) (hand func(engine.Settle) error, told func() error) {
	line, failed := make(chan engine.Settle, 64), make(chan error, 1)
	go func() {
		var err error
		for done := range line {
			err = errors.Join(err, tell(done))
		}
		failed <- err
	}()
	return func(done engine.Settle) error { line <- done; return nil },
		func() error { close(line); return <-failed }
}
