package bench

import (
	"context"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

const (
	steadyBatch       = 50
	steadyBulks       = 4
	steadySingles     = 16
	steadyUnderWay    = 20_000
	steadyDescription = "end to end, empty queue"
)

// steady measures producers and workers at once.
func (r *run) steady(ctx context.Context) error {
	s, err := r.server(ctx)
	if err != nil {
		return err
	}
	w, err := r.steadyOn(ctx, s, r.newQueue(), false)
	if err != nil {
		return err
	}
	r.figure(steadyDescription, "jobs/s", w.rate, nil)
	r.cost(steadyDescription, w.cost)
	r.log.printf("steady: %s jobs/s", thousands(w.rate))
	return nil
}

// steadyOn measures a closed loop: at most steadyUnderWay jobs are between
// enqueue and acknowledgement. Afterwards the queue is drained, unless keep
// says that it had a backlog which is to stay.
func (r *run) steadyOn(ctx context.Context, s *server, q *queue, keep bool) (window, error) {
	c, crewCtx := newCrew(ctx)
	st := &stage{}
	credit := gauge.NewCredit(steadyUnderWay)
	defer credit.EndWith(crewCtx)()
	settler := newSettler(q)
	settler.credit = credit
	settled := settler.start(crewCtx, c, s.addr)
	c.start(takeConnections, func(int) error { return work(crewCtx, s.addr, q, settler.handler(crewCtx)) })
	produced := c.start(steadyBulks+steadySingles, func(i int) error {
		p := producer{queue: q, batch: 1, payload: r.opts.Payload, stage: st, credit: credit}
		if i < steadyBulks {
			p.batch = steadyBatch
		}
		return p.run(crewCtx, s.addr, &histogram{})
	})
	w, err := r.window(crewCtx, s, st, q.done.Load)
	if err == nil {
		err = until(crewCtx, "enqueueing", produced, q.done.Load)
	}
	if err == nil && !keep {
		err = until(crewCtx, "draining", settler.reach(q.enqueued.Load()), q.done.Load)
	}
	if err == nil {
		settler.close()
		err = until(crewCtx, "acknowledging", settled, q.done.Load)
	}
	if err := c.finish(err); err != nil {
		return w, err
	}
	return w, r.verify(ctx, s, q)
}
