package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

func TestABrokenConnectionStartsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 6)
		gate := make(chan struct{})
		w := start(t, c, WorkerOptions{Concurrency: 2, Prefetch: 4}, func(context.Context, *Delivery) error { <-gate; return nil })
		f.want(t, wire.InFlight, 4) // two run, two wait
		for range 3 {
			f.ln.fall()
			synctest.Wait()
			f.ln.rise()
			pass(10 * time.Second)
		}
		if n := w.count("connected"); n != 4 {
			t.Fatalf("connected %d times: %q", n, w.lines)
		}
		close(gate)
		pass(time.Second)
		if err := w.end(); err != nil {
			t.Error(err)
		}
		f.want(t, wire.Completed, 6)
		if n := w.count("started"); n != 6 {
			t.Errorf("started %d attempts for 6 jobs: %q", n, w.lines)
		}
		if n := w.count("refused"); n != 0 {
			t.Errorf("%q", w.lines)
		}
	})
}

func TestAReturningWorkerIsGivenWhatItHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 2)
		f.mu.Lock()
		f.lease(f.jobs[0], "w1") // by a process of this name that was killed
		f.mu.Unlock()
		w := start(t, c, WorkerOptions{ID: "w1", JobsMax: 2, Prefetch: 1}, nothing)
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		f.want(t, wire.Completed, 2)
		if w.lines[1] != "started 0" {
			t.Errorf("%q", w.lines)
		}
	})
}

func TestADeliveryUnderANewTokenJoinsTheRunThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		gate := make(chan struct{})
		w := start(t, c, WorkerOptions{Concurrency: 2}, func(context.Context, *Delivery) error { <-gate; return nil })
		f.mu.Lock() // the lease lapsed, and the job comes to this worker again
		f.jobs[0].Status, f.jobs[0].holder, f.jobs[0].Lease = wire.Ready, "", ""
		f.changed()
		f.mu.Unlock()
		synctest.Wait()
		f.want(t, wire.InFlight, 1)
		close(gate)
		synctest.Wait()
		f.want(t, wire.Completed, 1)
		if w.count("started") != 1 || w.count("refused") != 0 {
			t.Errorf("%q", w.lines)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestARetryThatComesBackBeforeItsVerdictRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		// The server applies the settle and redelivers, but its answer is lost.
		lost := false
		f.refuse = func(r *http.Request) *refusal {
			if r.URL.Path != "/jobs/settle" || lost {
				return nil
			}
			lost = true
			var list []wire.Settle
			f.read(r, &list)
			f.settle(list)
			return &refusal{hangUp: true}
		}
		w := start(t, c, WorkerOptions{Concurrency: 2}, func(_ context.Context, d *Delivery) error {
			if d.Attempt() == 1 {
				return errors.New("once more")
			}
			return nil
		})
		pass(2 * time.Second)
		f.want(t, wire.Completed, 1)
		if w.count("started") != 2 {
			t.Errorf("%q", w.lines)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestAJobThatWasJustSettledIsNotStartedFromAStaleOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		w := start(t, c, WorkerOptions{ID: "w1"}, nothing)
		f.want(t, wire.Completed, 1)
		f.mu.Lock() // the offer was written before the settle came in
		f.jobs[0].Lease, f.jobs[0].holder = f.settles[0].Lease, "w1"
		f.mu.Unlock()
		f.ln.fall()
		synctest.Wait()
		f.ln.rise()
		pass(5 * time.Second)
		if w.count("connected") != 2 || w.count("started") != 1 {
			t.Errorf("%q", w.lines)
		}
		_ = w.end()
	})
}

func TestASilentStreamIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		w := start(t, c, WorkerOptions{}, nothing)
		pass(2 * time.Minute)
		if f.takes != 1 {
			t.Fatalf("heartbeats were not heard: %q", w.lines)
		}
		f.mu.Lock()
		f.silent = true
		f.mu.Unlock()
		pass(36 * time.Second)
		if f.takes != 2 || w.count("disconnected: the stream fell silent") != 1 {
			t.Errorf("%d streams: %q", f.takes, w.lines)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestARefusedStreamEndsTheWorkerAndTemporaryTroubleDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		var no atomic.Pointer[refusal]
		no.Store(&refusal{status: 503, code: wire.CodeUnavailable, retryAfter: "20"})
		f.refuse = func(*http.Request) *refusal { return no.Load() }
		begin := time.Now()
		w := start(t, c, WorkerOptions{}, nothing)
		pass(50 * time.Second)
		if n := w.count("disconnected"); n != 3 {
			t.Errorf("Retry-After was not kept: %d tries in %s", n, time.Since(begin))
		}
		no.Store(&refusal{status: 400, code: wire.CodeInvalid})
		if err := <-w.done; CodeOf(err) != wire.CodeInvalid {
			t.Errorf("%v", err)
		}
	})
}

func TestAServerWithoutTokensIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.mu.Lock()
		f.fillAs("w1")
		f.mu.Unlock()
		w := start(t, c, WorkerOptions{ID: "w1"}, nothing)
		if err := <-w.done; !errors.Is(err, errTokenless) {
			t.Errorf("%v", err)
		}
	})
}

// fillAs adds a job that w holds without a token.
func (f *fake) fillAs(w string) {
	f.jobs = append(f.jobs, &fakeJob{Job: wire.Job{ID: "a", Status: wire.InFlight}, holder: w})
}

func TestAStreamWithNoiseIsOpenedAgain(t *testing.T) {
	for name, line := range map[string]string{
		"not JSON":   "<html>\n",
		"half a job": `{"id":"x"`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := newFake(t, Options{})
				calls := 0
				c.takes.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
					if calls++; calls == 1 {
						return &http.Response{StatusCode: 200, Body: body(line), Request: r}, nil
					}
					return c.calls.Transport.RoundTrip(r)
				})
				w := start(t, c, WorkerOptions{}, nothing)
				pass(time.Second)
				if w.count("connected") != 2 || w.count("disconnected") != 1 {
					t.Errorf("%q", w.lines)
				}
				_ = w.end()
			})
		})
	}
}

func TestLinesLargerThanTheBufferAreReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		want := `"` + strings.Repeat("x", 300_000) + `"`
		f.put(wire.Enqueue{Queue: "q", Type: "t", Payload: []byte(want)})
		f.fill("q", 1)
		var got []int
		w := start(t, c, WorkerOptions{JobsMax: 2}, func(_ context.Context, d *Delivery) error {
			got = append(got, len(d.Job.Payload))
			return nil
		})
		if err := <-w.done; err != nil || !slices.Equal(got, []int{len(want), 1}) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type textBody struct{ *strings.Reader }

func (textBody) Close() error { return nil }

func body(s string) textBody { return textBody{strings.NewReader(s)} }
