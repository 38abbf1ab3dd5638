package engine_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// BenchmarkLife is what one job costs from bulk put to bulk settle, in
// batches of 500, without HTTP. It is where the microseconds of the engine
// and the embedded store are looked for (go test -bench Life -cpuprofile).
func BenchmarkLife(b *testing.B) {
	clock := engine.SystemClock()
	st, err := embedded.Open(embedded.Options{Dir: b.TempDir(), Now: clock.Wall, Logf: b.Logf})
	if err != nil {
		b.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	e := part.New(st, clock, rnd.Uint64, slog.Default(), engine.Options{Server: rule.DefaultServer()}).Engine
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 128)
	const batch = 500
	put := func() {
		list := make([]engine.NewJob, batch)
		for i := range list {
			list[i] = engine.NewJob{Job: job.Job{Queue: "q", Type: "t", Priority: 5, RetainDone: job.Unset, RetainDead: job.Unset}, Payload: payload}
		}
		if _, err := e.Put(b.Context(), list); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("put", func(b *testing.B) {
		for n := 0; n < b.N; n += batch {
			put()
		}
	})
	b.Run("drain", func(b *testing.B) {
		depth, _ := query.Of(e).Count(b.Context(), filter())
		for ; depth < int64(b.N); depth += batch {
			put()
		}
		b.ResetTimer()
		s, err := e.Stream(b.Context(), engine.StreamOptions{Prefetch: 2000})
		if err != nil {
			b.Fatal(err)
		}
		for got := 0; got < b.N; {
			ds, err := s.Next(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			got += len(ds)
			acks := make([]engine.Settle, len(ds))
			for i := range ds {
				acks[i].ID = ds[i].Job.ID
			}
			if _, err := e.Settle(b.Context(), acks); err != nil {
				b.Fatal(err)
			}
		}
		s.Close()
	})
	if err := e.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
}

func filter() store.Filter { return store.Filter{} }

// BenchmarkPutSingle is one durable enqueue out of 64 at a time; cpu-ns/op is
// what it costs on all cores, which noise on the machine disturbs less.
func BenchmarkPutSingle(b *testing.B) {
	clock := engine.SystemClock()
	st, err := embedded.Open(embedded.Options{Dir: b.TempDir(), Now: clock.Wall, Logf: b.Logf})
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	src := rand.New(rand.NewPCG(1, 2))
	rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
	e := part.New(st, clock, rnd, slog.Default(), engine.Options{Server: rule.DefaultServer()}).Engine
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 128)
	before := cpuTime()
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := []engine.NewJob{{Job: job.Job{Queue: "q", Type: "t", Priority: 5, RetainDone: job.Unset, RetainDead: job.Unset}, Payload: payload}}
			if _, err := e.Put(b.Context(), n); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
	if s, err := enginetest.Stats(b.Context(), e); err == nil {
		b.ReportMetric(float64(s.Put)/float64(s.Batches), "puts/batch")
	}
	if err := e.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkTakeGroups is what a take costs out of a queue with 100,000 jobs:
// without groups, and with a group for each job, fair or not.
func BenchmarkTakeGroups(b *testing.B) {
	for _, c := range []struct {
		name    string
		grouped bool
		edit    func(*job.Queue)
	}{
		{"ungrouped", false, func(*job.Queue) {}},
		{"grouped", true, func(*job.Queue) {}},
		{"fair", true, func(q *job.Queue) { q.Protection.Fair = &job.FairShare{} }},
		{"breakers", true, func(q *job.Queue) { q.Protection.GroupBreaker = new(job.DefaultBreaker()) }},
	} {
		b.Run(c.name, func(b *testing.B) { benchTake(b, c.grouped, c.edit) })
	}
}

func benchTake(b *testing.B, grouped bool, edit func(*job.Queue)) {
	const depth, batch = 100_000, 500
	clock := engine.SystemClock()
	st, err := embedded.Open(embedded.Options{Dir: b.TempDir(), Sync: embedded.OS, Now: clock.Wall, Logf: b.Logf})
	if err != nil {
		b.Fatal(err)
	}
	e := part.New(st, clock, rand.New(rand.NewPCG(1, 2)).Uint64, slog.Default(), engine.Options{Server: rule.DefaultServer()})
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := e.Desk.SetQueue(b.Context(), "q", func(q *job.Queue) error { edit(q); return nil }, job.Actor{}); err != nil {
		b.Fatal(err)
	}
	n := 0
	put := func(count int) {
		list := make([]engine.NewJob, count)
		for i := range list {
			list[i] = engine.NewJob{Job: job.Job{Queue: "q", Type: "t", RetainDone: job.Unset, RetainDead: job.Unset}, Payload: []byte("x")}
			if n++; grouped {
				list[i].Job.Group = strconv.Itoa(n)
			}
		}
		if _, err := e.Put(b.Context(), list); err != nil {
			b.Fatal(err)
		}
	}
	for range depth / batch {
		put(batch)
	}
	b.ReportAllocs()
	b.ResetTimer()
	spent := int64(0)
	for taken := 0; taken < b.N; {
		spent -= cpuTime()
		got, err := e.Lease(b.Context(), engine.LeaseOptions{Worker: "w", Max: batch})
		if err != nil {
			b.Fatal(err)
		}
		taken += len(got)
		spent += cpuTime()
		b.StopTimer()
		ends := make([]engine.Settle, len(got))
		for i := range got {
			ends[i] = engine.Settle{ID: got[i].Job.ID, Token: got[i].Lease.Token}
		}
		if _, err := e.Settle(b.Context(), ends); err != nil {
			b.Fatal(err)
		}
		put(len(got))
		b.StartTimer()
	}
	b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
	if err := errors.Join(e.Stop(b.Context()), st.Close()); err != nil {
		b.Fatal(err)
	}
}
