package model

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// timeout is the failure that the clock settles a run with that took too long.
var timeout = engine.Settle{Outcome: job.Retried}

// nextTime is when the clock has to do something, 0 = never.
func (m *model) nextTime() (soonest job.Millis) {
	at := func(t job.Millis) {
		if t > 0 && (soonest == 0 || t < soonest) {
			soonest = t
		}
	}
	for _, j := range m.jobs {
		switch j.State {
		case job.Scheduled:
			at(j.ReadyAt)
			at(j.ExpiresAt)
		case job.Ready:
			at(j.ExpiresAt)
		case job.Done, job.Dead:
			at(j.PurgeAt)
		default:
		}
		for _, l := range j.Leases {
			at(l.Until)
			at(l.RunEnd)
			at(l.StartBy)
		}
	}
	for _, q := range m.queues {
		at(q.HoldUntil)
	}
	for _, g := range m.groups {
		at(g.Hold)
	}
	for _, t := range m.away {
		at(t)
	}
	for _, r := range m.receipts {
		at(r.expires)
	}
	return soonest
}

func (m *model) over(t job.Millis) bool { return t > 0 && t <= m.now }

// tick does what is due: first holds, holders and receipts, then the clock's
// hands over jobs: due, timeouts, expire, purge.
func (m *model) tick() {
	for _, q := range m.queues {
		if m.over(q.HoldUntil) {
			q.HoldUntil = 0
		}
	}
	for _, g := range m.groups {
		if m.over(g.Hold) {
			g.Hold = 0
		}
	}
	for holder, t := range m.away {
		if m.over(t) {
			m.vanish(holder, job.ByLapse)
			delete(m.away, holder)
		}
	}
	for key, r := range m.receipts {
		if m.over(r.expires) {
			delete(m.receipts, key)
		}
	}
	for _, j := range m.sorted(func(j *job.Job) bool { return j.State == job.Scheduled && j.ReadyAt <= m.now }) {
		j.State = job.Ready
	}
	m.timeOuts()
	expired := m.sorted(func(j *job.Job) bool {
		return (j.State == job.Ready || j.State == job.Scheduled) && m.over(j.ExpiresAt)
	})
	slices.SortStableFunc(expired, func(a, b *job.Job) int { return cmp.Compare(a.ExpiresAt, b.ExpiresAt) }) // the last one parks its group
	for _, j := range expired {
		m.die(j, job.Expired)
		m.stats.Expired++
	}
	for _, j := range m.sorted(func(j *job.Job) bool { return j.State.Terminal() && m.over(j.PurgeAt) }) {
		if j.State == job.Dead {
			m.stats.Purged++
		}
		m.remove(j)
	}
	m.forget()
}

// timeOut ends the leases of a job whose own time is over: a run that took too
// long has failed, one that did not start in time is given back, and the
// holder of one that was not extended has vanished. Each of several that end
// together counts; what becomes of the job is decided once, by a failure if
// there was one.
func (m *model) timeOut(j *job.Job) {
	failed, lost, returned := false, false, false
	for _, l := range slices.Clone(j.Leases) {
		switch {
		case m.over(l.RunEnd):
			failed = true
			m.end(j, l, job.ByTimeout)
			m.charge(j)
		case m.over(l.StartBy):
			returned = true
			m.end(j, l, job.ByRelease)
			j.Evictions++
		case m.over(l.Until):
			lost = true
			m.end(j, l, job.ByLapse)
			m.lose(j, l)
		default:
			continue
		}
		m.stats.Lapsed++
	}
	switch {
	case failed:
		m.decide(j, timeout)
	case lost:
		m.giveUp(j)
	case returned:
		m.giveBack(j, job.PlaceKeep, 0)
	}
	m.cut(j)
}

// vanish ends the leases of a holder that is gone. Only our own restarts are
// not counted as a loss.
func (m *model) vanish(holder string, how job.Ending) {
	for _, j := range m.sorted(func(j *job.Job) bool { return j.HeldBy(holder) }) {
		if !j.HeldBy(holder) { // its turn was cut by one before it
			continue
		}
		l := j.Leases[slices.IndexFunc(j.Leases, func(l job.Lease) bool { return l.Holder == holder })]
		m.end(j, l, how)
		m.stats.Lapsed++
		if how == job.ByRestart {
			m.giveBack(j, job.PlaceKeep, 0)
			m.cut(j)
			continue
		}
		m.lose(j, l)
		m.giveUp(j)
		m.cut(j)
	}
}

// lose counts a holder that vanished with a job. From half of the limit on
// only those count that had the job alone, and each leaves a record.
func (m *model) lose(j *job.Job, l job.Lease) {
	if j.Isolated && !l.Exclusive || m.follows(j) {
		return
	}
	j.Losses++
	if j.Isolated = 2*j.Losses >= j.Retry.LossLimitValue(); j.Isolated {
		j.Failures++
	}
}

// giveUp ends a job that was lost too often, and returns any other.
func (m *model) giveUp(j *job.Job) {
	if len(j.Leases) > 0 || j.Losses < j.Retry.LossLimitValue() {
		m.giveBack(j, job.PlaceKeep, 0)
		return
	}
	m.die(j, job.Lost)
	m.stats.Died++
}

// restart stops the server and starts it again after a while, in which nothing
// happens. Who holds leases by token gets the re-attach window from then.
func (m *model) restart(away job.Millis) {
	for queue := range m.streams {
		m.leave(queue, job.ByRestart)
	}
	m.tick()
	m.now += away
	m.start++
	m.stats, m.folded = engine.Stats{}, 0
	m.vanish(localHolder, job.ByRestart)
	for holder := range m.away {
		m.away[holder] = m.now + reattach
	}
	for _, j := range m.jobs {
		j.Leases = slices.Clone(j.Leases)
		for i := range j.Leases {
			l := &j.Leases[i]
			l.Until = m.goesOn(l.Until, 0)
			l.RunEnd = m.goesOn(l.RunEnd, m.runTimeout(j))
			l.StartBy = m.goesOn(l.StartBy, j.StartTimeout)
		}
	}
}

// goesOn is when a lease ends that was carried over a restart: its holder could
// not be heard meanwhile and gets the re-attach window, but a timeout is never
// longer than the whole of it (docs/adr/0003). 0 = a lease without this end, a
// timeout without a length.
func (m *model) goesOn(end, whole job.Millis) job.Millis {
	if end == 0 {
		return 0
	}
	end = max(end, m.now+reattach)
	if whole > 0 {
		end = min(end, m.now+whole)
	}
	return end
}
