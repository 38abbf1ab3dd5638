package trace

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

const (
	traceID   = "0af7651916cd43dd8448eb211c80319c"
	producers = "00-" + traceID + "-b7ad6b7169203331-01"
)

// rig is an engine on a store in memory, in a bubble of fake time, and the
// spans that were made of its events.
type rig struct {
	*testing.T
	*part.Engine
	spans   *tracetest.InMemoryExporter
	x       *Exporter
	sampler sdk.Sampler
	mem     *mem.Store
	rnd     func() uint64
	began   time.Time
}

func scenario(t *testing.T, s sdk.Sampler, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{
			T: t, sampler: s, spans: tracetest.NewInMemoryExporter(), began: time.Now(),
			rnd: rand.New(rand.NewPCG(1, 2)).Uint64,
		}
		r.mem = mem.Open(mem.Options{
			Now: r.Wall, Rand: rand.New(rand.NewPCG(3, 4)), Free: func() (int64, int64) { return 1000, 1000 },
		})
		r.start()
		defer func() { r.stop() }()
		f(r)
	})
}

// Wall and Steady make the rig its engine's clock.
func (r *rig) Wall() job.Millis   { return job.Millis(time.Now().UnixMilli()) }
func (r *rig) Steady() job.Millis { return r.Wall() }

func (r *rig) start() {
	r.Helper()
	r.x = newExporter(r.sampler, slog.New(slog.DiscardHandler), sdk.WithSyncer(r.spans))
	r.Engine = part.New(r.mem, r, r.rnd, slog.New(slog.DiscardHandler), engine.Options{
		Server: rule.DefaultServer(), Reattach: 30 * job.Second, Lead: r.x.Lead(r.Context()),
	})
	if err := r.x.Listen(r.Engine); err != nil {
		r.Fatal(err)
	}
	if err := r.Start(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.x.Start(r.Context())
}

func (r *rig) stop() {
	r.Helper()
	ctx := context.Background()
	if err := r.Stop(ctx); err != nil {
		r.Error(err)
	}
	kept := r.spans.GetSpans()
	defer func() { // Shutdown forgets
		r.spans = tracetest.NewInMemoryExporter()
		_ = r.spans.ExportSpans(ctx, kept.Snapshots())
	}()
	select {
	case <-r.x.done:
		kept = r.spans.GetSpans()
	case <-time.After(time.Hour):
		r.Error("the exporter goes on though the engine has stopped")
	}
	r.x.Close(ctx)
}

// die ends the server without a word, with all it did on disk, and begins a new
// life.
func (r *rig) die() {
	r.Helper()
	if err := r.mem.Sync(); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
	r.mem.PowerCut(rand.New(rand.NewPCG(5, 6)))
	r.stop()
	if err := r.mem.Reopen(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.start()
}

func pass(span time.Duration) {
	timer := time.NewTimer(span)
	<-timer.C
	synctest.Wait()
}

func (r *rig) put(edits ...func(*job.Job)) job.ID {
	r.Helper()
	n := engine.NewJob{Payload: []byte("1"), Job: job.Job{
		Queue: "q", Type: "t", Priority: job.PriorityDefault, RetainDone: job.Unset, RetainDead: job.Unset,
		Extras: &job.Extras{Traceparent: producers},
	}}
	for _, edit := range edits {
		edit(&n.Job)
	}
	added, err := r.Put(r.Context(), []engine.NewJob{n})
	if err != nil {
		r.Fatal(err)
	}
	return added[0].ID
}

// take leases one job for a minute.
func (r *rig) take() engine.Delivery {
	r.Helper()
	list, err := r.Lease(r.Context(), engine.LeaseOptions{Worker: "w", For: job.Minute})
	if err != nil || len(list) != 1 {
		r.Fatalf("%d jobs were leased, %v", len(list), err)
	}
	return list[0]
}

func (r *rig) settle(d engine.Delivery, o job.Outcome) {
	r.Helper()
	list, err := r.Settle(r.Context(), []engine.Settle{{
		ID: d.Job.ID, Token: d.Lease.Token, Outcome: o, Failure: job.Failure{Message: "boom"},
	}})
	if err != nil || list[0].Err != nil {
		r.Fatal(err, list)
	}
}

// tells wants exactly these spans, in the order in which they were made: name,
// attempt, outcome, error and seconds since the beginning, and the place of the
// span that it is linked to.
func (r *rig) tells(want ...string) {
	r.Helper()
	synctest.Wait()
	var got []string
	at := map[string]int{}
	spans := r.spans.GetSpans()
	for i, s := range spans {
		at[s.SpanContext.SpanID().String()] = i
	}
	for _, s := range spans {
		about := map[string]string{}
		for _, kv := range s.Attributes {
			about[string(kv.Key)] = kv.Value.String()
		}
		words := strings.Fields(strings.Join([]string{
			s.Name, about["reprise.attempt"], about["reprise.outcome"], about["reprise.reason"], about["error.type"],
		}, " "))
		line := strings.Join(words, " ") + fmt.Sprintf(" %v-%v", s.StartTime.Sub(r.began).Seconds(), s.EndTime.Sub(r.began).Seconds())
		for _, l := range s.Links {
			if i, ok := at[l.SpanContext.SpanID().String()]; ok {
				line += fmt.Sprintf(" after %d", i)
			} else {
				line += " after one that was never made"
			}
		}
		got = append(got, line)
	}
	if len(at) != len(spans) || !slices.Equal(got, want) {
		r.Errorf("%d spans, %d ids\n got %s\nwant %s", len(spans), len(at), strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
