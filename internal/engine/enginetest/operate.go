package enginetest

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Operate applies a command to a job, whatever operators can do.
func Operate(ctx context.Context, e *engine.Engine, id job.ID, c rule.Command) (engine.Verdict, error) {
	return engine.Ask(ctx, e, func(tx *engine.Tx) (engine.Verdict, error) {
		j, err := tx.Store().Get(id)
		if err != nil {
			return engine.Verdict{}, err
		}
		if j == nil {
			return engine.Verdict{}, engine.NoJob(id)
		}
		eff, err := tx.Step(j, c)
		if err != nil {
			return engine.Verdict{}, err
		}
		tx.Store().Durable()
		return engine.VerdictOf(eff, nil)
	})
}

// HoldGroup keeps a whole group out of line until a date, to the millisecond.
func HoldGroup(ctx context.Context, e *engine.Engine, queue, group string, until job.Millis) error {
	return e.Do(ctx, 0, func(tx *engine.Tx) error {
		g, err := tx.Gate(queue, group)
		if err != nil {
			return err
		}
		tx.Store().Durable()
		tx.Wake(queue)
		return tx.Store().Set(rule.HoldGate(g, until))
	})
}

// Page lists up to n jobs with their payloads.
func Page(ctx context.Context, e *engine.Engine, f store.Filter, n int) ([]query.Listed, error) {
	list, err := query.Of(e).List(ctx, f, n)
	if err == nil {
		err = query.Of(e).Payloads(ctx, list)
	}
	return list, err
}

// Stats returns counters since the start.
func Stats(ctx context.Context, e interface {
	Do(ctx context.Context, bytes int, f func(*engine.Tx) error) error
	Figures() engine.Figures
},
) (engine.Stats, error) {
	err := e.Do(ctx, 0, func(*engine.Tx) error { return nil })
	return e.Figures().Stats, err
}
