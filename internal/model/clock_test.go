package model

import (
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

// tick does what is due, in the order of the clock's hands: due, lapse,
// expire, purge, then holds, holders and receipts.
func (m *model) tick() {
	over := func(t job.Millis) bool { return t > 0 && t <= m.now }
	for _, j := range m.sorted(func(j *job.Job) bool { return j.State == job.Scheduled && over(max(j.ReadyAt, 1)) }) {
		j.State = job.Ready
	}
	for _, j := range m.sorted(func(j *job.Job) bool { return j.State == job.Leased }) {
		m.timeOut(j)
	}
	for _, j := range m.sorted(func(j *job.Job) bool {
		return (j.State == job.Ready || j.State == job.Scheduled) && over(j.ExpiresAt)
	}) {
		m.die(j, job.Expired)
		m.stats.Expired++
	}
	for _, j := range m.sorted(func(j *job.Job) bool { return j.State.Terminal() && over(j.PurgeAt) }) {
		m.remove(j)
		m.stats.Purged++
	}
	for _, q := range m.queues {
		if over(q.HoldUntil) {
			q.HoldUntil = 0
		}
	}
	for _, g := range m.groups {
		if over(g.Hold) {
			g.Hold = 0
		}
	}
	for holder, t := range m.away {
		if over(t) {
			m.lapse(job.ByLapse, func(l job.Lease) bool { return l.Holder == holder })
			delete(m.away, holder)
		}
	}
	for key, r := range m.receipts {
		if over(r.expires) {
			delete(m.receipts, key)
		}
	}
	m.forget()
}

// timeOut ends the leases of a job whose own time is over: a run that took too
// long has failed, one that did not start in time is given back, and the
// holder of one that was not extended has vanished.
func (m *model) timeOut(j *job.Job) {
	over := func(t job.Millis) bool { return t > 0 && t <= m.now }
	for _, l := range j.Leases {
		switch {
		case over(l.RunEnd):
			m.end(j, l, job.ByTimeout)
			m.stats.Lapsed++
			m.fail(j, timeout)
		case over(l.StartBy):
			m.end(j, l, job.ByRelease)
			m.stats.Lapsed++
			j.Evictions++
			m.giveBack(j, job.PlaceKeep, 0)
		case over(l.Until):
			m.lapse(job.ByLapse, func(o job.Lease) bool { return o.Token == l.Token })
		}
	}
}

// lapse ends leases whose holder is gone. Only our own restarts are not
// counted as a loss.
func (m *model) lapse(how job.Ending, whose func(job.Lease) bool) {
	for _, j := range m.sorted(func(*job.Job) bool { return true }) {
		for _, l := range j.Leases {
			if !whose(l) {
				continue
			}
			m.end(j, l, how)
			m.stats.Lapsed++
			limit := j.Retry.LossLimitValue()
			if lost := how != job.ByRestart; lost && (l.Alone || !j.Alone) {
				j.Losses++
				j.Alone = 2*j.Losses >= limit
			}
			if len(j.Leases) == 0 && how != job.ByRestart && j.Losses >= limit {
				j.Failures++
				m.die(j, job.Lost)
				m.stats.Died++
				continue
			}
			m.giveBack(j, job.PlaceKeep, 0)
		}
	}
}
