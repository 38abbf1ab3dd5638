package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/pattern"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Engine runs jobs on a store. Make it with New, then Start it.
type Engine struct {
	opts  Options
	store store.Store
	clock Clock
	rnd   func() uint64
	log   *slog.Logger

	commands commands
	gifts    sync.Pool // of *[]gift, empty ones

	patterns pattern.Cache // of rules
	bodies   bodies
	space    space
	watchers watchers
	figures  figures

	parts parts
	due   []Due // rows that come up by themselves, those of parts last

	health  health
	latest  atomic.Int64 // the date of the latest transaction
	guarded atomic.Int64 // until then nothing expires, on the steady clock
	stopped chan struct{}
	loops   sync.WaitGroup

	// Owned by the committer, or by nobody while the engine is not started.
	core committer
}

// errStopped is what every call answers after Stop.
var errStopped = job.Errorf(job.Unavailable, "the server is shutting down; send the request again in a moment")

// New returns an engine on a store. rnd gives 64 random bits a call.
func New(s store.Store, clock Clock, rnd func() uint64, log *slog.Logger, opts Options) *Engine {
	if opts.BatchOpsMax == 0 {
		opts.BatchOpsMax = 4096
	}
	if opts.BatchBytesMax == 0 {
		opts.BatchBytesMax = 4 << 20
	}
	if opts.QueuesMax == 0 {
		opts.QueuesMax = 10_000
	}
	if opts.Idempotency == 0 {
		opts.Idempotency = job.Hour
	}
	e := &Engine{
		opts: opts, store: s, clock: clock, rnd: rnd, log: log,
		stopped: make(chan struct{}),
	}
	e.gifts.New = func() any { return &[]gift{} }
	e.commands.init()
	e.health.log, e.health.poke = log, e.commands.poke
	e.bodies = bodies{store: s, health: &e.health, lead: opts.Lead, show: e.Shown, reject: e.reject}
	e.space.store = s
	e.space.keep.Store(&opts.Reserve)
	e.due = ownRows()
	for _, p := range opts.Parts {
		hooks := p.Join(e)
		e.parts, e.due = append(e.parts, hooks), append(e.due, hooks.Due...)
	}
	e.core.init(e)
	e.health.state.Store(job.Errorf(job.Unavailable, "the server is starting; send the request again in a moment"))
	return e
}

// Start recovers what the last run left and begins to work. When it returns,
// no lease of an anonymous stream is left, so listeners may open.
func (e *Engine) Start(ctx context.Context) error {
	if err := e.core.recover(ctx, (*Tx).configure); err != nil {
		return err
	}
	e.health.state.Store(nil)
	e.loops.Go(e.core.commitLoop)
	e.loops.Go((&answers{e, e.core.inflight}).loop)
	return nil
}

// Stop refuses new work, ends the streams (anonymous ones give back, uncharged;
// named leases stay), answers everything that was accepted, and returns. The
// store stays open.
func (e *Engine) Stop(ctx context.Context) error {
	if !e.commands.end(func(r *Tx) error { return r.endStreams() }) {
		return nil
	}
	e.parts.stop()
	e.commands.poke()
	done := make(chan struct{})
	go func() { e.loops.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("stopping took too long; what was answered is safe, other requests got no answer")
	}
}

// Ready says why the engine does not take work now; nil = it does.
func (e *Engine) Ready() error {
	if e.commands.ended() {
		return errStopped
	}
	if why := e.health.state.Load(); why != nil {
		return why
	}
	if e.space.low() {
		return ErrDiskLow
	}
	return nil
}

// Now is the engine's date: it never goes back (core.md section 8).
func (e *Engine) Now() job.Millis { return max(e.clock.Wall(), job.Millis(e.latest.Load())) }

// Steady is the time since the start on a clock that nobody sets (docs/adr/0003).
func (e *Engine) Steady() job.Millis { return e.clock.Steady() }

// Guarded reports whether the clock stepped just now, so that nothing expires yet.
func (e *Engine) Guarded() bool { return e.clock.Steady() < job.Millis(e.guarded.Load()) }

// Random draws 64 bits.
func (e *Engine) Random() uint64 { return e.rnd() }

// Logger is where the engine and its parts tell an operator what he should know.
func (e *Engine) Logger() *slog.Logger { return e.log }

// QueuesMax is how many queues there may be.
func (e *Engine) QueuesMax() int { return e.opts.QueuesMax }

// Stopped is closed when everything was answered after Stop, and told.
func (e *Engine) Stopped() <-chan struct{} { return e.stopped }

// Go runs what a part does outside transactions; Stop waits for it.
func (e *Engine) Go(f func()) { e.loops.Go(f) }

// Do runs a command and waits until its outcome is durable. When ctx ends
// first, the command may still take effect.
func (e *Engine) Do(ctx context.Context, bytes int, f func(*Tx) error) error {
	o := e.commands.make(f)
	o.bytes = bytes
	if err := e.submit(o); err != nil {
		return err
	}
	select {
	case <-o.done:
		err := o.err
		o.run = nil
		e.commands.spare.Put(o)
		return err
	case <-ctx.Done(): // the op is still in use: it is not put back
		return ctx.Err()
	}
}

// submit hands a command to the committer.
func (e *Engine) submit(o *op) error {
	if why := e.health.state.Load(); why != nil {
		return why
	}
	if !e.commands.add(o) {
		return errStopped
	}
	return nil
}

// rules returns what applies everywhere.
func (e *Engine) rules() *rule.Server { return &e.opts.Server }
