package bench

import "context"

// bulk measures enqueues in batches.
func (r *run) bulk(ctx context.Context) error {
	s, err := r.server(ctx)
	if err != nil {
		return err
	}
	q := r.newQueue()
	w, answered, err := r.enqueueFor(ctx, s, q, bulkBatch, bulkConnections)
	if err != nil {
		return err
	}
	r.figure("batches of 500", "jobs/s", w.rate, r.goal(atLeast(120_000)))
	r.figure("batches of 500, answer p50", "ms", milliseconds(answered.percentile(50)), nil)
	r.figure("batches of 500, answer p99", "ms", milliseconds(answered.percentile(99)), nil)
	r.cost("batches of 500", w.cost)
	r.log.printf("bulk: %s jobs/s", thousands(w.rate))
	return r.verify(ctx, s, q)
}
