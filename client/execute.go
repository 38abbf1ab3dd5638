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
	d := &Delivery{Job: h.job}
	own, cancel := ctx, context.CancelFunc(func() {})
	if timeout := time.Duration(h.job.RunTimeoutMS) * time.Millisecond; timeout > 0 {
		own, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the run timeout of %s is over", timeout))
	}
	start := time.Now()
	r.opts.Events.Started(d)
	err := r.invoke(own, d)
	cancel()
	s := Outcome(err)
	if _, said := errors.AsType[*ending](err); err != nil && !said && ctx.Err() != nil {
		// We stopped the handler; that is not the job's fault.
		s = wire.Settle{Outcome: wire.OutcomeRelease}
	}
	s.StartedAt = start.UnixMilli()
	r.opts.Events.Finished(d, s.Outcome, err, time.Since(start))
	r.mu.Lock()
	r.running--
	r.mu.Unlock()
	r.settle(h, s)
}

// invoke calls the handler and turns a panic into a failure with its stack.
func (r *run) invoke(ctx context.Context, d *Delivery) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Failure{Type: "panic", Message: fmt.Sprintf("panic: %v", v), Backtrace: string(debug.Stack())}
		}
	}()
	return r.handler(ctx, d)
}
