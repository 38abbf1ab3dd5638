package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
)

// Reconfigure lets new options hold from now on: the server's rules, limits,
// windows, the disk reserve, and the settings of the queues that are listed, as a start
// does. The other options are not looked at. An error means that
// nothing was changed.
func (e *Engine) Reconfigure(ctx context.Context, o Options, by job.Actor) error {
	err := e.Do(ctx, 0, func(r *Tx) error {
		r.tx.Durable()
		if err := r.configureQueues(o.Queues); err != nil {
			return err
		}
		return r.Audit(by, "reload", "", int64(len(o.Queues)))
	})
	if err != nil {
		return err
	}
	// In a command of its own, which writes nothing: it may run twice, and those
	// of its batch see the old or the new.
	return e.Do(ctx, 0, func(r *Tx) error {
		e.opts.Server, e.opts.Idempotency, e.opts.Reattach = o.Server, o.Idempotency, o.Reattach
		e.opts.QueuesMax, e.opts.InFlightMax = o.QueuesMax, o.InFlightMax
		e.space.keep.Store(&o.Reserve)
		r.fed = true // a limit may leave more room
		return nil
	})
}
