package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// CancelAll gives up every job that the search chooses, see Cancel and
// DeleteAll. Refused are those that are finished and hold nobody up.
func (e *Engine) CancelAll(ctx context.Context, s Search, why string) (cancelled, refused int64, err error) {
	return e.bulk(ctx, s, func(r *run, j *job.Job) error {
		_, err := r.step(j, rule.Command{Verb: rule.Cancel, Failure: job.Failure{Type: "Cancelled", Message: why}})
		return err
	})
}
