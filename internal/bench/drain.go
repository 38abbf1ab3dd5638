package bench

import (
	"context"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

const (
	takeConnections = 4
	ackConnections  = 4
)

// drain measures how fast workers empty a queue.
func (r *run) drain(ctx context.Context) error {
	s, err := r.server(ctx)
	if err != nil {
		return err
	}
	q := r.newQueue()
	if err := r.fill(ctx, s, q, r.opts.Jobs, ""); err != nil {
		return err
	}
	if err := quiet(ctx, s); err != nil {
		return err
	}
	m := startMeter(s)
	took, err := r.drainAll(ctx, s, q)
	if err != nil {
		return err
	}
	rate := float64(r.opts.Jobs) / took.Seconds()
	r.figure("take and acknowledge", "jobs/s", rate, r.goal(atLeast(80_000)))
	r.cost("take and acknowledge", m.read(r.opts.Jobs))
	r.log.printf("drain: %s jobs/s", thousands(rate))
	return nil
}

// drainAll takes and acknowledges all that a queue has.
func (r *run) drainAll(ctx context.Context, s *server, q *queue) (time.Duration, error) {
	c, crewCtx := newCrew(ctx)
	settler := newSettler(q)
	start := gauge.Now()
	settled := settler.start(crewCtx, c, s.addr)
	c.start(takeConnections, func(int) error { return work(crewCtx, s.addr, q, settler.handler(crewCtx)) })
	err := until(crewCtx, "draining", settler.reach(q.enqueued.Load()), q.done.Load)
	took := gauge.Now() - start
	if err == nil {
		settler.close()
		err = until(crewCtx, "acknowledging", settled, q.done.Load)
	}
	if err := c.finish(err); err != nil {
		return 0, err
	}
	return took, r.verify(ctx, s, q)
}
