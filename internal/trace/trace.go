// Package trace exports the lives of jobs as OpenTelemetry spans, by OTLP over
// HTTP: enqueue, wait and run, in the trace of whoever asked for the job. It
// listens to the engine's events and never makes the engine wait: what it
// cannot keep up with is lost, and told. Nothing is remembered from the start
// of a span to its end; times and ids are those that are kept with the job, so
// that a restart in between does no harm.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/meter"
)

// Exporter makes spans of events. A nil one does nothing.
type Exporter struct {
	sampler  sdk.Sampler
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	log      *slog.Logger
	back     map[job.ID]job.Millis // when those that wait without a date of their own were given back
	since    job.Millis            // when it began to listen
	events   *meter.Listener
	done     chan struct{} // closed when the last event has become spans; nil = not begun
	stop     context.CancelFunc
}

// New returns an exporter as the environment says, nil if it asks for none:
// without an OTEL_EXPORTER_OTLP_ENDPOINT there are no spans. What the standard
// variables say of addresses, headers, certificates and batches the SDK reads
// itself.
func New(ctx context.Context, env Env, version string, log *slog.Logger) (*Exporter, error) {
	wanted, err := env.wanted()
	if err != nil || !wanted {
		return nil, err
	}
	sampler, err := env.sampler()
	if err != nil {
		return nil, err
	}
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("exporting spans", "error", err) }))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("exporting spans: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "reprise"), attribute.String("service.version", version),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("exporting spans: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return newExporter(sampler, log, sdk.WithResource(about), sdk.WithBatcher(exporter, sdk.WithBlocking())), nil
}

func newExporter(s sdk.Sampler, log *slog.Logger, o ...sdk.TracerProviderOption) *Exporter {
	p := sdk.NewTracerProvider(append(o, sdk.WithSampler(s), sdk.WithIDGenerator(ids{}))...)
	return &Exporter{sampler: s, provider: p, tracer: p.Tracer("reprise"), log: log, back: map[job.ID]job.Millis{}}
}

// Lead is for engine.Options: it makes the span of its run the parent of what the
// worker of a delivery does.
func (x *Exporter) Lead(ctx context.Context) func([]engine.Delivery) {
	if x == nil {
		return nil
	}
	return func(list []engine.Delivery) {
		for i := range list {
			d := &list[i]
			if d.Voided || !d.Job.Sampled() || !x.samples(ctx, d.Job.Extras.Traceparent) {
				continue
			}
			j, extras := *d.Job, *d.Job.Extras
			extras.Traceparent = underSpan(extras.Traceparent, idOfRun(j.ID, d.Lease.Token.Hash()))
			j.Extras, d.Job = &extras, &j
		}
	}
}

// samples reports whether spans are made for a trace context.
func (x *Exporter) samples(ctx context.Context, traceparent string) bool {
	ctx = parentOf(ctx, traceparent)
	c := trace.SpanContextFromContext(ctx)
	return c.IsSampled() && x.sampler.ShouldSample(sdk.SamplingParameters{
		ParentContext: ctx, TraceID: c.TraceID(),
	}).Decision == sdk.RecordAndSample
}

// Listen begins to listen to an engine, which need not have started: runs that
// its start ends have spans, too.
func (x *Exporter) Listen(e *part.Engine) (err error) {
	if x == nil {
		return nil
	}
	x.since = e.Now()
	x.events, err = e.Meter.Listen(meter.EventFilter{Traced: true})
	return err
}

// Start begins to export. Close ends it, not the end of ctx: the last events
// come while the engine stops.
func (x *Exporter) Start(ctx context.Context) {
	if x == nil {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	x.done, x.stop = make(chan struct{}), stop
	go func() {
		defer close(x.done)
		x.follow(ctx)
	}()
}

// follow makes spans until the engine has stopped.
func (x *Exporter) follow(ctx context.Context) {
	for {
		list, lost, err := x.events.Next(ctx)
		if err != nil {
			return
		}
		for i := range list {
			x.tell(ctx, &list[i])
		}
		if lost > 0 {
			x.log.Warn("events were lost on the way to the collector, and their spans are missing", "events", lost)
		}
	}
}

// Close sends what there is, for as long as ctx allows. The engine has stopped.
func (x *Exporter) Close(ctx context.Context) {
	if x == nil {
		return
	}
	if x.done != nil {
		select {
		case <-x.done:
		case <-ctx.Done():
		}
		x.stop()
	}
	x.events.Close()
	if err := x.provider.Shutdown(ctx); err != nil {
		x.log.Warn("the last spans could not be sent", "error", err)
	}
}

// parentOf is a context with the trace context of a job.
func parentOf(ctx context.Context, traceparent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// under is a context with a span of the same trace as parent.
func under(ctx context.Context, s trace.SpanID) context.Context {
	return trace.ContextWithRemoteSpanContext(ctx, trace.SpanContextFromContext(ctx).WithSpanID(s))
}

// ids gives a span the id that its context asks for.
type ids struct{}

type idKey struct{}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	s, _ := ctx.Value(idKey{}).(trace.SpanID)
	return s
}

func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) { // not called: there always is a trace
	return trace.TraceID{}, g.NewSpanID(ctx, trace.TraceID{})
}

func date(m job.Millis) time.Time { return time.UnixMilli(int64(m)) }
