package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Ask runs a command and returns what it answered, once that is durable. With an
// error the answer is the zero value: the command may still be running, and may
// still take effect when ctx has ended.
func Ask[T any](ctx context.Context, e *Engine, f func(*Tx) (T, error)) (T, error) {
	var out, none T
	err := e.Do(ctx, 0, func(r *Tx) (err error) {
		out, err = f(r)
		return err
	})
	if err != nil {
		return none, err
	}
	return out, nil
}

// Store is the transaction of the store.
func (r *Tx) Store() store.Tx { return r.tx }

// Put puts jobs, by the plan that Folded made if any of them is for a batch. out has a
// place for each.
func (r *Tx) Put(list []NewJob, plan *FoldPlan, out []Added) error {
	return r.put(list, nil, plan, out)
}

// More has the next transaction follow at once: the clock left work behind.
func (r *Tx) More() { r.ticked = true }

// Stats are what the transaction adds to the counters.
func (r *Tx) Stats() *Stats { return &r.stats }

// NewToken draws a token that was never given out.
func (r *Tx) NewToken() job.Token { return job.NewToken(r.c.start, r.e.rnd) }
