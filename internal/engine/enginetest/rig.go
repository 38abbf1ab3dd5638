// Package enginetest runs an engine, with parts or without, on a store in memory and in
// fake time: nothing waits by the clock, and every time is exact.
package enginetest

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

// Rig is an engine in a bubble of fake time. What is set before it begins is for all its
// lives.
type Rig struct {
	*testing.T
	*engine.Engine
	query.Reads
	Mem    *mem.Store
	Around func(store.Store) store.Store // what stands between engine and store
	Opts   engine.Options
	Parts  func() []engine.Part // of each life; nil = none
	Clock  *Clock
	Room   atomic.Int64 // of 1000 bytes of disk
	Ended  bool
	Twice  bool   // the store runs every transaction twice
	Seed   uint64 // of what an injected failure keeps
}

// Clock is the fake time of the bubble; the date can be made to step, and the
// process to have stood still. Every start anchors the steady time anew.
type Clock struct {
	start                 time.Time
	Step, Stood, Anchored atomic.Int64
}

// NewClock is a clock that begins now.
func NewClock() *Clock { return &Clock{start: time.Now()} }

// Wall implements engine.Clock.
func (c *Clock) Wall() job.Millis {
	return job.Millis(time.Now().UnixMilli() + c.Step.Load() + c.Stood.Load())
}

// Steady implements engine.Clock.
func (c *Clock) Steady() job.Millis {
	return job.Millis(c.start.UnixMilli() + time.Since(c.start).Milliseconds() + c.Stood.Load() + c.Anchored.Load())
}

// Quiet is a log that nobody reads.
var Quiet = slog.New(slog.DiscardHandler)

// Dice are the same for the same seed.
func Dice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// Scenario runs f with an engine. Afterwards it stops the engine, looks at
// the store, and fails if any goroutine is left.
func Scenario(t *testing.T, f func(*Rig), edits ...func(*Rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &Rig{
			T: t, Clock: NewClock(),
			Opts:   engine.Options{Server: rule.DefaultServer(), Reattach: 30 * job.Second},
			Around: func(s store.Store) store.Store { return s }, Twice: true, Seed: 1,
		}
		r.Opts.Server.RetainDone = job.Hour
		r.Room.Store(1000)
		for _, edit := range edits {
			edit(r)
		}
		r.Mem = mem.Open(mem.Options{
			Now: r.Clock.Wall, Twice: r.Twice, Rand: Dice(r.Seed),
			Free: func() (int64, int64) { return r.Room.Load(), 1000 },
		})
		r.Begin()
		r.Cleanup(func() { // also when the scenario failed half way
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_ = r.Stop(ctx)
		})
		f(r)
		r.End()
		if err := r.Mem.Check(); err != nil {
			t.Error(err)
		}
	})
}

// Begin begins a new life of the server on the same store.
func (r *Rig) Begin() {
	r.Helper()
	r.Clock.Anchored.Store(r.Clock.Step.Load())
	var mu sync.Mutex
	src := rand.New(rand.NewPCG(7, uint64(r.Clock.Wall())))
	rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
	if r.Parts != nil {
		r.Opts.Parts = r.Parts()
	}
	r.Engine = engine.New(r.Around(r.Mem), r.Clock, rnd, Quiet, r.Opts)
	r.Reads = query.Of(r.Engine)
	if err := r.Start(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.Ended = false
}

// End stops the engine.
func (r *Rig) End() {
	r.Helper()
	if r.Ended {
		return
	}
	r.Ended = true
	if err := r.Stop(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// Restart is a stop, and a start after a while.
func (r *Rig) Restart(away job.Millis) {
	r.Helper()
	r.End()
	r.Pass(away)
	r.Begin()
}

// PowerCut ends the server without a word and begins a new life.
func (r *Rig) PowerCut() {
	r.Helper()
	r.Mem.PowerCut(Dice(3))
	dead, done := r.Engine, make(chan struct{})
	go func() { _ = dead.Stop(context.Background()); close(done) }()
	<-done
	if err := r.Mem.Reopen(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.Begin()
}

// unlucky is dice after which a power cut keeps nothing that was not synced:
// the least they can show without being thrown again.
type unlucky struct{}

func (unlucky) Uint64() uint64 { return 1 << 32 }

// WorstPowerCut is a power cut that takes all it can.
func (r *Rig) WorstPowerCut() {
	r.Helper()
	r.Mem.PowerCut(rand.New(unlucky{}))
	r.PowerCut()
}

// Pass lets time go by, and then everything settle.
func (r *Rig) Pass(span job.Millis) {
	synctest.Wait()
	if span > 0 {
		<-time.After(time.Duration(span) * time.Millisecond)
	}
	synctest.Wait()
}
