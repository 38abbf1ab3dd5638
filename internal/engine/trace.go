package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

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
	for i := range eff.Voided {
		if v := &eff.Voided[i]; v.Lease.Token == l.Token {
			return endingWords[endingCount(v.How)-EndedLapse]
		}
	}
	switch c.Verb {
	case rule.SettleRetry:
		return job.Retried.String()
	case rule.SettleDead:
		return job.Died.String()
	case rule.SettleRelease:
		return job.Released.String()
	default:
		return job.OK.String()
	}
}

// announce hands on the events of a batch, with the time at which it was on disk.
func (e *Engine) announce(list []Event, unknown bool) {
	if e.hub.tracing.Load() > 0 && !unknown {
		now := e.Now()
		for i := range list {
			if t := list[i].Trace; t != nil {
				t.Stored = now
			}
		}
	}
	e.hub.publish(list, unknown)
}
