package sim_test

import (
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// answer is what a request must be told.
type answer uint8

const (
	accepted answer = iota
	repeated        // accepted once before: the same answer, nothing written
	refused
)

// settled is what a settle makes of the job as it is, by core.md 4: nothing if
// it is refused with an error of the kind, or was accepted before.
func (s *scene) settled(r *request) (list []*outcome, a answer, kind job.Kind) {
	j, t, o := s.old, r.settle.Token, r.settle.Outcome
	if j == nil {
		return nil, refused, job.NotFound
	}
	if t.IsZero() {
		return s.tokenless(r)
	}
	if i := j.LeaseOf(t); i >= 0 {
		if o == job.OK && s.followsOne() {
			return nil, refused, job.WrongState
		}
		return s.passes(s.settle(r, i)), accepted, 0
	}
	at := slices.IndexFunc(j.Ended, func(e job.Ended) bool { return e.Hash == t.Hash() })
	how := [...]job.Ending{job.OK: job.ByOK, job.Retried: job.ByRetry, job.Died: job.ByDead, job.Released: job.ByRelease}[o]
	known := job.Ended{Hash: t.Hash(), How: job.ByRestart}
	switch {
	case at >= 0 && (j.Ended[at].How == how || j.Ended[at].How == job.ByTurn && o == job.Released):
		return nil, repeated, 0
	case at >= 0:
		known = j.Ended[at]
	case t.Start() >= s.start || j.Order == job.OrderStrict || overForGood(j, t):
		return nil, refused, job.Superseded
	}
	newer := j.Group != "" && j.Order == job.OrderStrict && (s.g.Turn != known.Turn || s.headOf(j) != j.ID)
	if o != job.OK || !j.State.Open() || !forgiven(known.How) || s.q.LateOKNever || newer || j.Committed() {
		return nil, refused, job.Superseded
	}
	return s.passes([]*outcome{s.lateOK(r, known)}), accepted, 0
}

// forgiven reports whether a lease ended so that nobody decided against its run.
func forgiven(how job.Ending) bool {
	return slices.Contains([]job.Ending{job.ByLapse, job.ByDisconnect, job.ByRestart, job.ByTurn, job.ByUndelivered}, how)
}

// tokenless is a settle that names no token.
func (s *scene) tokenless(r *request) ([]*outcome, answer, job.Kind) {
	j, ok := s.old, r.settle.Outcome == job.OK
	switch {
	case !j.State.Open(), j.State != job.Leased && !ok:
		return nil, refused, job.NotFound
	case s.q.Grid != nil, s.q.RequireToken, j.Copies > 1, j.CopiesWanted > 1, j.Order == job.OrderStrict && j.Group != "":
		return nil, refused, job.TokenNeeded
	case len(j.Leases) == 1 && j.Leases[0].Kind == job.Anonymous:
		return s.settle(r, 0), accepted, 0
	case len(j.Leases) == 1:
		return nil, refused, job.TokenNeeded
	}
	if n := len(j.Ended); ok && n > 0 && !s.q.LateOKNever {
		if last := j.Ended[n-1]; last.How == job.ByDisconnect || last.How == job.ByRestart {
			return []*outcome{s.lateOK(r, last)}, accepted, 0
		}
	}
	return nil, refused, job.NotFound
}

// lateOK completes a job for a lease that is over.
func (s *scene) lateOK(r *request, known job.Ended) *outcome {
	o := &outcome{why: r.String(), verb: rule.SettleOK, req: r}
	j := s.old.Clone()
	endRest(j, job.BySupersede)
	j.Ended = slices.DeleteFunc(j.Ended, func(e job.Ended) bool { return e.Hash == known.Hash })
	o.note("late OK after " + known.How.String())
	known.How = job.ByOK
	remember(j, known)
	j.Losses = 0
	s.spare(o, j, &r.settle)
	o.stats.Done, o.stats.LateOK = 1, 1
	return s.made(s.done(o, j), &r.settle)
}

// spare is the hold that a worker asks for (retry.md 4), and the target of a
// job that it gives up.
func (s *scene) spare(o *outcome, j *job.Job, x *engine.Settle) {
	span := x.Hold
	if span > 0 {
		o.note("a worker's hold: " + x.Outcome.String())
	}
	if x.Outcome == job.Died {
		span = max(span, x.RetryAfter, x.NotBefore-s.now)
	}
	s.hold(o, j, span)
}

// settle ends lease i as its holder says.
func (s *scene) settle(r *request, i int) []*outcome {
	x := r.settle
	o := &outcome{why: r.String(), req: r}
	j := s.old.Clone()
	if x.Token.IsZero() {
		o.note("settled without a token")
	}
	if x.Outcome == job.OK || x.Outcome == job.Died {
		for n := len(j.Leases) - 1; n >= 0; n-- {
			if n != i {
				end(j, n, job.BySupersede)
				o.note("superseded")
			}
		}
		i = 0
	}
	j.Losses, j.Isolated = 0, false
	if x.Outcome != job.Retried { // whose rules have a say in it
		s.spare(o, j, &x)
	}
	switch x.Outcome {
	case job.OK:
		o.verb, o.stats.Done = rule.SettleOK, 1
		end(j, i, job.ByOK)
		return []*outcome{s.made(s.done(o, j), &x)}
	case job.Released:
		o.verb, o.stats.Released = rule.SettleRelease, 1
		end(j, i, job.ByRelease)
		j.Evictions++
		return []*outcome{s.back(o, j, x.Place, x.Delay)}
	case job.Died:
		o.verb = rule.SettleDead
		end(j, i, job.ByDead)
		j.Attempts++
		s.recorded(j, 1, &x.Failure)
		j.FailedAt = s.now
		return []*outcome{s.died(s.dead(o, j, job.Killed, false))}
	case job.Retried:
	}
	o.verb, o.stats.Failed = rule.SettleRetry, 1
	end(j, i, job.ByRetry)
	if s.now < j.GraceUntil {
		o.stats.Suppressed = 1
	}
	list := s.failed(o, j, &x, 1)
	for _, o := range list {
		s.died(o)
	}
	return list
}
