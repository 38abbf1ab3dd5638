package query

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Explanation is why a job does not run.
type Explanation struct {
	engine.Remarks

	Job     *job.Job
	Policy  rule.Effective      // the retry policy that holds for it now
	Reasons []rule.Reason       // none if it runs or is finished
	Retry   *rule.RetryWait     // how its wait came about; nil if it does not wait for a retry
	Overrun *rule.OverrunWindow // when it is seen that a run of the task takes too long; nil if it never does, or the job is no open task
	Cancel  *job.Failure        // who cancelled it, and when; nil = nobody did
}

// Explain tells why a job does not run, or NotFound.
func (r Reads) Explain(ctx context.Context, id job.ID) (Explanation, error) {
	out, err := engine.Ask(ctx, r.engine, func(tx *engine.Tx) (out Explanation, err error) {
		if out.Job, err = engine.JobOf(tx.Store(), id); err != nil {
			return out, err
		}
		s, told, err := tx.Situation(out.Job)
		if err != nil {
			return out, err
		}
		out.Remarks, out.Policy, out.Reasons = told, rule.EffectivePolicy(out.Job, s.Queue, tx.Rules()), rule.Explain(s)
		if w, ok := rule.ExplainRetry(out.Job, &out.Policy); ok {
			out.Retry = &w
		}
		if w, ok := rule.OverrunOf(s.Queue, out.Job, &out.Policy.Retry); ok {
			out.Overrun = &w
		}
		return out, nil
	})
	if err != nil || out.Job.State != job.Dead || out.Job.Reason != job.ReasonCancelled {
		return out, err
	}
	list, err := r.Failures(ctx, id, 0, true, 1)
	if err != nil {
		return Explanation{}, err
	}
	if len(list) > 0 {
		out.Cancel = &list[0]
	}
	return out, nil
}
