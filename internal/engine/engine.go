package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/internal/job"
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

	mu       sync.Mutex // guards what follows
	pending  []*op
	draining bool
	kick     chan struct{}
	ops      sync.Pool // of *op that nobody waits for
	gifts    sync.Pool // of *[]gift, empty ones

	patterns patterns      // of rules, compiled
	judging  chan struct{} // holds one for each judge that runs
	keep     atomic.Pointer[Reserve]
	watchers watchers
	figures  struct {
		sync.Mutex
		Figures
	}

	parts parts
	due   []Due // rows that come up by themselves, those of parts last

	state    atomic.Pointer[job.Error] // why the engine cannot work now; nil = it can
	failed   atomic.Bool               // a commit failed; the committer must heal
	latest   atomic.Int64              // the date of the latest transaction
	faulty   atomic.Uint64             // faults behind commits, not counted yet
	guarded  atomic.Int64              // until then nothing expires, on the steady clock
	inflight chan *batch
	stopped  chan struct{}
	loops    sync.WaitGroup

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
		kick: make(chan struct{}, 1), inflight: make(chan *batch), stopped: make(chan struct{}),
		judging: make(chan struct{}, judges()),
	}
	e.gifts.New = func() any { return &[]gift{} }
	e.ops.New = func() any { return &op{done: make(chan struct{}, 1)} }
	e.keep.Store(&opts.Reserve)
	e.due = ownRows()
	for _, p := range opts.Parts {
		hooks := p.Join(e)
		e.parts, e.due = append(e.parts, hooks), append(e.due, hooks.Due...)
	}
	e.core.init(e)
	e.state.Store(job.Errorf(job.Unavailable, "the server is starting; send the request again in a moment"))
	return e
}

// Start recovers what the last run left and begins to work. When it returns,
// no lease of an anonymous stream is left, so listeners may open.
func (e *Engine) Start(ctx context.Context) error {
	if err := e.recover(ctx, (*Tx).configure); err != nil {
		return err
	}
	e.state.Store(nil)
	e.loops.Go(e.commitLoop)
	e.loops.Go(e.syncLoop)
	return nil
}

// Stop refuses new work, ends the streams (anonymous ones give back, uncharged;
// named leases stay), answers everything that was accepted, and returns. The
// store stays open.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	if e.draining {
		e.mu.Unlock()
		return nil
	}
	e.draining = true
	last := e.newOp(func(r *Tx) error { return r.endStreams() })
	last.final = true
	e.pending = append(e.pending, last)
	e.mu.Unlock()
	e.parts.stop()
	e.poke()
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
	e.mu.Lock()
	draining := e.draining
	e.mu.Unlock()
	if draining {
		return errStopped
	}
	if why := e.state.Load(); why != nil {
		return why
	}
	if e.low() {
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

// op is one command on its way through the committer.
type op struct {
	run   func(*Tx) error // refusals are errors; it may run twice
	err   error
	bytes int
	final bool
	fault bool // it is at fault, and refused
	done  chan struct{}
}

func (e *Engine) newOp(f func(*Tx) error) *op {
	o := e.ops.Get().(*op)
	o.run, o.err, o.bytes, o.final, o.fault = f, nil, 0, false, false
	return o
}

// Do runs a command and waits until its outcome is durable. When ctx ends
// first, the command may still take effect.
func (e *Engine) Do(ctx context.Context, bytes int, f func(*Tx) error) error {
	o := e.newOp(f)
	o.bytes = bytes
	if err := e.submit(o); err != nil {
		return err
	}
	select {
	case <-o.done:
		err := o.err
		o.run = nil
		e.ops.Put(o)
		return err
	case <-ctx.Done(): // the op is still in use: it is not put back
		return ctx.Err()
	}
}

func (e *Engine) submit(o *op) error {
	if why := e.state.Load(); why != nil {
		return why
	}
	e.mu.Lock()
	if e.draining {
		e.mu.Unlock()
		return errStopped
	}
	e.pending = append(e.pending, o)
	first := len(e.pending) == 1
	e.mu.Unlock()
	if first {
		e.poke()
	}
	return nil
}

func (e *Engine) poke() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// gather takes the next batch of commands off the queue.
func (e *Engine) gather() (list []*op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, bytes, most := 0, 0, e.opts.BatchOpsMax
	if e.core.faults.apart > 0 {
		e.core.faults.apart--
		most = 1
	}
	for n < len(e.pending) && n < most && (n == 0 || bytes < e.opts.BatchBytesMax) {
		bytes += e.pending[n].bytes
		n++
	}
	if n == len(e.pending) {
		list, e.pending = e.pending, nil
		return list
	}
	list = e.pending[:n:n]
	e.pending = append([]*op(nil), e.pending[n:]...)
	return list
}

// commitLoop is the committer: the only goroutine that decides anything.
func (e *Engine) commitLoop() {
	defer close(e.inflight)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-e.kick:
		case <-timer.C:
		}
		for {
			if e.failed.Load() && !e.heal() {
				timer.Reset(healEvery)
				if e.isDraining() {
					for list := e.gather(); len(list) > 0; list = e.gather() {
						e.refuse(list, errStopped)
					}
					return
				}
				break
			}
			b := e.runOnce()
			final, sleep, more := b.final(), b.sleep, b.more
			e.inflight <- b // from here on it belongs to syncLoop
			if final {
				e.core.dismiss() // also when the stop could not be written
				return
			}
			if sleep > 0 {
				timer.Reset(sleep)
			}
			if !more && !e.waiting() {
				break
			}
		}
	}
}

func (e *Engine) waiting() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.pending) > 0
}

func (e *Engine) isDraining() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

// syncLoop waits for the disk, in order, and answers.
func (e *Engine) syncLoop() {
	defer close(e.stopped)
	defer e.watchers.ringAll()
	var lost error // why a batch failed: those behind it stand on it, until the store is opened again
	for b := range e.inflight {
		if b.err == nil {
			b.err = lost
		}
		e.settleBatch(b)
		if lost = b.err; b.heals {
			lost = nil
		}
	}
}

// refuse answers commands that will not run.
func (e *Engine) refuse(list []*op, why error) {
	for _, o := range list {
		o.err = why
		o.done <- struct{}{}
	}
}

const healEvery = time.Second

// heal opens the store again after a failed commit and recovers. It reports
// whether the engine works.
func (e *Engine) heal() bool {
	if e.core.faults.wait {
		e.core.faults.wait = false
		return false
	}
	e.inflight <- &batch{heals: true} // everything before has been answered once this is taken
	list := e.gather()
	if n := len(list); n > 0 && list[n-1].final { // the stop comes after all others, and is to come yet
		e.mu.Lock()
		e.pending = append(e.pending, list[n-1])
		e.mu.Unlock()
		list = list[:n-1]
	}
	e.refuse(list, e.state.Load())
	e.core.dismiss()
	ctx := context.Background()
	if err := e.store.Reopen(ctx); err != nil {
		e.log.Error("the store cannot be opened again; will try on", "error", err)
		return false
	}
	var err error
	if fault := e.behind("recover", func() { err = e.recover(ctx, func(*Tx) error { return nil }) }); fault != nil {
		err = fault
	}
	if err != nil {
		e.log.Error("recovering after a failed commit; will try on", "error", err)
		return false
	}
	e.core.stats.Faults += e.faulty.Swap(0)
	e.failed.Store(false)
	e.state.Store(nil)
	e.log.Warn("the store works again; everything that was acknowledged is there")
	return true
}

// dismiss ends what waits for a committer that cannot serve it.
func (c *committer) dismiss() {
	for h := range c.hungry.all() {
		h.finish(ErrStreamEnded)
		h.place = nil
	}
	c.hungry = hungry{}
}

// fail notes that a commit failed. Streams end, so that clients connect again
// once the engine has recovered.
func (e *Engine) fail(err error) {
	why, ok := errors.AsType[*job.Error](err)
	if !ok {
		why = &job.Error{Kind: job.Unavailable, Text: "the store cannot commit", Cause: err}
	}
	if e.failed.CompareAndSwap(false, true) {
		e.state.Store(why)
		e.log.Error("a commit failed; opening the store again", "error", err)
		e.poke()
	}
}

// rules returns what applies everywhere.
func (e *Engine) rules() *rule.Server { return &e.opts.Server }
