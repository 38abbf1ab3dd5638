package meter

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// EventKind is what happened to a job.
type EventKind uint8

// The kinds of events.
const (
	JobEnqueued  EventKind = iota
	JobReady               // its time has come
	JobTaken               // given to a holder
	JobCompleted           // a holder said OK
	JobRetried             // a run failed, and it is to run again
	JobReleased            // a holder gave it back without blame
	JobLapsed              // its holder vanished, or did not begin in time
	JobDied                // it is dead, with a reason
	JobRevived             // brought back, or called up before its time
	JobChanged             // an operator changed it, or asked for one more copy
	JobPurged              // a finished one was forgotten
	JobCancelled           // given up by an operator, or with its session
	EventKinds             // how many there are
)

func (k EventKind) String() string {
	return [...]string{
		"enqueued", "ready", "taken", "completed", "retried", "released", "lapsed", "died", "revived", "changed", "purged", "cancelled",
	}[k]
}

// Event is a transition of a job that is on disk.
type Event struct {
	Kind    EventKind
	At      job.Millis
	ID      job.ID
	Queue   string
	Type    string
	Group   string
	State   job.State // after it; of a job that left the one in which it left
	Gone    bool      // it left
	Attempt uint32    // charged failures
	Reason  string    // died, retried, lapsed: why; a word from a fixed list
	Trace   *Trace    // for those who follow traces; nil = not of one
}

// eventOf is the event of a step; ok is false if it is none.
func eventOf(c *rule.Command, old, j *job.Job, eff *rule.Effect, now job.Millis) (ev Event, ok bool) {
	ev = Event{
		At: now, ID: j.ID, Queue: j.Queue, Type: j.Type, Group: j.Group,
		State: j.State, Gone: eff.Job == nil, Attempt: j.Attempts,
	}
	switch c.Verb {
	case rule.Put:
		ev.Kind = JobEnqueued
	case rule.Take:
		ev.Kind = JobTaken
	case rule.SettleOK:
		ev.Kind = JobCompleted
	case rule.SettleRetry:
		ev.Kind, ev.Reason = JobRetried, retryWords[retryReason(c, old, j)-RetryError]
	case rule.SettleRelease:
		ev.Kind = JobReleased
	case rule.Promote:
		ev.Kind = JobReady
	case rule.Revive:
		ev.Kind = JobRevived
	case rule.Offer, rule.Patch:
		ev.Kind = JobChanged
	case rule.Purge:
		ev.Kind = JobPurged
	case rule.Lapse:
		ev.Kind = JobLapsed
		if n := len(j.Ended); n > 0 && len(eff.Ended) > 0 {
			ev.Reason = endingWord(j.Ended[n-1].How)
		}
	case rule.SettleDead, rule.Expire, rule.Cancel:
		ev.Kind = JobDied
	case rule.Extend, rule.Verbs:
		return Event{}, false
	}
	if died(old, eff) {
		ev.Kind, ev.Reason = JobDied, j.Reason.String()
	}
	if ev.Kind == JobDied && j.Reason == job.ReasonCancelled {
		ev.Kind, ev.Reason = JobCancelled, ""
	}
	return ev, true
}

// Trace is what spans tell of an event. The jobs are as they are kept, and must
// not be changed.
type Trace struct {
	Old, Job *job.Job // before and after, or as it left; Old is nil for a new one
	Ended    []EndedRun
	Failure  job.Failure // what the worker said of a run that failed
	Late     bool        // the job was completed by a run whose lease had ended before
	Stored   job.Millis  // when it was on disk
}

// EndedRun is a run that is over.
type EndedRun struct {
	Lease   job.Lease
	Outcome string // ok, retry, dead, release; or as nobody said it: lapse, disconnect, restart, start_timeout, run_timeout, supersede, cancel
}

func traceOf(c *rule.Command, old, j *job.Job, eff *rule.Effect) *Trace {
	t := &Trace{Old: old, Job: j, Late: eff.Late}
	if c.Verb == rule.SettleRetry || c.Verb == rule.SettleDead {
		t.Failure = c.Failure
	}
	for i := range eff.Ended {
		t.Ended = append(t.Ended, EndedRun{Lease: eff.Ended[i], Outcome: outcomeOf(c, eff, &eff.Ended[i])})
	}
	return t
}

// outcomeOf is how the run under a lease ended: what its worker said, else what
// befell it.
func outcomeOf(c *rule.Command, eff *rule.Effect, l *job.Lease) string {
	how := eff.HowEnded(c.Verb, l)
	if c.Verb == rule.SettleRelease && how == job.ByRelease {
		return job.Released.String()
	}
	return endingWord(how)
}
