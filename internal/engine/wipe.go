package engine

import (
	"context"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Wipe removes the rows beside jobs that a reset removes: those that parts keep until all
// jobs are gone, if last.
func (e *Engine) Wipe(ctx context.Context, last bool) error {
	for _, h := range append(slices.Clip(e.parts), Hooks{Wipe: WipeTable(job.Receipts)}) {
		wipe := h.Wipe
		if last {
			wipe = h.WipeLast
		}
		for left := wipe != nil; left; {
			err := e.Do(ctx, 0, func(r *Tx) (err error) {
				r.tx.Durable()
				left, err = wipe(r, TickMax)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// WipeTable is a Wipe of all rows of a table.
func WipeTable(t job.Table) func(*Tx, int) (bool, error) {
	return func(tx *Tx, n int) (left bool, err error) {
		rows, err := tx.tx.Rows(t, "", n)
		for _, row := range rows {
			if err := tx.tx.Unset(t, row.Key()); err != nil {
				return false, err
			}
		}
		return len(rows) == n, err
	}
}

// Remove removes a job in any state; a running one is cancelled first, so a
// later settle of its holder finds nothing.
func (r *Tx) Remove(j *job.Job) error {
	if j.State.Open() {
		eff, err := r.Step(j, rule.Command{Verb: rule.Cancel})
		if err != nil {
			return err
		}
		j = eff.Job
	}
	r.tx.Durable()
	if j == nil { // without retention the cancelled job is gone already
		return nil
	}
	_, err := r.Step(j, rule.Command{Verb: rule.Purge})
	return err
}
