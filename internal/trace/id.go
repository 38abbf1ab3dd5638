package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"

	"github.com/reprisehq/reprise/internal/job"
)

// The ids of spans follow from what is kept with the job, so that spans made
// before and after a restart of the server fit together.

// idOfEnqueue is the id of the span in which a job was taken in.
func idOfEnqueue(id job.ID) trace.SpanID { return spanID("enqueue", id, 0) }

// idOfWait is the id of the span in which a job, as it was before it was taken
// or died, waited for that.
func idOfWait(j *job.Job) trace.SpanID {
	return spanID("wait", j.ID, uint64(j.Deliveries)<<32|uint64(j.Replays))
}

// idOfRun is the id of the span of a run by the hash of its lease's token.
func idOfRun(id job.ID, token uint64) trace.SpanID { return spanID("run", id, token) }

// idOfLate is the id of the span for the late word of a run, by the same hash.
func idOfLate(id job.ID, token uint64) trace.SpanID { return spanID("late", id, token) }

// spanID is one way: a token cannot be told from it.
func spanID(what string, id job.ID, n uint64) (s trace.SpanID) {
	b := append([]byte(what), id[:]...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, n))
	copy(s[:], sum[:])
	return s
}

// underSpan is the trace context with another parent.
func underSpan(traceparent string, s trace.SpanID) string {
	const before, after = len("00-") + 32 + 1, len("-00")
	return traceparent[:before] + hex.EncodeToString(s[:]) + traceparent[len(traceparent)-after:]
}
