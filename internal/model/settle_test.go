package model

import (
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

var endingOf = map[job.Outcome]job.Ending{
	job.OK: job.ByOK, job.Retried: job.ByRetry, job.Died: job.ByDead, job.Released: job.ByRelease,
}

// settle ends an attempt. It returns the state the job is in then, also if it
// left the store with it.
func (m *model) settle(s engine.Settle) (job.State, job.Kind) {
	j := m.jobs[s.ID]
	if j == nil {
		return job.None, job.NotFound
	}
	i, late, why := m.attempt(j, s)
	switch {
	case why != accepted:
		return job.None, why
	case i < 0 && late == nil: // the same answer again
		return j.State, accepted
	case i < 0:
		m.hold(j, s.Hold)
		m.result(j, s)
		m.lateOK(j, *late)
	default:
		turn, moves, outdated := j.Leases[i].Turn, j.Leases[i].Kind != job.Anonymous, m.over(j.ExpiresAt)
		m.settleLive(j, i, s)
		if m.passes(j, s.Outcome); turn != 0 && s.Outcome != job.OK && (s.Outcome != job.Released || !outdated) {
			m.cut(j)
		}
		if turn != 0 && moves && m.queues[j.Queue].Turns {
			m.recall(j.Queue, j.Group)
		}
	}
	return j.State, accepted
}

// attempt finds what a settle speaks of: a live lease, or a late one that may
// still say OK, or neither if it repeats what was settled.
func (m *model) attempt(j *job.Job, s engine.Settle) (live int, late *job.Ended, refused job.Kind) {
	lateOK := s.Outcome == job.OK && j.State.Open() && !m.queues[j.Queue].LateOKNever
	if s.Token.IsZero() {
		return m.attemptOfStream(j, s, lateOK)
	}
	if i := j.LeaseOf(s.Token); i >= 0 {
		if s.Outcome == job.OK && m.follows(j) {
			return -1, nil, job.WrongState
		}
		return i, nil, accepted
	}
	ended := job.Ended{Hash: s.Token.Hash(), How: job.ByRestart}
	known := slices.IndexFunc(j.Ended, func(e job.Ended) bool { return e.Hash == ended.Hash })
	if known >= 0 {
		if ended = j.Ended[known]; ended.How == endingOf[s.Outcome] || ended.How == job.ByTurn && s.Outcome == job.Released {
			return -1, nil, accepted
		}
	}
	forgotten := s.Token.Start() < m.start && j.Order != job.OrderStrict
	forgiven := ended.How == job.ByLapse || ended.How == job.ByDisconnect || ended.How == job.ByRestart || ended.How == job.ByTurn
	newerTurn := j.Order == job.OrderStrict && (m.group(j.Queue, j.Group).Turn != ended.Turn || m.head(j.Queue, j.Group) != j)
	if lateOK && (known >= 0 || forgotten) && forgiven && !newerTurn {
		return -1, &ended, accepted
	}
	return -1, nil, job.Superseded
}

// attemptOfStream is for a settle without a token, which may speak only for
// the one lease of an anonymous stream.
func (m *model) attemptOfStream(j *job.Job, s engine.Settle, lateOK bool) (live int, late *job.Ended, refused job.Kind) {
	tokens := m.queues[j.Queue].RequireToken || j.Copies > 1 || j.CopiesWanted > 1 || j.Order == job.OrderStrict
	last := len(j.Ended) - 1
	switch {
	case !j.State.Open(), j.State != job.Leased && s.Outcome != job.OK:
		return -1, nil, job.NotFound
	case tokens, len(j.Leases) == 1 && j.Leases[0].Kind != job.Anonymous:
		return -1, nil, job.TokenNeeded
	case len(j.Leases) == 1:
		return 0, nil, accepted
	case lateOK && last >= 0 && (j.Ended[last].How == job.ByDisconnect || j.Ended[last].How == job.ByRestart):
		return -1, &j.Ended[last], accepted
	}
	return -1, nil, job.NotFound
}

// lateOK completes a job for a lease that ended without a word.
func (m *model) lateOK(j *job.Job, ended job.Ended) {
	m.endAll(j, job.BySupersede)
	j.Ended = slices.DeleteFunc(slices.Clone(j.Ended), func(e job.Ended) bool { return e.Hash == ended.Hash })
	ended.How = job.ByOK
	m.remember(j, ended)
	m.stats.LateOK++
	m.complete(j)
	m.passes(j, job.OK)
}

func (m *model) settleLive(j *job.Job, i int, s engine.Settle) {
	own := j.Leases[i]
	if s.Outcome == job.OK || s.Outcome == job.Died { // decides for all copies
		j.Leases = slices.Delete(slices.Clone(j.Leases), i, i+1)
		slices.Reverse(j.Leases)
		m.endAll(j, job.BySupersede)
		j.Leases = []job.Lease{own}
	}
	m.end(j, own, endingOf[s.Outcome])
	j.Losses, j.Isolated = 0, false
	switch s.Outcome {
	case job.OK:
		m.hold(j, s.Hold)
		m.result(j, s)
		m.complete(j)
	case job.Released:
		m.hold(j, s.Hold)
		j.Evictions++
		m.stats.Released++
		m.giveBack(j, s.Place, s.Delay)
	case job.Died:
		j.Attempts++
		j.Failures++
		j.FailedAt = m.now
		m.hold(j, max(s.RetryAfter, s.Hold))
		m.die(j, job.Killed)
		m.stats.Died++
	case job.Retried:
		m.stats.Failed++
		m.charge(j)
		m.hold(j, max(s.RetryAfter, s.Hold))
		m.decide(j, s)
	}
}

func (m *model) complete(j *job.Job) {
	j.State, j.Losses, j.CompletedAt, j.Park = job.Done, 0, m.now, ""
	m.finished(j)
	m.stats.Done++
	m.keep(j, j.RetainDone, m.queues[j.Queue].RetainDone, 0)
}

// giveBack returns a job without blame, unless a copy of it still runs.
func (m *model) giveBack(j *job.Job, p job.Place, after job.Millis) {
	if len(j.Leases) > 0 {
		return
	}
	if j.CopiesWanted = j.Copies; m.failedBeside(j) {
		m.die(j, job.Exhausted)
		m.stats.Died++
		return
	}
	if after > 0 {
		j.ReadyAt = m.now + after
	}
	m.wait(j) // for that, or for what a patch asked for while it ran
	m.returns(j)
	m.place(j, p)
}

// failedBeside is core.md 5: of a job that is past its limit since a copy failed the
// last live one decides.
func (m *model) failedBeside(j *job.Job) bool {
	limit, _ := j.Retry.LimitValue()
	return j.FailedBesideCopy && int64(j.Attempts) > limit && j.Overrides == 0
}

// wait puts a job in line, now or when it is due.
func (m *model) wait(j *job.Job) {
	if j.State = job.Ready; j.ReadyAt > m.now {
		j.State = job.Scheduled
	}
}

// hold keeps the group of a job, or its queue, out of line for a span and up to
// a tenth more, at most for an hour. What the engine drew is believed if it is
// lawful.
func (m *model) hold(j *job.Job, span job.Millis) {
	if span == 0 {
		return
	}
	held := &m.queues[j.Queue].HoldUntil
	if j.Group != "" {
		held = &m.group(j.Queue, j.Group).Hold
	}
	until := m.now + min(span, job.Hour)
	if end := m.drawn(j.Queue, j.Group); end > until && end <= m.now+min(span+span/10, job.Hour) {
		until = end
	}
	*held = max(*held, until)
}

func (m *model) grace(j *job.Job) bool { return m.now < j.GraceUntil }

// charge counts a failure, unless the job is in its time of grace.
func (m *model) charge(j *job.Job) {
	j.FailedAt = m.now
	if m.grace(j) {
		j.Suppressed++
		m.stats.Suppressed++
		return
	}
	j.Attempts++
	j.Failures++
	j.FailedBesideCopy = len(j.Leases) > 0
}

// decide is what a failure leads to, in the order of section 6.
func (m *model) decide(j *job.Job, s engine.Settle) {
	if len(j.Leases) > 0 { // the end of the last copy decides
		j.CopiesWanted = uint8(len(j.Leases))
		return
	}
	j.CopiesWanted = j.Copies
	if j.ExpiresAt > 0 && j.ExpiresAt <= m.now {
		m.die(j, job.Expired)
		m.stats.Died++
		return
	}
	var due job.Millis
	grace, own := m.grace(j), s.RetryAt > 0 || s.RetryIn > 0
	switch {
	case grace:
		due = m.now + m.graceDelay(j)
	case s.RetryIn > 0:
		due = m.now + s.RetryIn
	case s.RetryAt > 0:
		due = s.RetryAt
	default:
		due = m.now + curve(j)
		if most := m.queues[j.Queue].AgeCap; most > 0 {
			due = min(due, max(max(j.Created, j.RevivedAt)+most, m.now+m.graceDelay(j)))
		}
	}
	if s.RetryAfter > 0 {
		due = max(due, m.now+s.RetryAfter)
	}
	if j.Group != "" { // not while its line is held
		due = max(due, m.group(j.Queue, j.Group).Hold)
	}
	due = max(due, m.queues[j.Queue].HoldUntil)
	limit, _ := j.Retry.LimitValue()
	switch tooOld := j.Retry.MaxAge > 0 && due-max(j.Created, j.RevivedAt) > j.Retry.MaxAge; {
	case grace:
	case own:
		j.Overrides++
	case int64(j.Attempts) > limit || tooOld:
		m.die(j, job.Exhausted)
		m.stats.Died++
		return
	}
	where := s.Place
	if where == job.PlaceUnset {
		where = j.Retry.Place
	}
	if where == job.PlaceUnset && j.Retry.Curve.Kind == job.CurveImmediate {
		where = job.PlaceFront
	}
	m.place(j, where)
	j.State, j.ReadyAt = job.Scheduled, due
	if due <= m.now && !own {
		j.State = job.Ready
	}
	m.returns(j)
}

// curve is the wait by the histories' policies: immediate, or linear.
func curve(j *job.Job) job.Millis {
	if j.Retry.Curve.Kind == job.CurveImmediate {
		return 0
	}
	return j.Retry.Curve.Base + j.Retry.Curve.Step*job.Millis(j.Attempts-1)
}

// die ends a job whose death its group may have to wait for. The head, who has
// the turn of a strict group or would be next, parks it if the queue says so.
func (m *model) die(j *job.Job, why job.Reason) {
	onDead, turns := m.queues[j.Queue].OnDead, m.queues[j.Queue].Turns
	if j.Group == "" || onDead == job.DeadSkip || turns && m.over(j.ExpiresAt) {
		m.bury(j, why)
		return
	}
	behind := (turns || j.Order == job.OrderStrict) && m.head(j.Queue, j.Group) != j
	if j.Order == job.OrderStrict && j.State == job.Leased {
		behind = m.follows(j)
	}
	if turns {
		j.PurgeAt = j.ExpiresAt
	}
	if onDead == job.DeadPark && !behind {
		m.group(j.Queue, j.Group).Park = j.ID.String()
	}
	j.State, j.Reason, j.BlocksGroup, j.DiedAt, j.Park = job.Dead, why, true, m.now, ""
	m.finished(j)
}

func (m *model) bury(j *job.Job, why job.Reason) {
	j.State, j.Reason, j.DiedAt, j.Park = job.Dead, why, m.now, ""
	m.finished(j)
	m.keep(j, j.RetainDead, m.queues[j.Queue].RetainDead, retainDead)
}

// keep says how long a finished job stays: as it, its queue or the server says.
func (m *model) keep(j *job.Job, spans ...job.Millis) {
	span := spans[slices.IndexFunc(spans, func(s job.Millis) bool { return s != job.Unset })]
	if j.PurgeAt = m.now + span; span == 0 {
		m.remove(j)
	}
}

func (m *model) endAll(j *job.Job, how job.Ending) {
	for len(j.Leases) > 0 {
		m.end(j, j.Leases[0], how)
	}
}

func (m *model) end(j *job.Job, l job.Lease, how job.Ending) {
	j.Leases = slices.DeleteFunc(slices.Clone(j.Leases), func(o job.Lease) bool { return o.Token == l.Token })
	m.remember(j, job.Ended{Hash: l.Token.Hash(), How: how, Turn: l.Turn})
}

// remember keeps the last four tokens that ended.
func (m *model) remember(j *job.Job, e job.Ended) {
	j.Ended = append(slices.Clone(j.Ended), e)
	j.Ended = j.Ended[max(0, len(j.Ended)-4):]
}
