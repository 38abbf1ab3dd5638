package measure

import (
	"context"
	"errors"
	"time"

	"github.com/reprisehq/reprise/bench/system"
	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// memory makes the backlog that the rest of its group works with, and measures
// by how much the server grows for each job that waits.
func (r *run) memory(ctx context.Context) error {
	q, err := r.newQueue(ctx)
	if err != nil {
		return err
	}
	fresh, err := system.TreeMemory(r.server.PIDs())
	if err != nil {
		return err
	}
	if err := r.fill(ctx, q, r.opts.Backlog, fillWindows*r.opts.Window); err != nil {
		return err
	}
	if err := quiet(ctx, r.server); err != nil {
		return err
	}
	full, err := system.TreeMemory(r.server.PIDs())
	if err != nil {
		return err
	}
	r.waiting = q
	r.figure("growth per waiting job", "bytes/job", float64(full-fresh)/float64(q.enqueued.Load()), nil)
	r.figure("memory with the backlog", "MiB", float64(full)/(1<<20), nil)
	r.figure("jobs of the backlog", "jobs", float64(q.enqueued.Load()), nil)
	return nil
}

// restartGrace is for workers to stop taking while their handlers are held, so
// that the backlog stays.
const restartGrace = 100 * time.Millisecond

// restart measures how long a server that was killed with a backlog is away.
func (r *run) restart(ctx context.Context) error {
	if err := r.server.Kill(); err != nil {
		return err
	}
	start := gauge.Now()
	if err := r.server.Start(ctx); err != nil {
		return err
	}
	serving := gauge.Now()
	q := r.waiting
	arrived := q.expectFirst()
	q.hold = make(chan struct{})
	w := r.startWorkers(ctx, q)
	err := w.until(arrived)
	w.cancel(errStopped)
	err = errors.Join(err, gauge.Wait(ctx, restartGrace))
	close(q.hold)
	if err := errors.Join(err, w.stop()); err != nil {
		return err
	}
	q.hold = nil
	r.figure("exec to serving", "s", (serving - start).Seconds(), nil)
	r.figure("exec to first job", "s", (q.firstAt() - start).Seconds(), nil)
	return r.verify(ctx, q)
}
