package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Plan says which jobs of a call become parts of jobs that wait, instead of jobs of their
// own. It is made outside of transactions, because the committer runs no expressions, and
// carried out if it holds yet.
type Plan interface {
	// Check marks in out those that join another job, or returns ErrStale.
	Check(tx *Tx, list []NewJob, out []Added) error
	// Admit calls grow for each queue in which a job that waits grows.
	Admit(grow func(queue string, by int64) error) error
	// Apply writes the jobs that took others in. Those of leaving are about to be pushed
	// out: what is written of them takes their place there.
	Apply(tx *Tx, leaving []*job.Job, out []Added) error
	// Body is the payload of a place of the call in the end; nil = its own.
	Body(i int) []byte
	// Into is whose job a place becomes a part of: its own place, an earlier one, or below 0
	// one that waits.
	Into(i int) int
}

// KnownJobs tells which jobs of a call are here already, by their idempotency keys.
type KnownJobs func(store.Reader) ([]bool, error)

// ErrStale ends a put whose plan does not hold any more; nobody outside sees it.
var ErrStale = job.Errorf(job.WrongState, "the batch changed meanwhile")

// Planned calls put with a plan until that holds, or with nil if there is nothing to plan.
// Whoever puts jobs must come through here, and give Tx.Put the plan.
func (e *Engine) Planned(ctx context.Context, list []NewJob, put func(Plan) error) error {
	return e.parts.planned(ctx, list, nil, put)
}

func (p parts) planned(ctx context.Context, list []NewJob, receipts []*job.Receipt, put func(Plan) error) error {
	known := func(v store.Reader) ([]bool, error) {
		out, is := make([]Added, len(list)), make([]bool, len(list))
		_, err := recall(v, list, receipts, out)
		for i := range out {
			is[i] = out[i].Duplicate
		}
		return is, err
	}
	for i := range p {
		if plan := p[i].Plan; plan != nil {
			if planned, err := plan(ctx, list, known, put); planned || err != nil {
				return err
			}
		}
	}
	return put(nil)
}

// noPlan has every job of a call be one of its own.
type noPlan struct{}

func (noPlan) Check(*Tx, []NewJob, []Added) error    { return nil }
func (noPlan) Admit(func(string, int64) error) error { return nil }
func (noPlan) Apply(*Tx, []*job.Job, []Added) error  { return nil }
func (noPlan) Body(int) []byte                       { return nil }
func (noPlan) Into(i int) int                        { return i }

// bodyOf is the payload of a place of a call in the end.
func bodyOf(p Plan, list []NewJob, i int) []byte {
	if body := p.Body(i); body != nil {
		return body
	}
	return list[i].Payload
}

// grow checks what a queue may hold in bytes: a job that takes something in must not grow
// beyond that.
func (r *intake) grow(queue string, by int64) error {
	a, err := r.quota(queue)
	if err != nil || a == nil {
		return err
	}
	if a.bytes += by; by > 0 && a.queue.MaxBytes > 0 && a.bytes > a.queue.MaxBytes {
		return rule.Full(a.queue, a.jobs, a.bytes-by)
	}
	return nil
}
