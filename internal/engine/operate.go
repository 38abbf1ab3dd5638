package engine

import (
	"cmp"
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Delete removes a job in any state; a running one is cancelled first, so a
// later settle of its holder finds nothing.
func (e *Engine) Delete(ctx context.Context, id job.ID, by job.Actor) error {
	return e.Do(ctx, 0, func(r *Tx) error {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if j == nil {
			return NoJob(id)
		}
		if err := r.Remove(j); err != nil {
			return err
		}
		return r.Audit(by, "delete", id.String(), 1)
	})
}

// Cancel gives up an open job: it is dead, reason cancelled, with who did it and
// why as its failure. Who runs it by a named stream is told.
func (e *Engine) Cancel(ctx context.Context, by job.Actor, id job.ID, why string) (Verdict, error) {
	var out Verdict
	err := e.Do(ctx, 0, func(r *Tx) error {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if j == nil {
			return NoJob(id)
		}
		eff, err := r.Step(j, cancelling(by, why))
		if err != nil {
			return err
		}
		if out, err = VerdictOf(eff, nil); err != nil {
			return err
		}
		return r.Audit(by, "cancel", id.String(), 1)
	})
	return Answered(&out, err)
}

// CancelAll does so with every open job that the search chooses, see DeleteAll.
func (e *Engine) CancelAll(ctx context.Context, s Search, by job.Actor, why string) (cancelled int64, err error) {
	c := cancelling(by, why)
	done, _, err := e.Bulk(ctx, s.open(), func(r *Tx, j *job.Job) error { _, err := r.Step(j, c); return err })
	return done, err
}

// cancelSample is how many jobs a dry run shows.
const cancelSample = 5

// PreviewCancel counts what CancelAll would cancel now, and shows some of it.
func (e *Engine) PreviewCancel(ctx context.Context, s Search) (n int64, sample []Listed, err error) {
	err = e.Each(ctx, s.open(), func(l Listed) (bool, error) {
		if n++; len(sample) < cancelSample {
			sample = append(sample, l)
		}
		return true, nil
	})
	return n, sample, err
}

// open is the search among jobs that are not finished.
func (s Search) open() Search {
	all := s.Where
	s.Where = func(j *job.Job) bool { return j.State.Open() && (all == nil || all(j)) }
	if s.Filter.States == nil { // however many are finished, nobody looks at them
		s.Filter.States = []job.State{job.Scheduled, job.Ready, job.Leased}
	}
	return s
}

func cancelling(by job.Actor, why string) rule.Command {
	text := "cancelled by " + cmp.Or(by.Name, "an operator")
	if why != "" {
		text += ": " + why
	}
	return rule.Command{Verb: rule.Cancel, Failure: job.Failure{Type: "Cancelled", Message: text}}
}

// Operate applies one of the operator's verbs to a job: Revive, Cancel, Offer
// or Patch.
func (e *Engine) Operate(ctx context.Context, id job.ID, c rule.Command) (Verdict, error) {
	var out Verdict
	err := e.Do(ctx, 0, func(r *Tx) error {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if j == nil {
			return NoJob(id)
		}
		eff, err := r.Step(j, c)
		if err != nil {
			return err
		}
		r.tx.Durable()
		out, err = VerdictOf(eff, nil)
		return err
	})
	return Answered(&out, err)
}

// SetQueue changes the settings of a queue; they hold from then on, for
// waiting jobs too. A queue that has neither jobs nor settings yet counts
// against max_queues like one that a job makes: OverLimit.
func (e *Engine) SetQueue(ctx context.Context, name string, edit func(*job.Queue) error, by job.Actor) (*job.Queue, error) {
	var out *job.Queue
	err := e.Do(ctx, 0, func(r *Tx) (err error) {
		out, err = r.setQueue(name, edit, by)
		return err
	})
	return Answered(&out, err)
}

// ChangeQueue is SetQueue for whoever knows nothing of inboxes: what an inbox says of
// its queue stays.
func (e *Engine) ChangeQueue(ctx context.Context, name string, edit func(*job.Queue) error, by job.Actor) (*job.Queue, error) {
	return e.SetQueue(ctx, name, func(q *job.Queue) error {
		old := *q
		if err := edit(q); err != nil {
			return err
		}
		return rule.KeepsInbox(&old, q)
	}, by)
}

func (r *Tx) setQueue(name string, edit func(*job.Queue) error, by job.Actor) (*job.Queue, error) {
	q, err := r.EditQueue(name)
	if err != nil {
		return nil, err
	}
	old := *q
	if err := edit(q); err != nil {
		return nil, err
	}
	q.Name = name
	if err := cmp.Or(q.Protection.Check(), rule.ChangeQueue(&old, q, int(r.tx.Depth(name).Members()))); err != nil {
		return nil, err
	}
	r.SeeQueue(name)
	r.woken[name] = true
	r.tx.Durable()
	if err := r.tx.Set(q); err != nil {
		return nil, err
	}
	if err := r.e.parts.settings(r, q); err != nil {
		return nil, err
	}
	return q, r.AuditQueue(by, &old, q)
}

// HoldGroup keeps a whole group out of line until a date.
func (e *Engine) HoldGroup(ctx context.Context, queue, group string, until job.Millis) error {
	return e.Do(ctx, 0, func(r *Tx) error {
		g, err := r.Gate(queue, group)
		if err != nil {
			return err
		}
		r.tx.Durable()
		r.woken[queue] = true // who is emptied for a member of it goes on
		return r.tx.Set(rule.HoldGate(g, until))
	})
}

// Stats returns counters since the start.
func (e *Engine) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	if err := e.Do(ctx, 0, func(r *Tx) error { s = r.c.stats; return nil }); err != nil {
		return Stats{}, err // s may still be written to
	}
	return s, nil
}
