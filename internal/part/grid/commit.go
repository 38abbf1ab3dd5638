package grid

import (
	"context"
	"fmt"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// TryCommit asks for the word that the effects of a run of a task count, before
// they are made: exactly one of its live runs gets it, as often as it asks. The
// others are superseded and told. yes is on disk when TryCommit returns. When the
// run that has it ends without a result, the next one may ask. A token that is not
// live gets no; the state is that of the task now.
func (g *Grid) TryCommit(ctx context.Context, session string, id job.ID, token job.Token) (yes bool, now job.State, err error) {
	err = g.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		j, err := tx.Store().Get(id)
		if err != nil {
			return err
		}
		if j == nil || j.Queue != session || j.Door != job.DoorGrid {
			return &job.Error{Kind: job.NotFound, Field: "task", Text: fmt.Sprintf("session %s has no task %s", session, id)}
		}
		eff, err := tx.Step(j, rule.Command{Verb: rule.Extend, Token: token, Commit: true})
		switch {
		case err == nil:
			yes, now = true, eff.Job.State
			tx.Store().Durable()
			return nil
		case job.KindOf(err) == job.Superseded:
			yes, now = false, j.State
			return nil
		}
		return err
	})
	if err != nil { // what was found may not be so
		return false, job.None, err
	}
	return yes, now, nil
}
