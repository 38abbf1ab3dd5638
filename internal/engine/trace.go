package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

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

// SpanID identifies a span inside its trace.
type SpanID [8]byte

// The ids of spans follow from what is kept with the job, so that spans made
// before and after a restart of the server fit together.

// EnqueueSpan is the id of the span in which a job was taken in.
func EnqueueSpan(id job.ID) SpanID { return spanID("enqueue", id, 0) }

// WaitSpan is the id of the span in which a job, as it was before it was taken
// or died, waited for that.
func WaitSpan(j *job.Job) SpanID {
	return spanID("wait", j.ID, uint64(j.Deliveries)<<32|uint64(j.Replays))
}

// RunSpan is the id of the span of a run by the hash of its lease's token.
func RunSpan(id job.ID, token uint64) SpanID { return spanID("run", id, token) }

// LateSpan is the id of the span for the late word of a run, by the same hash.
func LateSpan(id job.ID, token uint64) SpanID { return spanID("late", id, token) }

// spanID is one way: a token cannot be told from it.
func spanID(what string, id job.ID, n uint64) (s SpanID) {
	b := append([]byte(what), id[:]...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, n))
	copy(s[:], sum[:])
	return s
}

// lead makes the span of its run the parent of what the worker of a delivery
// does.
func (e *Engine) lead(list []Delivery) {
	for i := range list {
		d := &list[i]
		if d.Voided || !d.Job.Sampled() || !e.opts.Traced(d.Job.Extras.Traceparent) {
			continue
		}
		j, x := *d.Job, *d.Job.Extras
		x.Traceparent = underSpan(x.Traceparent, RunSpan(j.ID, d.Lease.Token.Hash()))
		j.Extras, d.Job = &x, &j
	}
}

// underSpan is the trace context with another parent.
func underSpan(traceparent string, s SpanID) string {
	const before, after = len("00-") + 32 + 1, len("-00")
	return traceparent[:before] + hex.EncodeToString(s[:]) + traceparent[len(traceparent)-after:]
}
