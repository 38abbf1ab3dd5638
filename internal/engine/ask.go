package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Ask runs a command and returns what it Answered, once that is durable. With an
// error the answer is the zero value; when ctx has ended, the command may still take
// effect.
func Ask[T any](ctx context.Context, e *Engine, f func(*Tx) (T, error)) (T, error) {
	var out T
	err := e.Do(ctx, 0, func(r *Tx) (err error) {
		out, err = f(r)
		return err
	})
	return Answered(&out, err)
}

// Answered is what a command wrote for its caller. With an error it is the zero value:
// when ctx has ended the command may still be running, and write.
func Answered[T any](out *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *out, nil
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

// NewID draws an id that is higher than all before.
func (r *Tx) NewID() job.ID { return r.ids.Next(r.now) }

// DiskLow reports whether the free disk space is below its reserve.
func (r *Tx) DiskLow() bool { return r.disk.low }

// NewToken draws a token that was never given out.
func (r *Tx) NewToken() job.Token { return job.NewToken(r.c.start, r.e.rnd) }
