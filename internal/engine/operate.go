package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Delete removes a job in any state; a running one is cancelled first, so a
// later settle of its holder finds nothing.
func (e *Engine) Delete(ctx context.Context, id job.ID) error {
	return e.do(ctx, 0, func(r *run) error {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if j == nil {
			return noJob(id)
		}
		if j.State.Open() {
			eff, err := r.step(j, rule.Command{Verb: rule.Cancel})
			if err != nil {
				return err
			}
			j = eff.Job
		}
		if j != nil { // without retention the cancelled job is gone already
			_, err = r.step(j, rule.Command{Verb: rule.Purge})
		}
		r.tx.Durable()
		return err
	})
}

// Operate applies one of the operator's verbs to a job: Revive, Cancel, Offer
// or Patch.
func (e *Engine) Operate(ctx context.Context, id job.ID, c rule.Command) (Verdict, error) {
	var out Verdict
	err := e.do(ctx, 0, func(r *run) error {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if j == nil {
			return noJob(id)
		}
		eff, err := r.step(j, c)
		if err != nil {
			return err
		}
		r.tx.Durable()
		out, err = verdictOf(eff, nil)
		return err
	})
	if err != nil { // out may still be written to
		return Verdict{}, err
	}
	return out, nil
}

// SetQueue changes the settings of a queue; they hold from then on, for
// waiting jobs too. A queue that has neither jobs nor settings yet counts
// against max_queues like one that a job makes: OverLimit.
func (e *Engine) SetQueue(ctx context.Context, name string, edit func(*job.Queue) error) (*job.Queue, error) {
	var out *job.Queue
	err := e.do(ctx, 0, func(r *run) error {
		if !r.c.queues[name] && !r.fresh[name] {
			if err := r.oneMoreQueue(0); err != nil {
				return err
			}
		}
		old, err := r.queue(name)
		if err != nil {
			return err
		}
		q := *old
		if err := edit(&q); err != nil {
			return err
		}
		q.Name = name
		if err := rule.ChangeQueue(old, &q, int(r.tx.Depth(name).Grouped)); err != nil {
			return err
		}
		r.forgetQueue(name)
		r.seeQueue(name)
		r.woken[name] = true
		r.tx.Durable()
		out = &q
		return r.tx.Set(&q)
	})
	if err != nil { // out may still be written to
		return nil, err
	}
	return out, nil
}

// HoldGroup keeps a whole group out of line until a date.
func (e *Engine) HoldGroup(ctx context.Context, queue, group string, until job.Millis) error {
	return e.do(ctx, 0, func(r *run) error {
		g, err := r.gate(queue, group)
		if err != nil {
			return err
		}
		r.tx.Durable()
		r.woken[queue] = true // who is emptied for a member of it goes on
		return r.tx.Set(rule.HoldGate(g, until))
	})
}

// forgetQueue drops the settings remembered for this transaction.
func (r *run) forgetQueue(name string) {
	delete(r.rows, name)
	r.lastQ = nil
}

// Stats returns counters since the start.
func (e *Engine) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	if err := e.do(ctx, 0, func(r *run) error { s = r.c.stats; return nil }); err != nil {
		return Stats{}, err // s may still be written to
	}
	return s, nil
}
