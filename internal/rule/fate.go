package rule

import "github.com/reprisehq/reprise/internal/job"

// Dead or retry: whether a job runs again is decided here when its last run failed or its
// holder vanished (fate); a worker that says dead has decided (settle), and a job that
// expires has no choice (expire). Here are, too, what is given up for a reason outside of
// its own runs (GiveUp), what takes a whole session along (CancelsSession), and of which
// failures "reprise work" says dead (FinalStatus, FinalExit).

// lastRun is what the fate of a job is decided by: how its last live run ended.
type lastRun struct {
	lost bool // its holder vanished

	// Of a run that failed:
	does   *job.Rule         // what its policy does about the failure; nil = the run did not fail
	policy *job.Retry        // with what that rule says
	own    bool              // its worker chose the time of the next attempt, which passes the limit
	due    func() job.Millis // the time of the next attempt; asked once at most, and not if that does not matter
}

// fate is why a job is given up of which nothing runs any more; Alive = it runs again.
func fate(v View, j *job.Job, x *lastRun) job.Reason {
	switch {
	case x.does == nil && x.lost && j.Losses >= lossLimit(v, j):
		return job.Lost
	case x.does == nil && failedBeside(v, j):
		return job.Exhausted
	case x.does == nil:
		return job.Alive
	case j.ExpiresAt > 0 && v.Now >= j.ExpiresAt:
		return job.Expired
	case x.does.Do == job.DoDead:
		return job.Killed
	}
	switch old := TooOld(x.policy, x.due()-j.Born()); {
	case inGrace(v, j), x.own:
	case x.does.Do == job.DoRelease:
		if j.Releases > job.ReleasesMax || old {
			return job.Exhausted
		}
	case Spent(x.policy, int64(j.Attempts)) || old:
		return job.Exhausted
	}
	return job.Alive
}

// failedBeside reports whether a failure took a job past its limit while a copy of
// it lived. That copy's end decides (core.md section 5): unless it is a success,
// however it ends, the job is given up as it would have been without the copy.
// One that began past its limit, because an operator brought it back with what is
// left or lowered the limit, is given back as any other.
func failedBeside(v View, j *job.Job) bool { return j.FailedBesideCopy && noRunLeft(v, j) }

// noRunLeft reports whether a job is past its limit. After a failure beside another
// run that is the limit of the rule which matched it, if the rule has one.
func noRunLeft(v View, j *job.Job) bool {
	p := policy(v, j)
	if n := int(j.Wait.Rule); j.FailedBesideCopy && n > 0 && p.Rules != nil && n <= len(*p.Rules) {
		p = job.Retry{Limit: (*p.Rules)[n-1].Limit}.Over(p)
	}
	return j.Overrides == 0 && Spent(&p, int64(j.Attempts)) // a worker that chose the time itself passes the limit (core.md section 6)
}

// Spent reports whether so many charged attempts are more than the limit of a policy allows
// to fail.
func Spent(p *job.Retry, attempts int64) bool {
	limit, bounded := p.LimitValue()
	return bounded && attempts > limit
}

// TooOld reports whether a job may not have its next attempt at such an age, by the max_age
// of its policy.
func TooOld(p *job.Retry, age job.Millis) bool { return p.MaxAge > 0 && age > p.MaxAge }

// Cause is why a job is given up whatever its own runs came to.
type Cause uint8

// The causes.
const (
	ByPerson Cause = iota // or its session: it is cancelled, which is no failure
	ByPoison              // it failed on one host after the other
	ByNeed                // a task that it needs failed
	BySkip                // an operator had its group go on without it
	ByRoom                // its queue is full, and newer work took its place
)

// GiveUp is the command that gives up a job for a cause, in words for people.
func GiveUp(why Cause, text string) Command {
	c := Command{Verb: Cancel, Failure: job.Failure{Message: text}}
	switch why {
	case ByPerson:
		c.Failure.Type = "Cancelled"
	case ByPoison:
		c.Reason, c.Failure.Type = job.Exhausted, "Poison"
	case ByNeed:
		c.Reason, c.Failure.Type = job.Killed, job.DependencyFailed
	case BySkip:
		c.Reason, c.Failure.Type = job.Killed, "Skipped"
	case ByRoom:
		c.Reason, c.Failure.Type = job.Evicted, "Evicted"
	}
	return c
}

// Fails reports whether a job that a command gives up failed; else it was cancelled.
func Fails(c *Command) bool { return c.Verb != Cancel || c.Reason != job.Alive }

// CancelsSession reports whether a task that failed takes its session along. records
// are those of the step in which it failed.
func CancelsSession(a job.AutoCancel, records []job.Failure) bool {
	n := len(records)
	return a == job.AutoCancelAlways || a == job.AutoCancelLibload && n > 0 && records[n-1].Type == job.LoadError
}

// FinalStatus reports whether "reprise work --http" gives a job up whose target answered
// with a status that is no success: trying again cannot help, unless the status says that
// it may. --no-kill leaves that to the policy of the job.
func FinalStatus(status int) bool {
	const timeout, tooEarly, tooMany, ours = 408, 425, 429, 500
	return status < ours && status != timeout && status != tooEarly && status != tooMany
}

// FinalExit is the exit code of a command for which "reprise work --exec" gives the job up
// (EX_DATAERR).
const FinalExit = 65
