package trace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
)

var always = sdk.AlwaysSample()

func TestAWaitBeginsWhenTheJobWasGivenBack(t *testing.T) {
	scenario(t, always, func(r *rig) {
		r.put()
		pass(time.Second)
		d := r.take()
		pass(2 * time.Second)
		r.settle(d, job.Released)
		pass(4 * time.Second)
		d = r.take()
		pass(8 * time.Second)
		r.settle(d, job.OK)
		r.tells("enqueue q 0-0", "wait q 1 0-1", "run q 1 release 1-3", "wait q 1 3-7 after 2", "run q 1 ok 7-15 after 2")
	})
}

func TestAWaitBeginsWhenTheRetryIsDue(t *testing.T) {
	scenario(t, always, func(r *rig) {
		r.put(func(j *job.Job) {
			j.Retry = &job.Retry{Curve: &job.Curve{Kind: job.CurveList, Delays: []job.Millis{10 * job.Second}}}
		})
		r.settle(r.take(), job.Retried)
		pass(15 * time.Second)
		r.settle(r.take(), job.Died)
		r.tells("enqueue q 0-0", "wait q 1 0-0", "run q 1 retry _OTHER 0-0", "wait q 2 10-15 after 2", "run q 2 dead killed _OTHER 15-15 after 2")
	})
}

func TestWhatNobodySaysIsToldToo(t *testing.T) {
	for _, c := range []struct {
		what, outcome string
		edit          func(*job.Job)
		ends          string // seconds
	}{
		{"a lease that is not extended", "lapse lapse", func(*job.Job) {}, "60"},
		{"a run that takes too long", "run_timeout run_timeout", func(j *job.Job) { j.RunTimeout = 20 * job.Second }, "20"},
		{"a run that never begins", "start_timeout start_timeout", func(j *job.Job) { j.StartTimeout = 30 * job.Second }, "30"},
	} {
		t.Run(c.what, func(t *testing.T) {
			scenario(t, always, func(r *rig) {
				r.put(c.edit)
				r.take()
				pass(time.Minute)
				r.tells("enqueue q 0-0", "wait q 1 0-0", "run q 1 "+c.outcome+" 0-"+c.ends)
			})
		})
	}
}

func TestARunThatARestartEndsIsTold(t *testing.T) {
	for what, restart := range map[string]func(*rig){
		"a crash": (*rig).die,
		"a stop":  func(r *rig) { r.stop(); r.start() },
	} {
		t.Run(what, func(t *testing.T) {
			scenario(t, always, func(r *rig) {
				r.put()
				s, err := r.Stream(r.Context(), engine.StreamOptions{Prefetch: 1})
				if err != nil {
					t.Fatal(err)
				}
				list, err := s.Next(r.Context())
				if err != nil || len(list) != 1 {
					t.Fatal(list, err)
				}
				pass(5 * time.Second)
				restart(r)
				pass(5 * time.Second)
				r.settle(r.take(), job.OK)
				r.tells("enqueue q 0-0", "wait q 1 0-0", "run q 1 restart 0-5", "wait q 1 5-10 after 2", "run q 1 ok 10-10 after 2")
			})
		})
	}
}

func TestARunThatOutlivesACrashIsOneSpan(t *testing.T) {
	scenario(t, always, func(r *rig) {
		r.put()
		d := r.take()
		pass(5 * time.Second)
		r.die()
		pass(5 * time.Second)
		r.settle(d, job.OK)
		r.tells("enqueue q 0-0", "wait q 1 0-0", "run q 1 ok 0-10")
	})
}

func TestTheLateWordOfARunIsTold(t *testing.T) {
	scenario(t, always, func(r *rig) {
		r.put()
		d := r.take()
		pass(70 * time.Second)
		r.settle(d, job.OK)
		r.tells("enqueue q 0-0", "wait q 1 0-0", "run q 1 lapse lapse 0-60", "settle q ok 70-70 after 2")
	})
}

func TestCopiesHaveRunsOfTheirOwn(t *testing.T) {
	scenario(t, always, func(r *rig) {
		r.put(func(j *job.Job) { j.Copies = 2 })
		r.take()
		list, err := r.Lease(r.Context(), engine.LeaseOptions{Worker: "v", For: job.Minute})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		r.settle(list[0], job.OK)
		r.tells("enqueue q 0-0", "wait q 1 0-0", "wait q 1 0-0", "run q 1 supersede 0-0", "run q 1 ok 0-0")
	})
}

func TestAJobThatDiesWaitingHasALastWait(t *testing.T) {
	scenario(t, always, func(r *rig) {
		r.put(func(j *job.Job) { j.ExpiresAt = r.Wall() + 40*job.Second })
		pass(time.Minute)
		r.tells("enqueue q 0-0", "wait q 1 expired 0-40")
	})
}

func TestACancelledRunEnds(t *testing.T) {
	scenario(t, always, func(r *rig) {
		id := r.put()
		r.take()
		pass(time.Second)
		if _, err := r.Desk.Do(r.Context(), job.Actor{}, desk.Cancel(job.Actor{}, "why"), id); err != nil {
			t.Fatal(err)
		}
		r.tells("enqueue q 0-0", "wait q 1 0-0", "run q 1 cancel cancelled 0-1")
	})
}

func TestAReplayIsLinkedToTheRunThatDied(t *testing.T) {
	scenario(t, always, func(r *rig) {
		id := r.put()
		r.settle(r.take(), job.Died)
		pass(time.Minute)
		if _, err := r.Dead.Revive(r.Context(), id, deadset.Revival{}, job.Actor{}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		r.settle(r.take(), job.OK)
		r.tells("enqueue q 0-0", "wait q 1 0-0", "run q 1 dead killed _OTHER 0-0", "wait q 1 60-61 after 2", "run q 1 ok 61-61 after 2")
	})
}

// Whether spans are made and whether a worker is told of them is one decision.
func TestTheWorkersParentIsASpanThatIsMade(t *testing.T) {
	for _, c := range []struct {
		what    string
		sampler sdk.Sampler
		sent    string
		made    bool
	}{
		{"sampled", always, producers, true},
		{"not sampled by its caller", always, producers[:len(producers)-2] + "00", false},
		{"without a trace", always, "", false},
		{"not sampled here", sdk.NeverSample(), producers, false},
		{"in the share", sdk.TraceIDRatioBased(0.9), producers, true},
		{"not in the share", sdk.TraceIDRatioBased(0.0001), producers, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			scenario(t, c.sampler, func(r *rig) {
				r.put(func(j *job.Job) { j.Extras = &job.Extras{Traceparent: c.sent} })
				d := r.take()
				given := d.Job.Extras.Traceparent
				r.settle(d, job.OK)
				if !c.made {
					r.tells()
					if given != c.sent {
						t.Errorf("the worker is given %q, sent was %q", given, c.sent)
					}
					return
				}
				r.tells("enqueue q 0-0", "wait q 1 0-0", "run q 1 ok 0-0")
				run := r.spans.GetSpans()[2].SpanContext.SpanID().String()
				if want := "00-" + traceID + "-" + run + "-01"; given != want {
					t.Errorf("the worker is given %q, want %q", given, want)
				}
			})
		})
	}
}

func TestADeliveryIsLedByItsRunOnlyWhereSpansAreMade(t *testing.T) {
	scenario(t, always, func(r *rig) {
		id := r.put()
		r.put(func(j *job.Job) { j.Extras.Traceparent = producers[:len(producers)-2] + "00" })
		given := func() []engine.Delivery {
			s, err := r.Stream(r.Context(), engine.StreamOptions{Name: "w", Prefetch: 2})
			if err != nil {
				t.Fatal(err)
			}
			list, err := s.Next(r.Context())
			if err != nil || len(list) != 2 {
				t.Fatalf("%d were delivered, %v", len(list), err)
			}
			return list
		}
		list := given()
		want := fmt.Sprintf("%s%s-01", producers[:36], idOfRun(id, list[0].Lease.Token.Hash()))
		if got := list[0].Job.Extras.Traceparent; got != want {
			t.Errorf("it is given with %q, want %q", got, want)
		}
		if got := list[1].Job.Extras.Traceparent; got != producers[:len(producers)-2]+"00" {
			t.Errorf("one that is not sampled is given with %q", got)
		}
		if j, _, err := r.Get(r.Context(), id); err != nil || j.Extras.Traceparent != producers {
			t.Errorf("the job is kept as %+v, %v", j, err)
		}
		if got := given()[0].Job.Extras.Traceparent; got != want { // its worker comes back, and so does its run
			t.Errorf("given again with %q, before with %q", got, want)
		}
	})
}

func TestSettings(t *testing.T) {
	const on = "OTEL_EXPORTER_OTLP_ENDPOINT"
	env := func(list ...string) Env {
		m := map[string]string{}
		for i := 0; i < len(list); i += 2 {
			m[list[i]] = list[i+1]
		}
		return func(name string) string { return m[name] }
	}
	for _, c := range []struct {
		env     Env
		wanted  bool
		refused string // the variable
	}{
		{env(), false, ""},
		{env(on, "http://c:4318"), true, ""},
		{env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/v1/traces"), true, ""},
		{env(on, "http://c", "OTEL_SDK_DISABLED", "true"), false, ""},
		{env(on, "http://c", "OTEL_TRACES_EXPORTER", "none"), false, ""},
		{env(on, "http://c", "OTEL_TRACES_EXPORTER", "zipkin"), false, "OTEL_TRACES_EXPORTER"},
		{env(on, "c:4317"), false, on},
		{env(on, "ftp://c"), false, on},
		{env(on, "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), false, "OTEL_EXPORTER_OTLP_PROTOCOL"},
		{env(on, "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"), true, ""},
		{env(on, "http://c", "OTEL_EXPORTER_OTLP_HEADERS", "a=b, c=d%20e"), true, ""},
		{env(on, "http://c", "OTEL_EXPORTER_OTLP_HEADERS", "hush"), false, "OTEL_EXPORTER_OTLP_HEADERS"},
		{env(on, "http://c", "OTEL_EXPORTER_OTLP_HEADERS", "a=hush%2"), false, "OTEL_EXPORTER_OTLP_HEADERS"},
		{env(on, "http://c", "OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.5"), true, ""},
		{env(on, "http://c", "OTEL_TRACES_SAMPLER", "traceidratio"), true, ""},
		{env(on, "http://c", "OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "2"), false, "OTEL_TRACES_SAMPLER_ARG"},
		{env(on, "http://c", "OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", "x"), false, "OTEL_TRACES_SAMPLER_ARG"},
		{env(on, "http://c", "OTEL_TRACES_SAMPLER", "jaeger_remote"), false, "OTEL_TRACES_SAMPLER"},
	} {
		wanted, err := c.env.wanted()
		if err == nil && wanted {
			_, err = c.env.sampler()
		}
		switch {
		case c.refused == "" && (err != nil || wanted != c.wanted):
			t.Errorf("wanted %v, %v; want %v", wanted, err, c.wanted)
		case c.refused != "" && (err == nil || !strings.HasPrefix(err.Error(), c.refused+" must") || strings.Contains(err.Error(), "hush")):
			t.Errorf("%v, want a refusal of %s", err, c.refused)
		}
	}
	x, err := New(t.Context(), env(), "v", nil)
	if x != nil || err != nil || x.Lead(t.Context()) != nil || x.Listen(nil) != nil {
		t.Errorf("without a setting there is an exporter: %v, %v", x, err)
	}
	x.Start(t.Context())
	x.Close(t.Context())
}
