package trace

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/meter"
)

const (
	backMax    = 1 << 14 // jobs whose giving back is remembered
	messageMax = 1 << 10 // bytes of a worker's message in a span
)

// span is one span, whole.
type span struct {
	id         trace.SpanID
	operation  string // enqueue, wait, run
	sort       string // of messaging.operation.type; "" = none
	kind       trace.SpanKind
	begin, end job.Millis
	more       []attribute.KeyValue
	before     trace.Link // the run before; without a span id = none
	errorType  string     // "" = no error
	message    string
}

// tell makes the spans that end with an event.
func (x *Exporter) tell(ctx context.Context, ev *meter.Event) {
	t := ev.Trace
	j := t.Job
	ctx = parentOf(ctx, j.Extras.Traceparent)
	if !trace.SpanContextFromContext(ctx).IsSampled() { // a text that is no trace context
		return
	}
	if t.Old == nil {
		x.put(ctx, j, &span{
			id: idOfEnqueue(j.ID), operation: "enqueue", sort: "send", kind: trace.SpanKindProducer,
			begin: ev.At, end: t.Stored,
			more: []attribute.KeyValue{attribute.Int64("messaging.message.body.size", int64(j.PayloadSize))},
		})
		return
	}
	ctx = under(ctx, idOfEnqueue(j.ID))
	before := link(ctx, t.Old)
	for i := range t.Ended {
		s := runSpan(t, &t.Ended[i], ev.At)
		s.before = before
		x.put(ctx, j, s)
	}
	switch {
	case ev.Kind == meter.JobTaken:
		s := x.waitSpan(t.Old, ev.At)
		s.before = before
		if n := len(j.Leases); n > 0 {
			s.more = append(s.more, holder(&j.Leases[n-1]))
		}
		x.put(ctx, j, s)
	case (ev.Kind == meter.JobDied || ev.Kind == meter.JobCancelled) && len(t.Ended) == 0: // it waited for nothing
		s := x.waitSpan(t.Old, ev.At)
		s.before, s.errorType = before, j.Reason.String()
		x.put(ctx, j, s)
	case t.Late:
		s := &span{
			id: idOfLate(j.ID, lastEnded(j)), operation: "settle", sort: "settle", kind: trace.SpanKindClient,
			begin: ev.At, end: ev.At, before: link(ctx, j),
			more: []attribute.KeyValue{attribute.String("reprise.outcome", job.OK.String()), attribute.Bool("reprise.late", true)},
		}
		x.put(ctx, j, s)
	}
	x.remember(ev)
}

// waitSpan is the time from when the job, as it was, could have been taken.
func (x *Exporter) waitSpan(old *job.Job, end job.Millis) *span {
	begin := max(old.ReadyAt, old.Created)
	if n := len(old.Ended); old.State != job.Leased && begin <= old.DequeuedAt { // given back since, without a new date
		begin = max(old.DequeuedAt, x.back[old.ID])
		if x.back[old.ID] == 0 && n > 0 && old.Ended[n-1].How == job.ByRestart { // by a stop, before x listened
			begin = max(begin, x.since)
		}
	}
	return &span{
		id: idOfWait(old), operation: "wait", kind: trace.SpanKindInternal, begin: min(begin, end), end: end,
		more: []attribute.KeyValue{attempt(old)},
	}
}

// remember notes when a job was given back that does not know it itself. It is
// lost with the process; then such a wait begins with this start of the server
// if the one before gave the job back, else with the take before it.
func (x *Exporter) remember(ev *meter.Event) {
	switch j := ev.Trace.Job; {
	case ev.Gone || j.State != job.Ready:
		delete(x.back, j.ID)
	case len(ev.Trace.Ended) > 0:
		if len(x.back) >= backMax {
			clear(x.back)
		}
		x.back[j.ID] = ev.At
	}
}

// blameless are the outcomes that are no errors.
var blameless = map[string]bool{"ok": true, "release": true, "restart": true, "supersede": true, "cancel": true}

func runSpan(t *meter.Trace, r *meter.EndedRun, end job.Millis) *span {
	l := &r.Lease
	s := &span{
		id: idOfRun(t.Job.ID, l.Token.Hash()), operation: "run", sort: "process", kind: trace.SpanKindConsumer,
		begin: min(l.Since, end), end: end,
		more: []attribute.KeyValue{
			attempt(t.Old), holder(l), attribute.String("reprise.outcome", r.Outcome),
			attribute.String("reprise.state", t.Job.State.String()),
		},
	}
	if l.Started > 0 {
		s.more = append(s.more, attribute.Int64("reprise.started_ms", max(0, int64(l.Started-l.Since))))
	}
	switch {
	case blameless[r.Outcome]:
	case r.Outcome == "retry" || r.Outcome == "dead":
		if s.errorType, s.message = t.Failure.Type, t.Failure.Message; s.errorType == "" {
			s.errorType = "_OTHER" // as the conventions have it
		}
	default:
		s.errorType = r.Outcome
	}
	if t.Job.State == job.Dead {
		s.more = append(s.more, attribute.String("reprise.reason", t.Job.Reason.String()))
	}
	return s
}

func attempt(old *job.Job) attribute.KeyValue {
	return attribute.Int64("reprise.attempt", int64(old.Attempts)+1)
}

// holder is the name of a holder without the mark of its kind.
func holder(l *job.Lease) attribute.KeyValue {
	return attribute.String("reprise.holder", job.WorkerOf(l.Holder))
}

func lastEnded(j *job.Job) uint64 {
	if n := len(j.Ended); n > 0 {
		return j.Ended[n-1].Hash
	}
	return 0
}

// link leads to the run of a job that ended last.
func link(ctx context.Context, j *job.Job) trace.Link {
	if len(j.Ended) == 0 {
		return trace.Link{}
	}
	run := idOfRun(j.ID, lastEnded(j))
	return trace.Link{SpanContext: trace.SpanContextFromContext(ctx).WithSpanID(run)}
}

// put hands a span to the SDK.
func (x *Exporter) put(ctx context.Context, j *job.Job, s *span) {
	about := append([]attribute.KeyValue{
		attribute.String("messaging.system", "reprise"),
		attribute.String("messaging.operation.name", s.operation),
		attribute.String("messaging.destination.name", j.Queue),
		attribute.String("messaging.message.id", j.ID.String()),
		attribute.String("reprise.job.type", j.Type),
	}, s.more...)
	if s.sort != "" {
		about = append(about, attribute.String("messaging.operation.type", s.sort))
	}
	if j.Group != "" {
		about = append(about, attribute.String("reprise.job.group", j.Group))
	}
	if s.errorType != "" {
		about = append(about, attribute.String("error.type", s.errorType))
	}
	o := []trace.SpanStartOption{
		trace.WithTimestamp(date(s.begin)), trace.WithSpanKind(s.kind), trace.WithAttributes(about...),
	}
	if s.before.SpanContext.HasSpanID() {
		o = append(o, trace.WithLinks(s.before))
	}
	_, made := x.tracer.Start(context.WithValue(ctx, idKey{}, s.id), s.operation+" "+j.Queue, o...)
	if s.errorType != "" {
		made.SetStatus(codes.Error, short(s.message))
	}
	made.End(trace.WithTimestamp(date(max(s.begin, s.end))))
}

func short(s string) string {
	if len(s) > messageMax {
		s = s[:messageMax]
	}
	return strings.ToValidUTF8(s, "")
}
