package engine_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

var (
	powercuts = flag.Int("powercuts", 60, "how many power cuts TestPowerCut simulates")
	cutSeed   = flag.Uint64("cutseed", 1, "seed of the first power cut")
)

// ledger stands outside the store and remembers what was acknowledged.
type ledger struct {
	mu      sync.Mutex
	put     map[job.ID]bool // acknowledged enqueues
	asked   map[job.ID]bool // settles sent, perhaps answered
	settled map[job.ID]bool // acknowledged OKs
	acks    int
	want    int           // acks after which the lights go out
	dark    chan struct{} // closed then
}

func (l *ledger) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	if l.acks++; l.acks == l.want {
		close(l.dark)
	}
}

// TestPowerCut cuts the power at random moments of a loaded engine and checks
// I5 and I1 after each: every acknowledged enqueue is in exactly one state,
// every acknowledged settle stays settled. Pebble's crashable file system
// drops what was not synced, directories included.
func TestPowerCut(t *testing.T) {
	const perFS = 25 // then start with an empty disk
	for first := 0; first < *powercuts; first += perFS {
		seed := *cutSeed + uint64(first)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			fs := vfs.NewCrashableMem()
			l := &ledger{put: map[job.ID]bool{}, asked: map[job.ID]bool{}, settled: map[job.ID]bool{}}
			for range min(perFS, *powercuts-first) {
				fs = runUntilDark(t, fs, l, rng)
				checkLedger(t, fs, l)
				if t.Failed() {
					t.Fatalf("replay with -run TestPowerCut -powercuts %d -cutseed %d", perFS, seed)
				}
			}
		})
	}
}

func openEngine(t *testing.T, fs vfs.FS, seed uint64) (*engine.Engine, *embedded.Store) {
	t.Helper()
	clock := engine.SystemClock()
	st, err := embedded.Open(embedded.Options{Dir: "data", FS: fs, Now: clock.Wall})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	src := rand.New(rand.NewPCG(seed, 3))
	rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
	e := part.New(st, clock, rnd, slog.New(slog.DiscardHandler), engine.Options{Server: rule.DefaultServer()}).Engine
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e, st
}

// runUntilDark loads an engine until enough was acknowledged, and returns the
// disk as a power cut at that moment leaves it.
func runUntilDark(t *testing.T, fs *vfs.MemFS, l *ledger, rng *rand.Rand) *vfs.MemFS {
	e, st := openEngine(t, fs, rng.Uint64())
	ctx, cancel := context.WithCancel(t.Context())
	l.mu.Lock()
	l.acks, l.want, l.dark = 0, 1+rng.IntN(60), make(chan struct{})
	l.mu.Unlock()
	var clients sync.WaitGroup
	for range 3 {
		seed := rng.Uint64()
		clients.Go(func() { produce(ctx, e, l, rand.New(rand.NewPCG(seed, 1))) })
	}
	for range 2 {
		clients.Go(func() { consume(ctx, e, l) })
	}
	<-l.dark
	l.mu.Lock() // what is acknowledged later than the cut does not count
	before := copyOf(l)
	after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rand.New(rand.NewPCG(rng.Uint64(), 5))})
	l.mu.Unlock()
	cancel()
	clients.Wait()
	if err := e.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	l.put, l.settled = before.put, before.settled
	return after
}

func copyOf(l *ledger) *ledger {
	c := &ledger{put: map[job.ID]bool{}, settled: map[job.ID]bool{}}
	for id := range l.put {
		c.put[id] = true
	}
	for id := range l.settled {
		c.settled[id] = true
	}
	return c
}

func produce(ctx context.Context, e *engine.Engine, l *ledger, rng *rand.Rand) {
	for ctx.Err() == nil {
		list := make([]engine.NewJob, 1+rng.IntN(4))
		for i := range list {
			list[i] = engine.NewJob{
				Job:     job.Job{Queue: fmt.Sprint("q", rng.IntN(3)), Type: "t", Priority: 9, RetainDone: job.Unset, RetainDead: job.Unset},
				Payload: fmt.Appendf(nil, `{"n":%d}`, rng.Uint64()),
			}
			if rng.IntN(3) == 0 {
				list[i].Job.Group = fmt.Sprint("g", rng.IntN(4))
			}
		}
		added, err := e.Put(ctx, list)
		if err != nil {
			return
		}
		l.note(func() {
			for _, a := range added {
				l.put[a.ID] = true
			}
		})
	}
}

func consume(ctx context.Context, e *engine.Engine, l *ledger) {
	s, err := e.Stream(ctx, engine.StreamOptions{Prefetch: 5})
	if err != nil {
		return
	}
	defer s.Close()
	for {
		list, err := s.Next(ctx)
		if err != nil {
			return
		}
		acks := make([]engine.Settle, len(list))
		l.mu.Lock()
		for i, d := range list {
			acks[i] = engine.Settle{ID: d.Job.ID}
			l.asked[d.Job.ID] = true
		}
		l.mu.Unlock()
		verdicts, err := e.Settle(ctx, acks)
		if err != nil {
			return
		}
		l.note(func() {
			for i, v := range verdicts {
				if v.Err == nil {
					l.settled[acks[i].ID] = true
				}
			}
		})
	}
}

func checkLedger(t *testing.T, fs *vfs.MemFS, l *ledger) {
	t.Helper()
	e, st := openEngine(t, fs, 99)
	for id := range l.put {
		j, payload, err := query.Of(e).Get(t.Context(), id)
		switch {
		case l.settled[id]:
			if job.KindOf(err) != job.NotFound {
				t.Errorf("job %s was settled and acknowledged, but is %v (%v)", id, j, err)
			}
			delete(l.put, id)
			delete(l.settled, id)
		case err == nil:
			if j.State != job.Ready || len(payload) == 0 {
				t.Errorf("job %s is %s with payload %q after the restart; want it ready", id, j.State, payload)
			}
		case job.KindOf(err) == job.NotFound && l.asked[id]:
			delete(l.put, id) // its settle was on the way
		default:
			t.Errorf("job %s was acknowledged and is lost: %v", id, err)
		}
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
