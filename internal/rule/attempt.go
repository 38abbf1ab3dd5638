package rule

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// What a task remembers of its runs: which engine had it, and why that came to an
// end. One place writes it, by what the step did; a job of a queue that is no
// session pays one nil check.

// keepOutcome adds what a step brought to what the job remembers: its result, and
// of a task the runs that ended.
func keepOutcome(v View, c *Command, e *Effect) {
	runs := v.Queue.Grid != nil && (len(e.Ended) > 0 || e.Late)
	if !runs && e.result == nil {
		return
	}
	list := e.Job.History()
	if runs {
		list = append(make([]job.Attempt, 0, len(list)+len(e.Ended)), list...)
		if e.Late {
			list = lateAttempt(v, c, list)
		}
		for i := range e.Ended {
			list = append(list, attemptOf(v, c, e, &e.Ended[i]))
		}
	}
	e.Job.Extras = e.Job.WithOutcome(e.result, list)
}

// attemptOf is what is remembered of one run that a step ended.
func attemptOf(v View, c *Command, e *Effect, l *job.Lease) job.Attempt {
	a := job.Attempt{
		Number: l.Number, Token: l.Token.Hash(), Holder: l.Holder, Host: l.Host, Copy: l.Copy, Committed: l.Commits,
		Since: l.Since, Started: l.Started, Ended: v.Now,
	}
	if isSettle(c.Verb) && c.RunStart > 0 && l.Token == c.Token {
		a.Started = c.RunStart
	}
	how := e.HowEnded(c.Verb, l)
	for i := range e.Failures {
		if f := &e.Failures[i]; f.Holder == l.Holder {
			a.Failure = f.Number
		}
	}
	a.Why = whyEnded(c.Verb, how)
	if a.Why == job.AttemptError && c.Failure.Timeout { // its engine ended it by itself
		a.Why = job.AttemptTimeout
	}
	a.Charged = charged(v, e.Job, how, a.Failure > 0)
	return a
}

// whyEnded is the reason in the words of tasks.
func whyEnded(verb Verb, how job.Ending) job.AttemptEnd {
	switch how {
	case job.ByOK:
		return job.AttemptOK
	case job.ByRetry, job.ByDead:
		return job.AttemptError
	case job.ByLapse, job.ByDisconnect:
		return job.AttemptLost
	case job.ByTimeout:
		return job.AttemptTimeout
	case job.BySupersede:
		return job.AttemptSuperseded
	case job.ByCancel:
		return job.AttemptCancelled
	case job.ByRestart:
		return job.AttemptRestarted
	case job.ByEvict:
		return job.AttemptEvicted
	case job.ByPreempt:
		return job.AttemptPreempted
	case job.ByWithdraw:
		return job.AttemptWithdrawn
	case job.ByUndelivered:
		return job.AttemptUndelivered
	case job.ByRelease, job.ByTurn, job.Endings:
	}
	if verb == Lapse {
		return job.AttemptUndelivered
	}
	return job.AttemptReleased
}

// charged is which counter an end raised. noted: a failure record was kept of it.
func charged(v View, j *job.Job, how job.Ending, noted bool) job.Charge {
	switch {
	case how == job.ByRelease || how.Evicts() || noted && j.Releases > v.Job.Releases:
		return job.ChargedEviction
	case noted && j.Attempts > v.Job.Attempts:
		return job.ChargedRetry
	case how == job.ByLapse && j.Losses > v.Job.Losses:
		return job.ChargedLoss
	}
	return job.ChargedNothing
}

// lateAttempt notes that a run whose engine had been given up was right after
// all. One that a crash forgot has nothing but its token.
func lateAttempt(v View, c *Command, list []job.Attempt) []job.Attempt {
	hash := c.Token.Hash()
	i := slices.IndexFunc(list, func(a job.Attempt) bool { return a.Token == hash })
	if i < 0 {
		i, list = len(list), append(list, job.Attempt{Token: hash, Since: v.Now})
	}
	list[i].Why, list[i].Ended = job.AttemptLate, v.Now
	return list
}

// commit gives a run the word that its effects count, if no other has it: the
// others end, and no copy is wanted until it ends itself (reference section 3,
// TryCommit).
func commit(j *job.Job, i int, e *Effect) {
	i = endOthers(j, i, e)
	j.Leases[i].Commits, j.CopiesWanted = true, 1
}

// fenced makes a task that must not run twice at a time wait where the server
// ended its run: what its engine has not confirmed may go on there yet.
func fenced(v View, e Effect) Effect {
	g, j := v.Queue.Grid, e.Job
	if g == nil || g.FenceWait == 0 || !v.Queue.NonIdempotent || j == nil || len(e.Voided) == 0 || j.State != job.Ready && j.State != job.Scheduled {
		return e
	}
	if at := v.Now.Add(g.FenceWait); at > j.ReadyAt || j.State == job.Ready {
		j.State, j.ReadyAt, j.Wait = job.Scheduled, max(at, j.ReadyAt), job.Wait{By: job.WaitFence}
	}
	return e
}
