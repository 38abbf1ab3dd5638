package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// execute runs one attempt and hands its outcome on.
func (r *run) execute(ctx context.Context, h *held) {
	d := &Delivery{Job: h.job, run: r, held: h}
	own, stop, lives := r.starts(ctx, h)
	defer stop(nil)
	if !lives || !r.confirm(ctx, h) {
		r.ended()
		r.opts.Events.Lost(d)
		return
	}
	cancel := context.CancelFunc(func() {})
	var over error
	if timeout := r.runTimeout(&h.job); timeout > 0 {
		over = fmt.Errorf("the run timeout of %s is over", timeout)
		own, cancel = context.WithTimeoutCause(own, timeout, over)
	}
	start := time.Now()
	r.opts.Events.Started(d)
	err := guarded(func() error { return r.handler(own, d) })
	overran := over != nil && errors.Is(context.Cause(own), over)
	cancel()
	if why := r.overWhy(h); why != nil {
		r.ended()
		r.opts.Events.Voided(d, why)
		return
	}
	s := Outcome(err)
	if _, said := errors.AsType[*ending](err); err != nil && !said && ctx.Err() != nil {
		// We stopped the handler; that is not the job's fault.
		s = wire.Settle{Outcome: wire.OutcomeRelease}
	}
	if overran && s.Error != nil {
		s.Error.Timeout = true
	}
	s.StartedAt, s.HoldMS = start.UnixMilli(), d.hold.Load()
	if s.Outcome == wire.OutcomeOK {
		s.Result = d.Result()
	}
	r.opts.Events.Finished(d, s.Outcome, err, time.Since(start))
	r.ended()
	r.settle(h, s)
}

func (r *run) ended() {
	r.mu.Lock()
	r.running--
	r.mu.Unlock()
}

// runTimeout is how long one run may take, by the job or by its queue; 0 =
// without end. Of a task it is for the session to say whether an engine stops it.
func (r *run) runTimeout(j *wire.Job) time.Duration {
	if r.opts.engine != nil {
		return time.Duration(j.StopAfterMS) * time.Millisecond
	}
	ms := j.RunTimeoutMS
	if ms == 0 && j.RunUntil > j.DequeuedAt {
		ms = j.RunUntil - j.DequeuedAt // as if the run had begun when it was delivered
	}
	return time.Duration(ms) * time.Millisecond
}

// confirm tells the server that the run begins, where that counts: until then
// the start timeout runs, and from then on the run timeout. It reports false if
// the lease is over, so that the run would be for nothing.
func (r *run) confirm(ctx context.Context, h *held) bool {
	j := &h.job
	if r.opts.engine != nil { // it need not wait for the answer: the news comes over the stream too
		r.opts.engine.started(h)
		return true
	}
	if j.StartBy == 0 && j.StartTimeoutMS == 0 && r.runTimeout(j) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, r.opts.times.confirm)
	defer cancel()
	lease := r.leaseOf(h)
	verdicts, err := r.client.Extend(ctx, []wire.Extension{{ID: j.ID, Lease: lease, Started: true}})
	if err != nil || verdicts[0].Code != wire.CodeSuperseded && verdicts[0].Code != wire.CodeNotFound {
		return true // not told, perhaps; what the lease is worth shows when it is settled
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.lease != lease {
		return true // meanwhile delivered again
	}
	if r.jobs[j.ID] == h {
		delete(r.jobs, j.ID)
	}
	return false
}

// guarded calls a handler and turns a panic into a failure with its stack.
func guarded(handle func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Failure{Type: "panic", Message: fmt.Sprintf("panic: %v", v), Backtrace: string(debug.Stack())}
		}
	}()
	return handle()
}
