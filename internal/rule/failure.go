package rule

import (
	"cmp"
	"unicode/utf8"

	"github.com/reprisehq/reprise/internal/job"
)

// overridesMax bounds how often a worker's own retry time may skip limit and
// max_age (core.md section 6, point 5).
const overridesMax = 1000

// inGrace reports whether failures are suppressed, not charged.
func inGrace(v View, j *job.Job) bool { return j.GraceUntil > v.Now }

// graceDelay is the shortest wait for another try that nobody asked for.
func graceDelay(v View) job.Millis { return cmp.Or(v.Queue.GraceDelay, v.Server.GraceDelay) }

// fail decides about a failed attempt in the order of core.md section 6. The
// lease l has been taken off the job already.
func fail(v View, j *job.Job, c Command, l job.Lease, e Effect) (Effect, error) {
	p := policy(v, j)
	do, number, err := decide(v, j, &p, &c)
	if err != nil {
		return Effect{}, err
	}
	charge(v, j, do, number, c.Failure, l, &e)
	if do.IgnoreRetryAfter {
		c.After = 0
	}
	if c.Hold = max(c.After, c.Hold); do.Do == job.DoHold {
		c.Hold = max(c.Hold, do.Delay)
	}
	hold(v, c.Hold, &e)
	if len(j.Leases) > 0 { // another copy lives: its end decides
		j.CopiesWanted = uint8(len(j.Leases))
		e.Job = j
		return e, nil
	}
	j.CopiesWanted = j.Copies
	p = job.Retry{Limit: do.Limit, Curve: do.Curve}.Over(p)
	var due job.Millis
	own := ownTime(v, j, &c, do)
	why := fate(v, j, &lastRun{does: do, policy: &p, own: own, due: func() job.Millis {
		due = dueAfter(v, j, c, &p, do, own, e)
		return due
	}})
	if why != job.Alive {
		return die(v, j, why, e), nil
	}
	j.Wait.Rule = number
	if own {
		j.Overrides++
	}
	return again(v, j, c, &p, due, e), nil
}

// decide finds what the rules of a policy say about a failure, and which of
// them it is, 1 for the first. Inside grace they are not asked (core.md section
// 6, points 1 and 3).
func decide(v View, j *job.Job, p *job.Retry, c *Command) (do *job.Rule, number uint8, err error) {
	if inGrace(v, j) || p.Rules == nil {
		return &noRule, 0, nil
	}
	at, err := FirstRule(*p.Rules, &c.Failure, c.Match)
	if at < 0 {
		return &noRule, 0, err
	}
	return &(*p.Rules)[at], uint8(at + 1), nil
}

// noRule is what happens where no rule matches: the policy as it stands.
var noRule = job.Rule{Do: job.DoRetry}

// charge counts one failed attempt (I4), unless a rule gives it back.
func charge(v View, j *job.Job, do *job.Rule, number uint8, f job.Failure, l job.Lease, e *Effect) {
	j.FailedAt = v.Now
	switch {
	case inGrace(v, j):
		j.Suppressed++
		return
	case do.Do == job.DoRelease:
		j.Releases++
		j.Evictions++
	default:
		j.Attempts++
		if j.FailedBesideCopy, j.Wait = len(j.Leases) > 0, (job.Wait{}); j.FailedBesideCopy && do.Limit.IsSet() {
			j.Wait.Rule = number // whose limit the end of the last copy asks for (noRunLeft)
		}
	}
	record(v, j, f, l, e)
}

// ownTime reports whether the worker's own time for the next attempt counts: it passes
// limit and max_age, and goes before the curve (core.md section 6, point 5).
func ownTime(v View, j *job.Job, c *Command, do *job.Rule) bool {
	return c.RetryAt > 0 && j.Overrides < overridesMax && !inGrace(v, j) && do.Do != job.DoRelease
}

// dueAfter is the time of the next attempt, and notes on the job who chose it; own is
// what ownTime says. Whoever chose it, the job comes back no sooner than a target asked
// for, and not while its line is held.
func dueAfter(v View, j *job.Job, c Command, p *job.Retry, do *job.Rule, own bool, e Effect) job.Millis {
	var due job.Millis
	switch {
	case inGrace(v, j):
		due, j.Wait.By = v.Now.Add(graceDelay(v)), job.WaitGrace
	case do.Do == job.DoRelease:
		due, j.Wait.By = v.Now.Add(do.Delay), job.WaitRule
	case own:
		due, j.Wait.By = c.RetryAt, job.WaitWorker
	default:
		j.LastDelay = Delay(p.Curve, int(j.Attempts), j.LastDelay, v.Rand)
		due, j.Wait.By = v.Now.Add(j.LastDelay), job.WaitCurve
		if most := v.Queue.AgeCap; most > 0 {
			due = min(due, max(j.Born().Add(most), v.Now.Add(graceDelay(v))))
		}
	}
	if at := v.Now.Add(c.After); c.After > 0 && at > due {
		due, j.Wait.By = at, job.WaitTarget
	}
	held := heldUntil(v, e)
	if held <= due {
		return due
	}
	jitter := j.Wait.By == job.WaitTarget && c.Hold == c.After && held > heldUntil(v, Effect{})
	if !jitter { // of the hold that the target asked for
		j.Wait.By = job.WaitHold
	}
	return held
}

// again puts the job back for another attempt.
func again(v View, j *job.Job, c Command, p *job.Retry, due job.Millis, e Effect) Effect {
	where := c.Place
	if where == job.PlaceUnset {
		l := layersOf(j, v.Queue, v.Server)
		where, _ = l.place(p)
	}
	place(v, j, where)
	j.ReadyAt = due
	j.State = job.Scheduled
	if due <= v.Now && c.RetryAt == 0 { // a worker's own time passes through scheduled, as Zizq's does
		j.State = job.Ready
	}
	holdPrint(v, j)
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
	j.Print = Fingerprint(&f)
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
// holds those behind it. A member that dies behind the head holds those behind
// itself, once they come to it (core.md section 2). In an inbox a message that expired
// holds nobody, and a dead one holds others until it expires (inbox.md, decision 9).
func die(v View, j *job.Job, why job.Reason, e Effect) Effect {
	outdated := v.Queue.Turns && j.ExpiresAt > 0 && j.ExpiresAt <= v.Now
	if j.Group == "" || v.Queue.OnDead == job.DeadSkip || outdated {
		return dieAside(v, j, why, e)
	}
	lay(v, j, why)
	j.BlocksGroup = true
	if v.Queue.Turns {
		j.PurgeAt = j.ExpiresAt
	}
	if v.Queue.OnDead == job.DeadPark && v.Gate != nil && parks(v, j) {
		e.gate(v).Park = deadHead(j.ID)
	}
	e.Job = j
	return e
}

// parks reports whether a member that dies takes its group out of line. Where members
// follow each other only the head does: of a strict group that is who runs, if nobody
// before it does, or who would be next.
func parks(v View, j *job.Job) bool {
	switch {
	case v.Head:
		return true
	case j.Order == job.OrderStrict:
		return v.Job.State == job.Leased && !v.Behind
	}
	return !v.Queue.Turns
}

// dieAside gives the job up without holding its group.
func dieAside(v View, j *job.Job, why job.Reason, e Effect) Effect {
	lay(v, j, why)
	keep := given(j.RetainDead, v.Queue.RetainDead, v.Server.RetainDead)
	if why == job.Evicted && v.Queue.Outlet {
		keep = 0 // the quota of an output is one of the disk: what is pushed out is counted, not kept
	}
	return retain(v, j, keep, e)
}

// lay puts the job among the dead. One that never failed has the fingerprint
// of its reason.
func lay(v View, j *job.Job, why job.Reason) {
	j.State, j.Reason, j.Park, j.DiedAt, j.Wait = job.Dead, why, "", v.Now, job.Wait{}
	finish(v, j)
	if j.Print == 0 {
		j.Print = Fingerprint(&job.Failure{Type: why.String()})
	}
}

func deadHead(id job.ID) string { return "dead/" + id.String() }
