package rule

import (
	"unicode/utf8"

	"github.com/reprisehq/reprise/internal/job"
)

// overridesMax bounds how often a worker's own retry time may skip limit and
// max_age (core.md section 6, point 5).
const overridesMax = 1000

// policy merges what job, queue and server say, the most specific first
// (retry.md section 1).
func policy(v View, j *job.Job) job.Retry { return asked(v, j).Over(v.Server.Retry) }

// asked is the policy without the server's defaults.
func asked(v View, j *job.Job) job.Retry {
	if j.Retry != nil {
		return j.Retry.Over(v.Queue.Retry)
	}
	return v.Queue.Retry
}

// fail decides about a failed attempt in the order of core.md section 6. The
// lease l has been taken off the job already.
func fail(v View, j *job.Job, c Command, l job.Lease, e Effect) Effect {
	charge(v, j, c.Failure, l, &e)
	grace := inGrace(v, j)
	if len(j.Leases) > 0 { // another copy lives: its end decides
		j.Wanted = uint8(len(j.Leases))
		e.Job = j
		return e
	}
	j.Wanted = j.Copies
	p := policy(v, j)
	due := dueAfter(v, j, c, &p, grace)
	switch override := c.RetryAt > 0 && j.Overrides < overridesMax; {
	case j.ExpiresAt > 0 && v.Now >= j.ExpiresAt:
		return die(v, j, job.Expired, e)
	case grace:
	case override:
		j.Overrides++
	case over(p, j, due):
		return die(v, j, job.Exhausted, e)
	}
	return again(v, j, c, &p, due, e)
}

func inGrace(v View, j *job.Job) bool { return j.GraceUntil > v.Now }

// charge counts one failed attempt (I4).
func charge(v View, j *job.Job, f job.Failure, l job.Lease, e *Effect) {
	j.FailedAt = v.Now
	if inGrace(v, j) {
		j.Suppressed++
		return
	}
	j.Attempts++
	record(v, j, f, l, e)
}

// dueAfter is the time of the next attempt.
func dueAfter(v View, j *job.Job, c Command, p *job.Retry, grace bool) job.Millis {
	var due job.Millis
	switch {
	case grace:
		due = v.Now.Add(v.Server.GraceDelay)
	case c.RetryAt > 0 && j.Overrides < overridesMax:
		due = c.RetryAt
	default:
		j.LastDelay = Delay(p.Curve, int(j.Attempts), j.LastDelay, v.Rand)
		due = v.Now.Add(j.LastDelay)
	}
	if c.After > 0 {
		due = max(due, v.Now.Add(c.After))
	}
	return due
}

// over reports whether the retry limit or max_age, measured at the next due
// time, is used up.
func over(p job.Retry, j *job.Job, due job.Millis) bool {
	if limit, bounded := p.LimitValue(); bounded && int64(j.Attempts) > limit {
		return true
	}
	return p.MaxAge > 0 && due-j.Born() > p.MaxAge
}

// again puts the job back for another attempt.
func again(v View, j *job.Job, c Command, p *job.Retry, due job.Millis, e Effect) Effect {
	where := c.Place
	if where == job.PlaceUnset {
		where = asked(v, j).Place
	}
	if where == job.PlaceUnset && p.Curve != nil && p.Curve.Kind == job.CurveImmediate {
		where = job.PlaceFront // the default of this kind, which goes before the server's
	}
	if where == job.PlaceUnset {
		where = p.Place
	}
	place(v, j, where)
	j.ReadyAt = due
	j.State = job.Scheduled
	if due <= v.Now && c.RetryAt == 0 { // a worker's own time passes through scheduled, as Zizq's does
		j.State = job.Ready
	}
	e.Job = j
	return e
}

// record keeps what went wrong.
func record(v View, j *job.Job, f job.Failure, l job.Lease, e *Effect) {
	f.Holder = l.Holder
	f.Started = max(l.Since, l.Started)
	note(v, j, f, e)
}

func note(v View, j *job.Job, f job.Failure, e *Effect) {
	j.Failures++
	f.Number, f.Attempt, f.Failed = j.Failures, j.Attempts, v.Now
	f.Message, f.Backtrace = bounded(f.Message, f.Backtrace)
	e.Failures = append(e.Failures, f)
}

// OutdatedBy is the number of the record that makes room for a new one, 0 if
// none does: the first and the last FailuresKept stay.
func OutdatedBy(number uint32) uint32 {
	if number <= job.FailuresKept+1 {
		return 0
	}
	return number - job.FailuresKept
}

// bounded cuts a backtrace, then a message, to ErrorBytesMax together.
func bounded(message, backtrace string) (string, string) {
	message = cut(message, job.ErrorBytesMax)
	return message, cut(backtrace, job.ErrorBytesMax-len(message))
}

// cut shortens a text to n bytes, or a few less: never inside a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// die gives the job up. In a group the queue's on_dead decides whether it
// holds those behind it.
func die(v View, j *job.Job, why job.Reason, e Effect) Effect {
	if j.Group == "" || v.Queue.OnDead == job.DeadSkip {
		return dieAside(v, j, why, e)
	}
	j.State, j.Reason, j.Park, j.Blocks = job.Dead, why, "", true
	behind := j.Order == job.OrderStrict && v.Job.State != job.Leased // of a strict group only the head has a turn
	if v.Queue.OnDead == job.DeadPark && v.Gate != nil && !behind {
		g := *v.Gate
		if e.Gate != nil {
			g = *e.Gate
		}
		g.Park = deadHead(j.ID)
		e.Gate = &g
	}
	e.Job = j
	return e
}

// dieAside gives the job up without holding its group.
func dieAside(v View, j *job.Job, why job.Reason, e Effect) Effect {
	j.State, j.Reason, j.Park = job.Dead, why, ""
	return retain(v, j, given(j.RetainDead, v.Queue.RetainDead, v.Server.RetainDead), e)
}

func deadHead(id job.ID) string { return "dead/" + id.String() }

func lossLimit(v View, j *job.Job) uint32 {
	p := policy(v, j)
	return p.LossLimitValue()
}
