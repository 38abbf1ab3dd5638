package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// WorkerOptions of a Worker. The zero value takes jobs of every queue, one at
// a time.
type WorkerOptions struct {
	// Queues to take from. None = all.
	Queues []string

	// Concurrency is how many handlers run at the same time. 0 = 1.
	Concurrency int

	// Prefetch is how many jobs the worker holds, running ones included. More
	// hides the way to the server and back; less leaves more to other workers.
	// 0 = twice the concurrency.
	Prefetch int

	// ID names the worker to the server, which gives leases to that name: a
	// worker that comes back under it within the re-attach window (30 s) is given
	// what it held. No two running workers may share one. "" = made from host,
	// process and chance.
	ID string

	// DrainTimeout is how long handlers may go on after Run's ctx ended; then
	// their own ctx ends, and what they do not finish is given back. 0 = 30 s.
	DrainTimeout time.Duration

	// JobsMax ends Run after so many attempts. 0 = never.
	JobsMax int

	Events Events

	engine *engine // of an Engine; nil = a worker
	times  times   // tests
}

// times of a worker; the zero fields take the defaults below.
type times struct {
	silence        time.Duration // a stream without a heartbeat for so long is dead
	reconnectFirst time.Duration
	reconnectMost  time.Duration // well below the re-attach window
	settleFirst    time.Duration
	settleMost     time.Duration
	confirm        time.Duration // for the server to hear that a run begins
	quiet          time.Duration // what was held is offered back within this
	grace          time.Duration // for handlers to return once their ctx ended
	flush          time.Duration // for the last outcomes to be taken
}

func (t times) orDefault() times {
	return times{
		silence:        cmp.Or(t.silence, 30*time.Second),
		reconnectFirst: cmp.Or(t.reconnectFirst, 250*time.Millisecond),
		reconnectMost:  cmp.Or(t.reconnectMost, 5*time.Second),
		settleFirst:    cmp.Or(t.settleFirst, 500*time.Millisecond),
		settleMost:     cmp.Or(t.settleMost, 30*time.Second),
		confirm:        cmp.Or(t.confirm, 5*time.Second),
		quiet:          cmp.Or(t.quiet, 250*time.Millisecond),
		grace:          cmp.Or(t.grace, 10*time.Second),
		flush:          cmp.Or(t.flush, 10*time.Second),
	}
}

// Worker takes jobs and runs a handler on each. It holds its leases by name,
// so that neither a broken connection nor a restarted server makes it run
// anything twice. Make it with NewWorker.
type Worker struct {
	client  *Client
	handler Handler
	opts    WorkerOptions
}

// NewWorker makes a worker; Run starts it.
func NewWorker(c *Client, handler Handler, opts WorkerOptions) (*Worker, error) {
	if handler == nil {
		return nil, errors.New("a worker needs a handler")
	}
	if opts.Concurrency < 0 || opts.Prefetch < 0 || opts.JobsMax < 0 {
		return nil, errors.New("concurrency, prefetch and the number of jobs cannot be negative")
	}
	for _, q := range opts.Queues {
		if q == "" || strings.Contains(q, ",") {
			return nil, fmt.Errorf("%q is no name of a queue", q)
		}
	}
	opts.Concurrency = max(opts.Concurrency, 1)
	opts.Prefetch = cmp.Or(opts.Prefetch, 2*opts.Concurrency)
	if opts.JobsMax > 0 {
		opts.Prefetch = min(opts.Prefetch, opts.JobsMax)
	}
	opts.DrainTimeout = cmp.Or(opts.DrainTimeout, 30*time.Second)
	opts.ID = cmp.Or(opts.ID, workerID())
	opts.Events.fill()
	opts.times = opts.times.orDefault()
	return &Worker{client: c, handler: handler, opts: opts}, nil
}

// ID is the name under which the worker holds its leases.
func (w *Worker) ID() string { return w.opts.ID }

// hostName is the name of this machine. What a name may not hold is left out.
func hostName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "worker"
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`,*?[]{}\`, r) {
			return -1
		}
		return r
	}, host)
}

// workerID is host, process and chance.
func workerID() string {
	return fmt.Sprintf("%s-%d-%s", hostName(), os.Getpid(), strings.ToLower(rand.Text()[:6]))
}

// Run takes and runs jobs until ctx ends, then drains: it stops taking, lets
// running handlers finish within DrainTimeout, reports every outcome, and
// gives back what it had not started. It returns nil after that, and an error
// if the server refused the worker for good or the drain had to leave
// something behind. At most one Run at a time may use a Worker.
func (w *Worker) Run(ctx context.Context) error {
	r := newRun(w)
	// Handlers and reports outlive ctx: that is what draining means.
	beyond := context.WithoutCancel(ctx)
	handlers, stopHandlers := context.WithCancel(beyond)
	defer stopHandlers()
	reports, stopReports := context.WithCancel(beyond)
	defer stopReports()

	var reporting sync.WaitGroup
	reporting.Go(func() { r.settler.run(reports) })
	executors := make(chan struct{})
	go func() {
		defer close(executors)
		r.executeAll(handlers)
	}()
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	taken := make(chan error, 1)
	if w.opts.engine != nil {
		w.opts.engine.attach(r)
	}
	go func() { taken <- r.take(taking) }()

	var refused error
	select {
	case refused = <-taken:
	case <-r.enough:
		stopTaking()
		refused = <-taken
	}
	stuck := r.drain(beyond, refused == nil, executors, stopHandlers)

	timer := time.AfterFunc(w.opts.times.flush, stopReports)
	defer timer.Stop()
	r.settler.close()
	reporting.Wait()
	if left := r.settler.left(); left > 0 {
		stuck = errors.Join(stuck, fmt.Errorf("%d outcomes did not reach the server; their jobs will run again", left))
	}
	return errors.Join(refused, stuck)
}

// run is one Run of a worker.
type run struct {
	*Worker
	settler *settler
	queue   chan *held    // delivered, not started
	stop    chan struct{} // closed: start nothing more
	enough  chan struct{} // closed: JobsMax attempts were started

	mu      sync.Mutex // guards what follows
	jobs    map[string]*held
	recent  recent
	started int
	running int
	halted  bool
}

// held is a job that this worker has: waiting, running or being settled.
type held struct {
	job      wire.Job
	lease    string // the token to settle with; guarded by run.mu
	settling bool   // guarded by run.mu
	told     bool   // the server, that there is nothing to stop; guarded by run.mu

	// over is why the lease ended while we had it, nil while it lives; stop ends
	// the handler's ctx, nil while it does not run. Guarded by run.mu.
	over error
	stop context.CancelCauseFunc
}

// ErrVoided ends the ctx of a handler whose attempt does not count any more:
// the job was cancelled, it took too long, or another copy was faster. See
// context.Cause.
var ErrVoided = errors.New("the server ended this attempt")

// voided drops a job whose lease the server ended; what runs is told to stop.
func (r *run) voided(j wire.Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.jobs[j.ID]
	runs := h != nil && h.lease == j.Lease && !h.settling
	if e := r.opts.engine; e != nil && (!runs || h.stop == nil) && (h == nil || !h.told) { // there is nothing to stop
		e.stop(j.Lease)
		if h != nil { // each heartbeat may say it again until what it told is answered
			h.told = h.lease == j.Lease
		}
	}
	if !runs {
		return
	}
	h.over = fmt.Errorf("%w: %s", ErrVoided, j.Voided)
	if h.stop != nil {
		h.stop(h.over)
	}
	delete(r.jobs, j.ID)
}

// starts makes the ctx of a handler, unless the lease is over already.
func (r *run) starts(ctx context.Context, h *held) (own context.Context, stop context.CancelCauseFunc, ok bool) {
	own, stop = context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	h.stop = stop
	return own, stop, h.over == nil
}

// overWhy is why the server ended the attempt; nil if it did not.
func (r *run) overWhy(h *held) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return h.over
}

func newRun(w *Worker) *run {
	r := &run{
		Worker: w,
		queue:  make(chan *held, w.opts.Prefetch),
		stop:   make(chan struct{}),
		enough: make(chan struct{}),
		jobs:   make(map[string]*held),
		recent: newRecent(max(1024, 4*w.opts.Prefetch)),
	}
	r.settler = newSettler(w.client.Settle, &w.opts.Events, w.opts.times)
	r.settler.answer = r.answered
	return r
}

func (r *run) stream(prefetch int) *stream {
	return &stream{
		client: r.client, worker: r.opts.ID, queues: r.opts.Queues, prefetch: prefetch,
		times: r.opts.times, events: &r.opts.Events, engine: r.opts.engine,
		connected: r.settler.hurry, beat: func() {}, voided: r.voided,
	}
}

// take fills the queue from the stream.
func (r *run) take(ctx context.Context) error {
	s := r.stream(r.opts.Prefetch)
	s.deliver = func(j wire.Job) {
		h := r.accept(j)
		if h == nil {
			return
		}
		select {
		case r.queue <- h:
		case <-ctx.Done():
			r.giveBack(h)
		}
	}
	return s.run(ctx)
}

// accept decides whether a delivery is news. After a reconnect the server
// offers again what this worker holds; none of that may start twice.
func (r *run) accept(j wire.Job) *held {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.Lease != "" && r.recent.has(j.Lease) {
		return nil // settled while the server wrote its list
	}
	if h := r.jobs[j.ID]; h != nil {
		if h.lease == j.Lease {
			return nil
		}
		if !h.settling { // the same work under a new token: its outcome counts for that
			h.lease = j.Lease
			return nil
		}
	}
	h := &held{job: j, lease: j.Lease}
	r.jobs[j.ID] = h
	return h
}

// executeAll runs the handlers until the run stops.
func (r *run) executeAll(ctx context.Context) {
	var all sync.WaitGroup
	for range r.opts.Concurrency {
		all.Go(func() {
			for {
				select {
				case <-r.stop:
					return
				case h := <-r.queue:
					if !r.begin() {
						r.giveBack(h)
						return
					}
					r.execute(ctx, h)
				}
			}
		})
	}
	all.Wait()
}

// begin counts an attempt that is about to start.
func (r *run) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halted || r.opts.JobsMax > 0 && r.started == r.opts.JobsMax {
		return false
	}
	r.started++
	r.running++
	if r.started == r.opts.JobsMax {
		close(r.enough)
	}
	return true
}

// halt keeps further attempts from starting and tells how many run.
func (r *run) halt() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.halted = true
	close(r.stop)
	return r.running
}

// giveBack releases a job that was not started.
func (r *run) giveBack(h *held) { r.settle(h, wire.Settle{Outcome: wire.OutcomeRelease}) }

// settle hands an outcome to the settler.
func (r *run) settle(h *held, s wire.Settle) {
	r.mu.Lock()
	h.settling = true
	s.ID, s.Lease = h.job.ID, h.lease
	r.mu.Unlock()
	r.settler.add(s)
}

// answered forgets a job whose outcome the server has judged.
func (r *run) answered(s wire.Settle, v wire.Verdict) {
	r.mu.Lock()
	if s.Lease != "" {
		r.recent.add(s.Lease)
	}
	if h := r.jobs[s.ID]; h != nil && h.lease == s.Lease {
		delete(r.jobs, s.ID)
	}
	r.mu.Unlock()
	if v.Code == "" {
		r.opts.Events.Settled(s, v)
	} else {
		r.opts.Events.Refused(s, v)
	}
}

// recent remembers the latest tokens.
type recent struct {
	set  map[string]struct{}
	ring []string
	at   int
}

func newRecent(n int) recent {
	return recent{set: make(map[string]struct{}, n), ring: make([]string, n)}
}

func (t *recent) has(token string) bool { _, ok := t.set[token]; return ok }

func (t *recent) add(token string) {
	if t.has(token) {
		return
	}
	delete(t.set, t.ring[t.at])
	t.ring[t.at], t.set[token] = token, struct{}{}
	t.at = (t.at + 1) % len(t.ring)
}
