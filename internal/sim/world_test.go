package sim_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

const reattach = 30 * job.Second

// setup is what does not change during a history.
type setup struct {
	server      rule.Server
	idempotency job.Millis
	inFlight    int
	configured  *job.Queue // the queue that the configuration speaks of
	flow        flow
	budgets     []job.Budget
	twice       bool // the store runs every transaction twice
	inboxes     bool // some queues may be given out in turns
}

// clock is the fake time of the bubble. The date can step, the process can
// have stood still, and every start anchors the steady time anew.
type clock struct {
	step, stood, anchor atomic.Int64

	shift job.Millis // how far the latest start set the steady time forward
}

func (c *clock) mono() job.Millis { return job.Millis(time.Now().UnixMilli() + c.stood.Load()) }

// Wall implements engine.Clock.
func (c *clock) Wall() job.Millis { return c.mono() + job.Millis(c.step.Load()) }

// Steady implements engine.Clock.
func (c *clock) Steady() job.Millis { return c.mono() + job.Millis(c.anchor.Load()) }

// world is one history: an engine, its clients, and the judge.
type world struct {
	allots map[int64]bool  // what the budget of units at once was ever to have
	ctx    context.Context //nolint:containedctx // a history is one run, and this is what ends it
	seed   uint64
	setup  setup
	clock  *clock
	mem    *mem.Store
	disk   *disk // of this life
	issued int
	e      *part.Engine
	judge  *judge
	fault  fault

	dice     *rand.Rand // of the step at hand
	calls    []*call
	streams  []*holder
	holders  map[string]*holder
	joining  *holder // an anonymous stream that was asked for
	polling  *holder // a unary call without a name
	hands    []hand
	grasp    int // the most of them that are remembered
	spent    []hand
	seen     map[job.Token]bool
	bodies   map[string]string // payloads by label
	folded   map[job.ID]string // payloads that were made of several, by reference
	contents []engine.NewJob   // put under a key
	locked   []*job.Lock       // grants that were told
	lockSaid *job.LockAsk      // the latest ask with a request of its own
	turns    []*turnInHand     // in the hands of deliverers
	names    int
	grid     *gridWorld // nil = there are queues

	free     atomic.Int64 // of 1000 bytes of disk
	low      bool         // the disk is, or just was, below its reserve
	stalled  bool         // the disk is slow
	folds    valve        // through which ticks go that are folded
	stopping bool
	doomed   int        // a commit will fail; the epoch in which that was arranged
	troubled bool       // a commit failed or the engine is not up
	excused  job.Millis // steady time until which expiry, purge and lapse may wait (core.md 8)
	behind   job.Millis // date until which clock moves may be late, after a step back

	lines []string
	hash  uint64
}

func newWorld(ctx context.Context, seed uint64, f fault, c *coverage) *world {
	w := &world{
		ctx: ctx, seed: seed, clock: &clock{}, fault: f, holders: map[string]*holder{},
		grasp: 30, seen: map[job.Token]bool{}, bodies: map[string]string{}, folded: map[job.ID]string{}, hash: 14695981039346656037,
	}
	w.free.Store(1000)
	w.dice = rand.New(rand.NewPCG(seed, 99))
	w.setup, w.grid = w.drawSetup(), newGridWorld(seed)
	w.mem = mem.Open(mem.Options{
		Now: w.clock.Wall, Rand: rand.New(rand.NewPCG(seed, 5)), Twice: w.setup.twice,
		Free: func() (int64, int64) { return w.free.Load(), 1000 },
	})
	w.judge = newJudge(w, c)
	return w
}

func (w *world) drawSetup() setup {
	s := setup{server: rule.DefaultServer(), idempotency: job.Hour, twice: w.dice.IntN(3) == 0}
	s.server.RetainDone = pick(w, []job.Millis{0, 10 * job.Second, job.Hour, rule.RetainRecent})
	s.server.RetainDead = pick(w, []job.Millis{0, job.Minute, 7 * job.Day})
	if w.dice.IntN(2) == 0 {
		s.server.Retry.Curve = &job.Curve{Kind: job.CurveConstant, Delay: 2 * job.Second}
		s.server.Retry.Limit = job.LimitOf(3)
	}
	if w.dice.IntN(2) == 0 {
		bills, grid := w.policy(), w.policy()
		s.server.Types = map[string]*job.Retry{"bill": &bills}
		s.server.Doors[job.DoorStream] = &grid
	}
	if w.dice.IntN(2) == 0 {
		s.idempotency = 20 * job.Second
	}
	if w.dice.IntN(4) == 0 {
		s.inFlight = 2 + w.dice.IntN(4)
	}
	s.flow, s.budgets = w.drawFlow(), w.drawBudgets()
	s.inboxes = w.dice.IntN(3) == 0
	s.configured = job.NewQueue("configured")
	s.configured.RunTimeout = 20 * job.Second
	s.configured.RequireToken = w.dice.IntN(2) == 0
	return s
}

// say adds a line to the history.
func (w *world) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.lines = append(w.lines, line)
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%x %s", w.hash, line)
	w.hash = h.Sum64()
}

// live begins a life of the engine on what the store holds.
func (w *world) live(life int) {
	w.clock.shift = job.Millis(w.clock.step.Load() - w.clock.anchor.Swap(w.clock.step.Load()))
	w.disk = newDisk(w, life)
	w.disk.flow()
	w.stalled, w.stopping, w.troubled, w.doomed = false, false, false, 0
	w.judge.stats, w.judge.unsure, w.judge.blurred = figures{}, false, false
	if life > 1 {
		if err := w.disk.Reopen(w.ctx); err != nil {
			broken("I5", "opening the store again: %v", err)
		}
	} else {
		w.judge.epoch++
	}
	src := rand.New(rand.NewPCG(w.seed, uint64(life)<<8|7))
	w.e = part.New(w.disk, w.clock, src.Uint64, slog.New(slog.DiscardHandler), engine.Options{
		Server: w.setup.server, Queues: []*job.Queue{w.setup.configured}, Idempotency: w.setup.idempotency,
		Reattach: reattach, InFlightMax: w.setup.inFlight, Reserve: engine.Reserve{Bytes: 100},
	})
	w.e.Grid.BlackHoles, w.e.Folds.Folder = w.holes(), w.fold
	w.e.Crons.Zone = time.UTC
	if err := w.e.Start(w.ctx); err != nil {
		broken("answers", "the engine does not start: %v", err)
	}
	w.settle()
	for _, j := range w.judge.book.jobs {
		for _, l := range j.Leases {
			if l.Kind == job.Anonymous {
				broken("core.md 4", "%s is leased by %s after a start", w.judge.name(j.ID), l.Holder)
			}
		}
	}
}

// settle lets everything happen that happens by itself, and judges it.
func (w *world) settle() {
	for again := true; again; {
		w.listen()
		again = w.answers()
		again = w.readAll() || again
	}
	if w.doomed > 0 && w.judge.epoch > w.doomed {
		w.doomed = 0
		for _, h := range w.streams { // all have ended, also those who have not read that yet
			h.gone = true
		}
	}
	if w.doomed == 0 && !w.stalled && w.e.Ready() == nil {
		w.troubled = false
	}
}

// up reports whether the engine works and its disk keeps pace.
func (w *world) up() bool {
	return !w.stalled && !w.stopping && (w.e.Ready() == nil || w.low && !w.troubled)
}

// rest returns when nothing goes on but what waits for a later time, for a
// slow disk, or for somebody to ask.
func (w *world) rest() {
	for synctest.Wait(); w.disk.pausing.Load() > 0; synctest.Wait() {
		<-time.After(time.Nanosecond)
	}
}

// listen lets the engine come to rest, and judges what it wrote.
func (w *world) listen() {
	w.rest()
	list, panicky := w.disk.heard()
	if panicky != "" {
		broken("panic", "%s", panicky)
	}
	w.judge.hear(list)
}

// sure reports whether what a request is told can be foretold.
func (w *world) sure() bool {
	for _, c := range w.calls {
		if !c.waits {
			return false
		}
	}
	return w.up() && !w.troubled && !w.low
}

// now is the engine's date.
func (w *world) now() job.Millis { return w.e.Now() }

// pauses is longer than all pauses of the disk while some time passes.
const pauses = 10 * time.Microsecond

// pass lets time go by, and what was due by then happen.
func (w *world) pass(span job.Millis) {
	if span > 0 {
		<-time.After(time.Duration(span)*time.Millisecond + pauses)
	}
	w.settle()
}

// poke makes the engine look at its clock.
func (w *world) poke() {
	w.start(&call{finish: func() string { return "the engine looked at its clock" }}, func() { _, _ = enginetest.Stats(w.ctx, w.e) })
}

// step does one step of a plan and looks at everything.
func (w *world) step(i int, o step) {
	w.dice = rand.New(rand.NewPCG(o.dice, uint64(o.kind)))
	w.say("%3d %s %s", i+1, stamp(w.clock.mono()), kinds[o.kind].name)
	w.does(&kinds[o.kind])
	w.settle()
	w.look(o.dice)
}

func stamp(m job.Millis) string { return time.UnixMilli(int64(m)).UTC().Format("02 15:04:05.000") }

// result is what came of a history.
type result struct {
	lines []string
	hash  uint64
	wrong *violation
}

// play lets a plan happen in a bubble of its own.
func play(t *testing.T, seed uint64, plan []step, f fault, c *coverage) (out result) {
	t.Helper()
	var w *world
	defer func() {
		if p := recover(); p != nil { // of synctest: somebody waits for ever
			out = result{w.lines, w.hash, &violation{"deadlock", fmt.Sprint(p)}}
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t.Context(), seed, f, c)
		wrong := w.judged(func() {
			w.live(1)
			w.furnish()
			for i, o := range plan {
				w.step(i, o)
			}
			w.end()
		})
		if wrong != nil {
			w.giveUp()
		}
		out = result{w.lines, w.hash, wrong}
	})
	return out
}

func (w *world) judged(f func()) (wrong *violation) {
	defer func() {
		if p := recover(); p != nil {
			var ok bool
			if wrong, ok = p.(*violation); !ok {
				panic(p)
			}
			w.say("*** %s", wrong)
		}
	}()
	f()
	return nil
}

// giveUp ends an engine after a violation, so that nothing is left behind.
func (w *world) giveUp() {
	w.disk.sever()
	w.stopDead()
}

// stopDead ends an engine whose store is gone.
func (w *world) stopDead() {
	w.giveUpWaiting() // its connections end with it
	go func() { _ = w.e.Stop(context.Background()) }()
	synctest.Wait()
	<-time.After(5 * time.Second)
	synctest.Wait()
}
