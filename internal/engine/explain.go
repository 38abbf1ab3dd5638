package engine

import (
	"context"
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
		out = Explanation{}
		s, err := r.situation(j, &out)
		if err != nil {
			return err
		}
		out.Job, out.Policy, out.Reasons = j, rule.EffectivePolicy(j, s.Queue, e.rules()), rule.Explain(s)
		if w, ok := rule.ExplainRetry(j, &out.Policy); ok {
			out.Retry = &w
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

// situation looks at everything that may keep a job from running. Parts tell more in
// out.
func (r *Tx) situation(j *job.Job, out *Explanation) (rule.Situation, error) {
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
	if err := r.e.parts.explain(r, &s, out); err != nil {
		return s, err
	}
	return s, r.crew(&s)
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

// crew counts who could run a job.
func (r *Tx) crew(s *rule.Situation) error {
	if counted, err := r.e.parts.crew(r, s); counted || err != nil {
		return err
	}
	r.workers(s)
	return nil
}

// workers counts who could run a job that no part counts for.
func (r *Tx) workers(s *rule.Situation) {
	class := rule.EntriesOf(s.Job).Class
	for _, h := range slices.Concat(slices.Collect(r.c.hungry.all()), inOrder(r.joined), r.asking) {
		if h.gone || r.left[h] || !h.worksFor(s.Job.Queue) {
			continue
		}
		s.Workers++
		if !rule.Fits(class, s.Job.Requires, rule.Seeker{Holder: h.Name, Properties: h.Opts.Properties}) {
			continue
		}
		s.Fitting++
		busy := rule.Seeker{Holder: h.Name, Held: h.held + r.held[h], HasAlone: h.alone+r.alone[h] > 0, Properties: h.Opts.Properties}
		if r.RoomFor(h) > 0 && rule.Fits(class, s.Job.Requires, busy) {
			s.Free++
		}
	}
}

// worksFor reports whether the holder is a worker of a queue.
func (h *Holder) worksFor(queue string) bool {
	if len(h.Opts.Queues) == 0 {
		return h.Feeder == nil
	}
	return slices.Contains(h.Opts.Queues, queue)
}
