package rule

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// A late settle is one by a run whose lease is over while its job is still open (core.md
// section 4). It counts, as the one exception of I2, if
//
//   - it is a success, and the settings of the queue do not exclude it (late_ok),
//   - the lease ended without a decision against the run (forgiven),
//   - no other run of the job has committed, and
//   - in a strict group: the job is the head, and no newer turn was granted.
//
// The same outcome twice is a repeat: it gets the same answer and changes nothing.

// forgiven are the endings of a lease after which a success still counts: its holder was not
// heard of, or the job went back untouched. Nobody decided against the run.
var forgiven = [job.Endings]bool{
	job.ByLapse: true, job.ByDisconnect: true, job.ByRestart: true, job.ByTurn: true, job.ByUndelivered: true,
}

// late decides about a settle whose lease is not live any more, or whose job is not open.
func late(v View, c Command) (Effect, error) {
	j := v.Job
	if j == nil || c.Token.IsZero() {
		return lateOfStream(v, c)
	}
	ended, known := endedOf(j, c.Token)
	if known && saysAgain(c.Verb, ended.How) {
		return Effect{Job: j, Repeat: true}, nil
	}
	if !Allowed(c.Verb, j.State) || j.Committed() { // by another run, whose effects count
		return Effect{}, superseded(j)
	}
	if !known && c.Token.Start() < v.Start && j.Order != job.OrderStrict {
		ended, known = forgotten(j, c.Token)
	}
	newerTurn := v.Gate != nil && j.Order == job.OrderStrict && (v.Gate.Turn != ended.Turn || !v.Head)
	if c.Verb == SettleOK && known && forgiven[ended.How] && !v.Queue.LateOKNever && !newerTurn {
		return lateOK(v, c, ended)
	}
	return Effect{}, superseded(j)
}

// lateOfStream is late for a settle without a token.
func lateOfStream(v View, c Command) (Effect, error) {
	if j := v.Job; j != nil && c.Verb == SettleOK && j.State.Open() && len(j.Ended) > 0 && !v.Queue.LateOKNever {
		if last := j.Ended[len(j.Ended)-1]; streamEnd(last.How) {
			return lateOK(v, c, last)
		}
	}
	return Effect{}, job.Errorf(job.NotFound, "job not found in in-flight set")
}

// streamEnd: a settle without a token may only speak for an anonymous stream,
// whose leases end by disconnect or restart.
func streamEnd(how job.Ending) bool { return how == job.ByDisconnect || how == job.ByRestart }

// lateOK completes the job for a token that ended, and remembers that it said
// OK, so that saying it again is a repeat.
func lateOK(v View, c Command, ended job.Ended) (Effect, error) {
	j, e := v.Job.Clone(), Effect{Late: true}
	hold(v, c.Hold, &e)
	endAll(j, job.BySupersede, &e, true)
	j.Ended = slices.DeleteFunc(j.Ended, func(d job.Ended) bool { return d.Hash == ended.Hash })
	ended.How = job.ByOK
	remember(j, ended)
	j.Losses = 0
	return complete(v, j, c.Result, e), nil
}

// saysAgain reports whether a settle only says what happened to the lease: the
// same outcome, or that a member goes back whose turn was cut.
func saysAgain(v Verb, how job.Ending) bool {
	return how == endingOf(v) || v == SettleRelease && how == job.ByTurn
}

func superseded(j *job.Job) *job.Error {
	if n := len(j.Ended); n > 0 && j.Ended[n-1].How == job.ByTurn && len(j.Leases) == 0 {
		return job.Errorf(job.Superseded, "job %s went back with its turn: it, its group or its queue was paused or held, it expired, or one before it failed", j.ID)
	}
	return job.Errorf(job.Superseded, "the token for job %s is not live any more; the job is %s", j.ID, j.State)
}

// endedOf is how the lease of a token ended, if the job remembers that.
func endedOf(j *job.Job, t job.Token) (job.Ended, bool) {
	h := t.Hash()
	for i := len(j.Ended) - 1; i >= 0; i-- {
		if j.Ended[i].Hash == h {
			return j.Ended[i], true
		}
	}
	return job.Ended{}, false
}

// forgotten is how the lease of a token ended that the job does not remember and that was
// given out before this start of the server. The history of a task may tell; else a crash
// forgot its unsynced take.
func forgotten(j *job.Job, t job.Token) (job.Ended, bool) {
	ended, known := job.Ended{Hash: t.Hash(), How: job.ByRestart}, true
	for _, a := range j.History() {
		if a.Token == ended.Hash {
			ended.How, known = endingBefore(&a)
		}
	}
	return ended, known
}

// endingBefore is the ending of a run in the history of its task. Known are only those
// that blame nobody: all others were decided.
func endingBefore(a *job.Attempt) (how job.Ending, known bool) {
	switch {
	case a.Why == job.AttemptLost:
		return job.ByLapse, true
	case a.Why == job.AttemptRestarted:
		return job.ByRestart, true
	case a.Why == job.AttemptUndelivered && a.Charged == job.ChargedNothing: // its engine did not know of it
		return job.ByUndelivered, true
	}
	return 0, false
}
