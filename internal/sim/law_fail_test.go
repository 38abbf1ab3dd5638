package sim_test

import (
	"regexp"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// said are the policies that speak about a job, the most specific first.
func (s *scene) said(j *job.Job) (list []job.Retry) {
	server := &s.w.setup.server
	for _, r := range []*job.Retry{j.Retry, server.Types[j.Type], &s.q.Retry, server.Doors[j.Door], &server.Retry} {
		if r != nil {
			list = append(list, *r)
		}
	}
	return list
}

func (s *scene) policy(j *job.Job) (p job.Retry) {
	for _, r := range slices.Backward(s.said(j)) {
		p = r.Over(p)
	}
	return p
}

// ruleFor is the first rule that matches (core.md 6, point 3), and its number
// from 1; nil if none does.
func ruleFor(p job.Retry, f *job.Failure) (*job.Rule, uint8) {
	if p.Rules == nil {
		return nil, 0
	}
	for i, r := range *p.Rules {
		within := func(list []job.Range, n int) bool {
			in := len(list) == 0
			for _, x := range list {
				in = in || int(x.Lo) <= n && n <= int(x.Hi)
			}
			return in
		}
		w := r.When
		byType := len(w.ErrorTypes) == 0 || slices.Contains(w.ErrorTypes, f.Type)
		byMessage := w.Message == "" || regexp.MustCompile(w.Message).MatchString(f.Message)
		byTime := w.Timeout == job.Unsaid || (w.Timeout == job.Yes) == f.Timeout
		if byType && byMessage && byTime && within(w.Status, f.Status) && within(w.ExitCode, f.ExitCode) {
			return &r, uint8(i + 1)
		}
	}
	return nil, 0
}

// failed is core.md 6 for an attempt that failed, charged n times (more than
// once only for copies that ran out of time together).
func (s *scene) failed(o *outcome, j *job.Job, r *engine.Settle, n uint32) []*outcome {
	j.FailedAt = s.now
	p, grace, does := s.policy(j), s.now < j.GraceUntil, job.DoRetry
	do := &job.Rule{}
	number := uint8(0)
	if found, at := ruleFor(p, &r.Failure); found != nil && !grace {
		do, does, number = found, found.Do, at
		o.note("a rule: " + does.String())
	}
	switch {
	case grace:
		j.Suppressed += n
		o.note("suppressed")
	case does == job.DoRelease:
		j.Releases += n
		j.Evictions += n
		s.recorded(j, n, &r.Failure)
	default:
		j.Attempts += n
		if j.FailedBesideCopy, j.Wait = len(j.Leases) > 0, (job.Wait{}); j.FailedBesideCopy && do.Limit.IsSet() {
			j.Wait.Rule = number
		}
		s.recorded(j, n, &r.Failure)
	}
	after, span := max(r.RetryAfter, r.NotBefore-s.now, 0), r.Hold
	if span > 0 {
		o.note("a worker's hold: retry")
	}
	switch {
	case do.IgnoreRetryAfter && after > 0:
		after = 0
		o.note("Retry-After not heard")
	case after > 0:
		o.note("Retry-After")
	}
	if does == job.DoHold {
		span = max(span, do.Delay)
	}
	free := s.q.HoldUntil
	if j.Group != "" {
		free = max(free, s.g.Hold)
	}
	was := free
	free = max(free, s.hold(o, j, max(span, after)))
	held := free
	if after > 0 {
		free = max(free, s.now+after)
	}
	// chose is retry.md 5: who chose the date, by which rule.
	chose := func(by job.WaitBy, due job.Millis) job.Wait {
		if after > 0 && s.now+after > due {
			by, due = job.WaitTarget, s.now+after
		}
		jitter := by == job.WaitTarget && after >= span && held > was // of the hold that the target asked for
		if held > due && !jitter {
			by = job.WaitHold
		}
		return job.Wait{By: by, Rule: number}
	}
	if len(j.Leases) > 0 {
		j.CopiesWanted = uint8(len(j.Leases))
		o.want, o.state = j, job.Leased
		o.note("another copy lives")
		return []*outcome{o}
	}
	j.CopiesWanted = j.Copies
	at := r.RetryAt
	if r.RetryIn > 0 {
		at = s.now + r.RetryIn
	}
	tooOld := func(due job.Millis) bool { return p.MaxAge > 0 && due-max(j.Created, j.RevivedAt) > p.MaxAge }
	switch due := max(free, s.now+do.Delay); {
	case j.ExpiresAt > 0 && s.now >= j.ExpiresAt:
		o.note("failed after its expiry")
		return []*outcome{s.dead(o, j, job.Expired, false)}
	case grace:
		after := s.now + s.graceDelay()
		j.Wait = chose(job.WaitGrace, after)
		return []*outcome{s.again(o, j, r, p, max(free, after), at > 0)}
	case does == job.DoDead:
		return []*outcome{s.dead(o, j, job.Killed, false)}
	case does == job.DoRelease && tooOld(due):
		o.note("too old to be released")
		return []*outcome{s.dead(o, j, job.Exhausted, false)}
	case does == job.DoRelease:
		j.Wait = chose(job.WaitRule, s.now+do.Delay)
		return []*outcome{s.again(o, j, r, p, due, false)}
	}
	if do.Curve != nil {
		p.Curve = do.Curve
	}
	if do.Limit.IsSet() {
		p.Limit = do.Limit
	}
	if at > 0 {
		j.Overrides++
		o.note("the worker's own time")
		j.Wait = chose(job.WaitWorker, at)
		return []*outcome{s.again(o, j, r, p, max(free, at), true)}
	}
	lo, hi := waits(p.Curve, float64(j.Attempts))
	if s.new != nil && lo <= s.new.LastDelay && s.new.LastDelay <= hi { // it tells which was drawn
		lo, hi = s.new.LastDelay, s.new.LastDelay
	}
	var list []*outcome
	for _, d := range []job.Millis{lo, hi} {
		c, k := *o, j.Clone()
		at := s.capped(k, s.now+d)
		k.LastDelay, k.Wait = d, chose(job.WaitCurve, at)
		due := max(free, at)
		limit, bounded := p.LimitValue()
		switch {
		case bounded && int64(k.Attempts) > limit:
			list = append(list, s.dead(&c, k, job.Exhausted, false))
		case tooOld(due):
			c.note("too old")
			list = append(list, s.dead(&c, k, job.Exhausted, false))
		default:
			list = append(list, s.again(&c, k, r, p, due, false))
		}
	}
	return list
}

// hold keeps the group of the job out of line, or its queue (retry.md 4): for
// as long as its target, its worker or a rule asks for, at most an hour, and up
// to a tenth more. What was drawn stands in the row written next.
func (s *scene) hold(o *outcome, j *job.Job, span job.Millis) job.Millis {
	if span == 0 {
		return 0
	}
	span = min(span, job.Hour)
	lo, hi := s.now+span, s.now+min(span+span/10, job.Hour)
	var drawn job.Millis
	if len(s.later) > 0 {
		switch row := s.later[0].row.(type) {
		case *job.Queue:
			drawn = row.HoldUntil
		case *job.Gate:
			drawn = row.Hold
		}
	}
	until := min(max(drawn, lo), hi)
	if j.Group != "" {
		g := s.g
		g.Hold = max(g.Hold, until)
		o.gate = &g
		o.note("a settle held a group")
		return g.Hold
	}
	q := *s.q
	q.HoldUntil = max(q.HoldUntil, until)
	o.queue = &q
	o.note("a settle held a queue")
	return q.HoldUntil
}

// again puts a failed job back.
func (s *scene) again(o *outcome, j *job.Job, r *engine.Settle, p job.Retry, due job.Millis, own bool) *outcome {
	list := s.said(j)
	asked := slices.IndexFunc(list, func(r job.Retry) bool { return r.Place != job.PlaceUnset })
	where := list[asked].Place // the server says one
	switch {
	case r.Place != job.PlaceUnset:
		where = r.Place
	case asked == len(list)-1 && p.Curve.Kind == job.CurveImmediate:
		where = job.PlaceFront
	}
	o.note("a wait by " + j.Wait.By.String())
	s.place(o, j, where)
	j.ReadyAt, j.State = due, job.Scheduled
	if due <= s.now && !own {
		j.State = job.Ready
	}
	s.held(o, j)
	o.want, o.state = j, j.State
	return o
}
