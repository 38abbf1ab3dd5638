package desk

import (
	"cmp"
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// SetQueue changes the settings of a queue; they hold from then on, for
// waiting jobs too. A queue that has neither jobs nor settings yet counts
// against max_queues like one that a job makes: OverLimit. edit may run twice.
func (d *Desk) SetQueue(ctx context.Context, name string, edit func(*job.Queue) error, by job.Actor) (*job.Queue, error) {
	return engine.Ask(ctx, d.engine, func(tx *engine.Tx) (*job.Queue, error) { return setQueue(tx, name, edit, by) })
}

// ChangeQueue is SetQueue for whoever knows nothing of inboxes: what an inbox says of
// its queue stays.
func (d *Desk) ChangeQueue(ctx context.Context, name string, edit func(*job.Queue) error, by job.Actor) (*job.Queue, error) {
	return d.SetQueue(ctx, name, func(q *job.Queue) error {
		old := *q
		if err := edit(q); err != nil {
			return err
		}
		return rule.KeepsInbox(&old, q)
	}, by)
}

func setQueue(tx *engine.Tx, name string, edit func(*job.Queue) error, by job.Actor) (*job.Queue, error) {
	q, err := tx.EditQueue(name)
	if err != nil {
		return nil, err
	}
	old := *q
	if err := edit(q); err != nil {
		return nil, err
	}
	q.Name = name
	if err := cmp.Or(q.Protection.Check(), rule.ChangeQueue(&old, q, int(tx.Store().Depth(name).Members()))); err != nil {
		return nil, err
	}
	if err := tx.SetQueue(q); err != nil {
		return nil, err
	}
	return q, tx.AuditQueue(by, &old, q)
}

// PauseGroup takes a whole group out of line, whoever arrives, until it is resumed.
func (d *Desk) PauseGroup(ctx context.Context, by job.Actor, queue, group string, paused bool) error {
	return d.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		g, err := tx.Gate(queue, group)
		if err != nil || g.Paused == paused {
			return err
		}
		changed := *g
		changed.Paused = paused
		tx.Store().Durable()
		tx.Wake(queue)
		if err := tx.SetGate(&changed); err != nil {
			return err
		}
		verb := map[bool]Verb{true: Pause, false: Resume}[paused]
		if err := tx.Audit(by, verb.name, engine.SubjectOf(queue, group), 0); err != nil {
			return err
		}
		return tx.SweepGate(queue, group)
	})
}
