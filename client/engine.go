package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// EngineOptions of an Engine. Zero fields have defaults.
type EngineOptions struct {
	// ID names the engine; no two that run may share one. An engine that comes
	// back under its ID while the server waits for it goes on with what it ran.
	// "" = made from host, process and chance.
	ID string

	// Host is the machine: copies of one task run on different ones. "" = the
	// name of this machine.
	Host string

	// Slots is how many tasks run at the same time. 0 = 1.
	Slots int

	// Prefetch is how many tasks the engine holds, running ones included. More
	// hides the way to the server and back, where tasks are short. 0 = Slots.
	Prefetch int

	// Properties are what conditions of tasks look at: "cpuMHz": "2400".
	Properties map[string]string

	// Sessions are those it works for. None = all.
	Sessions []string

	// DrainTimeout is how long running tasks may go on after Run's ctx ended;
	// then they are given back without blame. 0 = 30 s.
	DrainTimeout time.Duration

	// TasksMax ends Run after so many attempts. 0 = never.
	TasksMax int

	Events Events
}

// Engine runs tasks of sessions: it logs in, says that it lives, takes tasks
// for its slots, says when each begins, stops those that count no more, and
// goes on after a lost connection or a restart of the server. Make it with
// NewEngine.
type Engine struct {
	worker *Worker
	engine *engine
}

// NewEngine makes an engine; Run starts it. The handler runs one task: what it
// passes to Delivery.SetResult is the result of the task, and an error fails
// the attempt. Its ctx ends when the attempt counts no more (ErrVoided).
func NewEngine(c *Client, handler Handler, o EngineOptions) (*Engine, error) {
	if o.Slots < 0 || o.Prefetch < 0 {
		return nil, errors.New("slots and prefetch cannot be negative")
	}
	o.Slots = max(o.Slots, 1)
	o.Prefetch = cmp.Or(o.Prefetch, o.Slots)
	o.Host = cmp.Or(o.Host, hostName())
	e := &engine{client: c, opts: o, wake: make(chan struct{}, 1), begun: make(chan struct{}, 1), leave: make(chan struct{})}
	o.Events.fill()
	w, err := NewWorker(c, handler, WorkerOptions{
		Queues: o.Sessions, Concurrency: o.Slots, Prefetch: o.Prefetch, ID: o.ID,
		DrainTimeout: o.DrainTimeout, JobsMax: o.TasksMax, Events: e.hear(o.Events),
	})
	if err != nil {
		return nil, err
	}
	e.opts.ID, e.path = w.opts.ID, "/engines/"+url.PathEscape(w.opts.ID)
	w.opts.engine = e
	return &Engine{w, e}, nil
}

// ID is the name of the engine.
func (e *Engine) ID() string { return e.engine.opts.ID }

// Run works until ctx ends or an operator drains the engine, then drains: it
// takes nothing more, lets running tasks finish within DrainTimeout, gives back
// the others, and logs off. It returns nil after that. The error says why it
// could not go on: the server refused it, an operator logged it off, or another
// engine took its ID. At most one Run at a time may use an Engine.
func (e *Engine) Run(ctx context.Context) error {
	beyond := context.WithoutCancel(ctx)
	alive, die := context.WithCancel(beyond) // the loops outlive ctx: draining is a kind of work
	defer die()
	working, drain := context.WithCancel(ctx)
	defer drain()
	var loops sync.WaitGroup
	loops.Go(func() { e.engine.beat(alive) })
	loops.Go(func() { e.engine.tellStarts(alive) })
	loops.Go(func() {
		select {
		case <-e.engine.leave:
			drain()
		case <-alive.Done():
		}
	})
	err := e.worker.Run(working)
	die()
	loops.Wait()
	e.engine.goodbye.Wait()
	e.engine.logoff(beyond)
	return err
}

// engine is what a Worker needs to be one.
type engine struct {
	client *Client
	opts   EngineOptions
	path   string
	wake   chan struct{} // a heartbeat is due now
	begun  chan struct{} // there are starts to be told
	leave  chan struct{} // closed: an operator drains us

	goodbye sync.WaitGroup // the word that we drain

	mu       sync.Mutex // guards what follows
	run      *run
	epoch    int64 // of our login; 0 = to be made
	latest   int64 // of the latest login we had
	heard    time.Time
	interval time.Duration
	lost     time.Duration // after so long without a word the server takes us for lost
	stopped  []string      // tokens of attempts that are over here
	starts   []*held
	leaving  bool

	over error                   // why it must not go on under its name; nil = it may
	cut  context.CancelCauseFunc // ends the stream that is open
}

// errEngineOver ends an engine that must not go on under its name.
var errEngineOver = errors.New("the engine is over")

func (e *engine) attach(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.run = r
}

// hear puts what an engine does at events before what its owner does.
func (e *engine) hear(o Events) Events {
	out := o
	out.Voided = func(d *Delivery, why error) {
		e.stop(d.run.leaseOf(d.held))
		o.Voided(d, why)
	}
	out.Refused = func(s wire.Settle, v wire.Verdict) {
		e.stop(s.Lease)
		o.Refused(s, v)
	}
	out.Draining = func(running, unstarted int) {
		e.goodbye.Go(e.drain)
		o.Draining(running, unstarted)
	}
	return out
}

func (r *run) leaseOf(h *held) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return h.lease
}

// stop notes that nothing runs under a token any more; a server that waits for
// it hears it at once.
func (e *engine) stop(lease string) {
	const most = 10_000
	e.mu.Lock()
	if lease != "" && len(e.stopped) < most {
		e.stopped = append(e.stopped, lease)
	}
	e.mu.Unlock()
	signal(e.wake)
}

// login returns the epoch of our login, and logs in if there is none.
func (e *engine) login(ctx context.Context) (int64, error) {
	e.mu.Lock()
	epoch, latest, over := e.epoch, e.latest, e.over
	e.mu.Unlock()
	if over != nil {
		return 0, over
	}
	if epoch != 0 {
		return epoch, nil
	}
	if latest != 0 { // somebody else may have our name now
		var seen wire.Engine
		err := e.client.call(ctx, "GET", e.path, nil, &seen)
		if err == nil && seen.Epoch > latest {
			return 0, fmt.Errorf("%w: another engine logged in as %s", errEngineOver, e.opts.ID)
		}
		if err != nil && CodeOf(err) != wire.CodeNotFound {
			return 0, err
		}
	}
	ask := wire.Login{ID: e.opts.ID, Host: e.opts.Host, Slots: e.opts.Slots, Properties: e.opts.Properties, Running: e.running()}
	var in wire.LoggedIn
	if err := e.client.call(ctx, "POST", "/engines", ask, &in); err != nil {
		return 0, fmt.Errorf("logging in: %w", err)
	}
	e.mu.Lock()
	e.epoch, e.latest, e.heard, e.stopped = in.Epoch, in.Epoch, time.Now(), nil
	e.interval, e.lost = time.Duration(in.HeartbeatMS)*time.Millisecond, time.Duration(in.LostAfterMS)*time.Millisecond
	r := e.run
	e.mu.Unlock()
	signal(e.wake)
	for _, s := range in.Stop {
		r.voided(wire.Job{ID: s.ID, Lease: s.Lease, Voided: "lost"})
	}
	return in.Epoch, nil
}

// running is all that the engine has: what it runs, what waits for a slot, and
// what is finished and not told yet.
func (e *engine) running() []wire.Running {
	e.mu.Lock()
	r := e.run
	e.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]wire.Running, 0, len(r.jobs))
	for id, h := range r.jobs {
		list = append(list, wire.Running{ID: id, Lease: h.lease})
	}
	return list
}

// refused is what a refusal by the server means for an engine; for a worker
// (nil) it is the end.
func (e *engine) refused(err *Error) error {
	if e == nil || err.Code != wire.CodeSuperseded && err.Code != wire.CodeNotFound {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.epoch = 0
	if err.Code == wire.CodeNotFound && time.Since(e.heard) < e.lost {
		e.over = fmt.Errorf("%w: it was logged off", errEngineOver)
		if e.cut != nil { // the server leaves the stream open to tell what to stop
			e.cut(e.over)
		}
		return e.over
	}
	return errors.New(err.Message) // which logging in again may mend
}

// opens notes how the stream that is being opened is cut; nil = a worker's.
func (e *engine) opens(cut context.CancelCauseFunc) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cut = cut; e.over != nil {
		cut(e.over)
	}
}

// beat says that the engine lives, until ctx ends.
func (e *engine) beat(ctx context.Context) {
	for {
		e.mu.Lock()
		wait := e.interval
		e.mu.Unlock()
		if wait == 0 { // not logged in yet
			wait = time.Second
		}
		pause(ctx, wait, e.wake)
		if ctx.Err() != nil {
			return
		}
		e.beatOnce(ctx)
	}
}

func (e *engine) beatOnce(ctx context.Context) {
	e.mu.Lock()
	epoch, stopped, r, limit := e.epoch, e.stopped, e.run, e.lost
	e.mu.Unlock()
	if epoch == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ask, state := wire.Heartbeat{Epoch: epoch, Stopped: stopped, Running: e.running()}, wire.Engine{}
	err := e.client.call(ctx, "POST", e.path+"/heartbeat", ask, &state)
	if refused, ok := errors.AsType[*Error](err); ok {
		_ = e.refused(refused) // our stream ends: it is opened again under a new login, or the engine is over
		return
	}
	if err != nil {
		return // the next one comes soon
	}
	e.mu.Lock()
	e.heard = time.Now()
	if e.epoch == epoch {
		e.stopped = slices.Clone(e.stopped[len(stopped):])
	}
	leaves := state.State == wire.EngineDraining && !e.leaving
	if leaves {
		e.leaving = true
		close(e.leave)
	}
	e.mu.Unlock()
	for _, s := range state.Stop { // while the connection was lost we may have missed that
		r.voided(wire.Job{ID: s.ID, Lease: s.Lease, Voided: "superseded"})
	}
}

// started notes that a task begins, to be told soon.
func (e *engine) started(h *held) {
	e.mu.Lock()
	e.starts = append(e.starts, h)
	e.mu.Unlock()
	signal(e.begun)
}

// tellStarts tells the server which tasks have begun, until ctx ends: many at a
// time, and not those that have ended meanwhile.
func (e *engine) tellStarts(ctx context.Context) {
	waits := backoff{first: 100 * time.Millisecond, most: 3 * time.Second}
	for {
		select {
		case <-e.begun:
		case <-ctx.Done():
			return
		}
		e.mu.Lock()
		list, r := e.starts, e.run
		e.starts = nil
		e.mu.Unlock()
		var ask []wire.Extension
		var told []*held
		r.mu.Lock()
		for _, h := range list {
			if !h.settling && h.over == nil {
				ask, told = append(ask, wire.Extension{ID: h.job.ID, Lease: h.lease, Started: true}), append(told, h)
			}
		}
		r.mu.Unlock()
		if len(ask) == 0 {
			continue
		}
		if _, err := e.client.Extend(ctx, ask); err == nil {
			waits.reset()
			continue
		}
		pause(ctx, waits.wait(), nil)
		e.mu.Lock()
		e.starts = append(told, e.starts...)
		e.mu.Unlock()
		signal(e.begun)
	}
}

// leaveTimeout bounds the calls that say goodbye: a server that does not hear
// them finds out by itself.
const leaveTimeout = 5 * time.Second

// drain tells the server that the engine takes nothing more.
func (e *engine) drain() {
	e.mu.Lock()
	epoch := e.epoch
	e.leaving = true
	e.mu.Unlock()
	e.say(context.Background(), "/drain", epoch)
}

// logoff tells the server that the engine has gone.
func (e *engine) logoff(ctx context.Context) {
	e.mu.Lock()
	epoch := e.epoch
	e.epoch = 0
	e.mu.Unlock()
	if ctx.Err() == nil {
		e.say(ctx, "/logoff", epoch)
	}
}

func (e *engine) say(ctx context.Context, what string, epoch int64) {
	if epoch == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	_ = e.client.call(ctx, "POST", e.path+what, wire.Epoch{Epoch: epoch}, nil) // it is lost soon, if this does not arrive
}

// Engines lists the engines there are.
func (c *Client) Engines(ctx context.Context) ([]wire.Engine, error) {
	const list = "/engines?"
	q := url.Values{"limit": {"1000"}}
	of := func(p *wire.Engines) ([]wire.Engine, string) { return p.Engines, behind(list, q, "after", p.Next) }
	return whole(pages(ctx, c, list+q.Encode(), of, "listing engines"))
}

// DrainEngine gives an engine nothing more; it ends when what it runs is done.
func (c *Client) DrainEngine(ctx context.Context, id string) error {
	return c.ask(ctx, "POST", "/engines/"+url.PathEscape(id)+"/drain", wire.Epoch{}, nil, "draining engine %s", id)
}

// LogoffEngine takes an engine out at once; what it runs is given back.
func (c *Client) LogoffEngine(ctx context.Context, id string) error {
	return c.ask(ctx, "POST", "/engines/"+url.PathEscape(id)+"/logoff", wire.Epoch{}, nil, "logging off engine %s", id)
}
