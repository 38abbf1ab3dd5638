package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// SessionShare is a session's part of the slots.
type SessionShare struct {
	Queue  string
	Target int // slots it should have
	Actual int // that it has
}

// Explanation is why a job does not run.
type Explanation struct {
	Job     *job.Job
	Policy  rule.Effective  // the retry policy that holds for it now
	Reasons []rule.Reason   // none if it runs or is finished
	Retry   *rule.RetryWait // how its wait came about; nil if it does not wait for a retry
	Cancel  *job.Failure    // who cancelled it, and when; nil = nobody did
	Share   *SessionShare   // of the session of a task that is in line; nil = it is none
	Avoids  []string        // hosts on which the task failed, and does not run next if another one is free then
}

// membersMax bounds the members of a group that an explanation looks at.
const membersMax = 1000

// Explain tells why a job does not run, or NotFound.
func (e *Engine) Explain(ctx context.Context, id job.ID) (Explanation, error) {
	var out Explanation
	err := e.Do(ctx, 0, func(r *Tx) error {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if !Visible(r.tx, j) {
			return NoJob(id)
		}
		s, err := r.situation(j)
		if err != nil {
			return err
		}
		out = Explanation{Job: j, Policy: rule.EffectivePolicy(j, s.Queue, e.rules()), Reasons: rule.Explain(s)}
		if w, ok := rule.ExplainRetry(j, &out.Policy); ok {
			out.Retry = &w
		}
		if s.Queue.Grid != nil && j.State == job.Ready && j.Park == "" {
			out.Share = &SessionShare{Queue: j.Queue, Target: r.shareOf(j.Queue), Actual: s.Running}
		}
		if g := s.Queue.Grid; g != nil && g.RetryElsewhere && j.State.Open() && j.Attempts > 0 {
			out.Avoids = rule.FailedOn(j)
		}
		return nil
	})
	if err != nil { // out may still be written to
		return Explanation{}, err
	}
	if out.Job.State == job.Dead && out.Job.Reason == job.ReasonCancelled {
		list, err := e.Failures(ctx, id, 0, true, 1)
		if err != nil {
			return Explanation{}, err
		}
		if len(list) > 0 {
			out.Cancel = &list[0]
		}
	}
	return out, nil
}

// situation looks at everything that may keep a job from running.
func (r *Tx) situation(j *job.Job) (rule.Situation, error) {
	s, err := situationOf(r.tx, j)
	if err == nil {
		err = r.allowances(&s)
	}
	if err == nil && s.Gate != nil {
		err = r.inFront(&s)
	}
	if err != nil {
		return s, err
	}
	s.InFlight, s.InFlightMax = r.c.leases+r.leases, r.e.opts.InFlightMax
	if j.Affinity() != nil {
		if err := r.tagSituation(&s); err != nil {
			return s, err
		}
	}
	if j.State == job.Leased && s.Queue.Grid != nil {
		if err := r.copySituation(&s); err != nil {
			return s, err
		}
	}
	if id, needs := rule.NeededBy(j.Park); needs {
		if s.Needed, err = r.tx.Get(id); err != nil {
			return s, err
		}
	}
	if s.Queue.Grid != nil {
		return s, r.engines(&s)
	}
	r.workers(&s)
	return s, nil
}

// inFront finds out who stands in front of a job in its group.
func (r *Tx) inFront(s *rule.Situation) error {
	n := 1
	if s.Blocker != nil {
		n = membersMax
	}
	ids, err := r.tx.Members(s.Job.Queue, s.Job.Group, n)
	if err != nil {
		return err
	}
	for i, id := range ids {
		m, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if i == 0 {
			s.Head = m
		}
		if m.Blocks {
			s.Blocker = m
			break
		}
	}
	return nil
}

// workers counts who could run a job that is no task.
func (r *Tx) workers(s *rule.Situation) {
	class := rule.EntriesOf(s.Job).Class
	for _, h := range slices.Concat(slices.Collect(r.c.hungry.all()), inOrder(r.joined), r.asking) {
		if h.gone || r.left[h] || h.machine || len(h.opts.Queues) > 0 && !slices.Contains(h.opts.Queues, s.Job.Queue) {
			continue
		}
		s.Workers++
		if !rule.Fits(class, s.Job.Requires, rule.Seeker{Holder: h.name, Properties: h.opts.Properties}) {
			continue
		}
		s.Fitting++
		busy := rule.Seeker{Holder: h.name, Held: h.held + r.held[h], HasAlone: h.alone+r.alone[h] > 0, Properties: h.opts.Properties}
		if r.roomFor(h) > 0 && rule.Fits(class, s.Job.Requires, busy) {
			s.Free++
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
