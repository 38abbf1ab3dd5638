package bench

import (
	"context"
	"fmt"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

const (
	bulkBatch       = 500
	bulkConnections = 8
)

// fill enqueues jobs until the queue was given so many in all, outside of any
// measurement.
func (r *run) fill(ctx context.Context, s *server, q *queue, jobs int64, extra string) error {
	c, crewCtx := newCrew(ctx)
	p := &producer{queue: q, batch: bulkBatch, payload: r.opts.Payload, extra: extra, limit: jobs}
	start := gauge.Now()
	all := c.start(bulkConnections, func(int) error { return p.run(crewCtx, s.addr, nil) })
	if err := c.finish(until(crewCtx, "filling a queue", all, q.enqueued.Load)); err != nil {
		return err
	}
	if q.enqueued.Load() != jobs {
		return notEqual("the number of accepted jobs", q.enqueued.Load(), jobs)
	}
	r.log.printf("%s: %s jobs enqueued in %.1f s", r.phase, thousands(float64(jobs)), (gauge.Now() - start).Seconds())
	if err := r.verify(ctx, s, q); err != nil {
		return fmt.Errorf("after filling: %w", err)
	}
	return nil
}
