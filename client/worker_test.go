package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// diary writes down what a worker does, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) count(prefix string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

func (d *diary) events() Events {
	return Events{
		Connected:    func() { d.note("connected") },
		Disconnected: func(err error, _ time.Duration) { d.note("disconnected: %v", err) },
		Lost:         func(j *Delivery) { d.note("lost %s", j.Job.Payload) },
		Started:      func(j *Delivery) { d.note("started %s", j.Job.Payload) },
		Finished: func(j *Delivery, outcome string, _ error, _ time.Duration) {
			d.note("finished %s: %s", j.Job.Payload, outcome)
		},
		Settled:  func(s wire.Settle, v wire.Verdict) { d.note("settled %s: %s", s.Outcome, v.Status) },
		Refused:  func(s wire.Settle, v wire.Verdict) { d.note("refused %s: %s", s.Outcome, v.Code) },
		Delayed:  func(n int, err error, _ time.Duration) { d.note("delayed %d: %v", n, err) },
		Draining: func(running, unstarted int) { d.note("draining %d running, %d unstarted", running, unstarted) },
	}
}

// started is a worker that runs in the background of a test.
type started struct {
	*diary
	stop func()
	done chan error
}

// end stops the worker and returns what Run returned.
func (s *started) end() error {
	s.stop()
	return <-s.done
}

// pass lets time of the synthetic clock go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func start(t *testing.T, c *Client, o WorkerOptions, handle Handler) *started {
	t.Helper()
	s := &started{diary: &diary{}, done: make(chan error, 1)}
	o.Events = s.events()
	w, err := NewWorker(c, handle, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() { s.done <- w.Run(ctx) }()
	t.Cleanup(stop)
	synctest.Wait()
	return s
}

func nothing(context.Context, *Delivery) error { return nil }

func (f *fake) want(t *testing.T, status string, n int) {
	t.Helper()
	if got := f.statuses(); got[status] != n {
		t.Errorf("%d jobs are %s, want %d (%v)", got[status], status, n, got)
	}
}

func TestAWorkerRunsEachJobOnceAndSettlesInBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 500)
		f.fill("other", 3)
		var mu sync.Mutex
		runs := map[string]int{}
		now, most := 0, 0
		w := start(t, c, WorkerOptions{Queues: []string{"q"}, Concurrency: 8, Prefetch: 100}, func(_ context.Context, d *Delivery) error {
			mu.Lock()
			runs[string(d.Job.Payload)]++
			now++
			most = max(most, now)
			mu.Unlock()
			<-time.After(time.Millisecond) // of the synthetic clock: lets others start
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		})
		pass(2 * time.Second)
		if err := w.end(); err != nil {
			t.Error(err)
		}
		f.want(t, wire.Completed, 500)
		f.want(t, wire.Ready, 3)
		if len(runs) != 500 || most != 8 {
			t.Errorf("%d payloads ran, at most %d at a time", len(runs), most)
		}
		for payload, n := range runs {
			if n != 1 {
				t.Errorf("%s ran %d times", payload, n)
			}
		}
		if len(f.calls) > 400 {
			t.Errorf("%d settle calls for 500 jobs: they are not gathered", len(f.calls))
		}
	})
}

func TestWhatAHandlerReturnsDecides(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		name   string
		err    error
		status string
		check  func(wire.Settle) bool
	}{
		{"nil is done", nil, wire.Completed, func(s wire.Settle) bool { return s.Error == nil }},
		{"an error is tried again", fmt.Errorf("sending: %w", boom), wire.Ready, func(s wire.Settle) bool {
			return s.Error.Message == "sending: boom" && s.Error.ErrorType == "" && s.RetryInMS == nil
		}},
		{"a Go type tells", fmt.Errorf("sending: %w", &Error{Status: 500}), wire.Ready, func(s wire.Settle) bool {
			return s.Error.ErrorType == "client.Error"
		}},
		{"Dead", fmt.Errorf("wrapped: %w", Dead(boom)), wire.Dead, func(s wire.Settle) bool { return s.Error.Message == "wrapped: boom" }},
		{"Dead without a reason", Dead(nil), wire.Dead, func(s wire.Settle) bool { return s.Error.Message != "" }},
		{"Release at once", Release(0), wire.Ready, func(s wire.Settle) bool { return s.Error == nil && s.DelayMS == 0 }},
		{"Release for later", Release(1500 * time.Microsecond), wire.Scheduled, func(s wire.Settle) bool { return s.DelayMS == 2 }},
		{"RetryIn", RetryIn(boom, time.Second), wire.Scheduled, func(s wire.Settle) bool { return *s.RetryInMS == 1000 }},
		{"RetryIn nothing", RetryIn(boom, 0), wire.Scheduled, func(s wire.Settle) bool { return *s.RetryInMS == 0 }},
		{"RetryAt", RetryAt(boom, time.UnixMilli(5)), wire.Scheduled, func(s wire.Settle) bool { return s.RetryAt == 5 && s.RetryInMS == nil }},
		{"RetryAfter", RetryAfter(boom, 3*time.Second), wire.Scheduled, func(s wire.Settle) bool { return s.RetryAfterMS == 3000 && s.RetryInMS == nil }},
		{"a Failure", Dead(&Failure{Type: "http", Status: 410, Backtrace: "trace", Err: boom}), wire.Dead, func(s wire.Settle) bool {
			return *s.Error == wire.Failure{Message: "boom", ErrorType: "http", Backtrace: "trace", Status: 410}
		}},
		{"long texts are cut", &Failure{Message: strings.Repeat("é", 9000)}, wire.Ready, func(s wire.Settle) bool {
			return len(s.Error.Message) <= messageBytesMax+len("…")
		}},
		{"no text", errors.New(""), wire.Ready, func(s wire.Settle) bool { return s.Error.Message != "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFake(t, Options{})
				f.fill("q", 1)
				w := start(t, c, WorkerOptions{JobsMax: 1}, func(context.Context, *Delivery) error { return tt.err })
				if err := <-w.done; err != nil {
					t.Fatal(err)
				}
				f.want(t, tt.status, 1)
				if len(f.settles) == 0 || !tt.check(f.settles[0]) || f.settles[0].StartedAt == 0 {
					t.Errorf("settled as %+v", f.settles)
				}
			})
		})
	}
}

func TestAPanicIsAFailureWithItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 2)
		w := start(t, c, WorkerOptions{JobsMax: 2}, func(_ context.Context, d *Delivery) error {
			if string(d.Job.Payload) == "0" && d.Attempt() == 1 {
				panic("no such luck")
			}
			return nil
		})
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		e := f.settles[0].Error
		if e == nil || e.ErrorType != "panic" || !strings.Contains(e.Message, "no such luck") || !strings.Contains(e.Backtrace, "worker_test.go") {
			t.Errorf("%+v", e)
		}
	})
}

func TestAPayloadOfTheWrongTypeIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		w := start(t, c, WorkerOptions{JobsMax: 1}, Typed(func(context.Context, string, *Delivery) error { return nil }))
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		f.want(t, wire.Dead, 1)
	})
}

func TestTheRunTimeoutOfAJobEndsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.put(wire.Enqueue{Queue: "q", Type: "t", RunTimeoutMS: 700})
		var took time.Duration
		w := start(t, c, WorkerOptions{JobsMax: 1}, func(ctx context.Context, _ *Delivery) error {
			begin := time.Now()
			<-ctx.Done()
			took = time.Since(begin)
			return context.Cause(ctx)
		})
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		if e := f.settles[0].Error; took != 700*time.Millisecond || e == nil || !strings.Contains(e.Message, "run timeout of 700ms") {
			t.Errorf("ended after %s: %+v", took, f.settles[0])
		}
	})
}

func TestAWorkerSaysWhenARunBeginsIfThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		f.put(wire.Enqueue{Queue: "q", Type: "t", RunTimeoutMS: 1000})
		f.mu.Lock()
		f.jobs = append(f.jobs, &fakeJob{Job: wire.Job{ID: "by-queue", Queue: "q", Status: wire.Ready, StartBy: 5}})
		f.changed()
		f.mu.Unlock()
		w := start(t, c, WorkerOptions{JobsMax: 3}, nothing)
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		if want := []string{f.jobs[1].ID, "by-queue"}; !slices.Equal(f.begun, want) {
			t.Errorf("said to have begun: %q, want %q", f.begun, want)
		}
	})
}

func TestAJobWhoseLeaseEndedWhileItWaitedIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.put(wire.Enqueue{Queue: "q", Type: "t", Payload: []byte("0")})
		f.put(wire.Enqueue{Queue: "q", Type: "t", Payload: []byte("1"), RunTimeoutMS: 1000})
		gate := make(chan struct{})
		w := start(t, c, WorkerOptions{Prefetch: 2}, func(context.Context, *Delivery) error { <-gate; return nil })
		f.mu.Lock()
		f.jobs[1].Lease, f.jobs[1].holder = "of somebody else", "w2"
		f.mu.Unlock()
		close(gate)
		synctest.Wait()
		if w.count("lost 1") != 1 || w.count("started 1") != 0 || w.count("settled") != 1 {
			t.Errorf("%q", w.lines)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
}

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

func TestOutcomesWaitForTheServerAndGoWithTheReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 3)
		gate := make(chan struct{})
		w := start(t, c, WorkerOptions{Concurrency: 3}, func(context.Context, *Delivery) error { <-gate; return nil })
		f.ln.fall()
		close(gate)
		pass(40 * time.Second) // the waits for a settle have grown to half a minute by now
		if w.count("delayed") < 3 || w.count("settled") != 0 {
			t.Errorf("%q", w.lines)
		}
		f.ln.rise()
		pass(5100 * time.Millisecond) // at most one wait for the stream
		f.want(t, wire.Completed, 3)
		if err := w.end(); err != nil {
			t.Error(err)
		}
		if w.count("started") != 3 {
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

func TestAnOutcomeRefusedByNameIsToldAndNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		w := start(t, c, WorkerOptions{}, func(_ context.Context, d *Delivery) error { f.remove(d.Job.ID); return nil })
		pass(time.Minute)
		if w.count("refused ok: not_found") != 1 || len(f.calls) != 1 {
			t.Errorf("%d calls: %q", len(f.calls), w.lines)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnOutcomeThatMayPassLaterIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		settled := &diary{}
		events := settled.events()
		s := newSettler(func(_ context.Context, list []wire.Settle) ([]wire.Verdict, error) {
			calls++
			out := make([]wire.Verdict, len(list))
			for i := range list {
				if out[i].ID = list[i].ID; i == 0 && calls == 1 {
					out[i].Code = wire.CodeUnavailable
				}
			}
			return out, nil
		}, &events, times{}.orDefault())
		s.answer = func(e wire.Settle, _ wire.Verdict) { settled.note("answered %s", e.ID) }
		s.add(wire.Settle{ID: "a"})
		s.add(wire.Settle{ID: "b"})
		s.close()
		s.run(t.Context())
		if want := []string{"answered b", "delayed 1: ", "answered a"}; calls != 2 || len(settled.lines) != 3 ||
			!slices.EqualFunc(settled.lines, want, strings.HasPrefix) {
			t.Errorf("%d calls: %q", calls, settled.lines)
		}
	})
}

func TestAnOutcomeWhoseAnswerWasLostCountsAsTakenOnceTheJobIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		lost := false
		f.refuse = func(r *http.Request) *refusal {
			if r.URL.Path != "/jobs/settle" || lost {
				return nil
			}
			lost = true
			var list []wire.Settle
			f.read(r, &list)
			f.settle(list)
			f.remove(list[0].ID) // completed jobs leave at once
			return &refusal{hangUp: true}
		}
		w := start(t, c, WorkerOptions{}, nothing)
		pass(2 * time.Second)
		if w.count("settled ok: completed") != 1 || w.count("refused") != 0 {
			t.Errorf("%q", w.lines)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestACallThatIsRefusedWholeIsTakenApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		events := d.events()
		s := newSettler(func(_ context.Context, list []wire.Settle) ([]wire.Verdict, error) {
			if slices.ContainsFunc(list, func(s wire.Settle) bool { return s.ID == "bad" }) {
				return nil, &Error{Status: 413, Code: wire.CodeTooLarge}
			}
			return make([]wire.Verdict, len(list)), nil
		}, &events, times{}.orDefault())
		s.answer = func(e wire.Settle, v wire.Verdict) { d.note("%s %s", e.ID, v.Code) }
		for _, id := range strings.Split("a b c bad d e", " ") {
			s.add(wire.Settle{ID: id})
		}
		s.close()
		s.run(t.Context())
		if got := strings.Join(d.lines, "|"); got != "a |b |c |bad too_large|d |e " {
			t.Errorf("%s", got)
		}
	})
}

func TestADrainFinishesWhatRunsAndGivesBackTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 10)
		gate := make(chan struct{})
		w := start(t, c, WorkerOptions{Concurrency: 2, Prefetch: 6}, func(context.Context, *Delivery) error { <-gate; return nil })
		f.want(t, wire.InFlight, 6)
		w.stop()
		pass(20 * time.Second)
		f.want(t, wire.InFlight, 2) // and no others were taken in their place
		f.want(t, wire.Ready, 8)
		if len(f.streams) != 1 {
			t.Error("the worker is not present while it drains: its leases would lapse")
		}
		close(gate)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
		f.want(t, wire.Completed, 2)
		f.want(t, wire.Ready, 8)
		if w.count("draining 2 running, 4 unstarted") != 1 || w.count("started") != 2 {
			t.Errorf("%q", w.lines)
		}
	})
}

func TestADrainGivesBackWhatWasLostOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 3)
		w := start(t, c, WorkerOptions{ID: "w1", Queues: []string{"none"}}, nothing)
		f.mu.Lock() // given to the worker, but its line never arrived
		f.lease(f.jobs[1], "w1")
		f.mu.Unlock()
		if err := w.end(); err != nil {
			t.Error(err)
		}
		f.want(t, wire.Ready, 3)
		if w.count("started") != 0 {
			t.Errorf("%q", w.lines)
		}
	})
}

func TestADrainThatTakesTooLongStopsHandlersAndBlamesNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 2)
		w := start(t, c, WorkerOptions{Concurrency: 2, DrainTimeout: 8 * time.Second}, func(ctx context.Context, d *Delivery) error {
			<-ctx.Done()
			if string(d.Job.Payload) == "1" {
				return Dead(errors.New("this one knows"))
			}
			return ctx.Err()
		})
		begin := time.Now()
		if err := w.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != 8*time.Second {
			t.Errorf("took %s", took)
		}
		f.want(t, wire.Ready, 1)
		f.want(t, wire.Dead, 1)
		if f.jobs[0].Attempts != 0 {
			t.Error("the job was charged for our drain")
		}
	})
}

func TestAHandlerThatIgnoresTheEndIsLeftBehindAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		gate := make(chan struct{})
		defer close(gate)
		w := start(t, c, WorkerOptions{}, func(context.Context, *Delivery) error { <-gate; return nil })
		err := w.end()
		if err == nil || !strings.Contains(err.Error(), "1 handlers did not return") {
			t.Errorf("%v", err)
		}
		f.want(t, wire.InFlight, 1) // it must not run twice at once
	})
}

func TestADrainWithoutAServerEndsAndTellsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 3)
		gate := make(chan struct{})
		w := start(t, c, WorkerOptions{Concurrency: 2, Prefetch: 3}, func(context.Context, *Delivery) error { <-gate; return nil })
		f.ln.fall()
		close(gate)
		begin := time.Now()
		err := w.end()
		if err == nil || !strings.Contains(err.Error(), "did not reach the server") {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestJobsMaxBoundsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 20)
		w := start(t, c, WorkerOptions{Concurrency: 4, Prefetch: 50, JobsMax: 7}, nothing)
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		f.want(t, wire.Completed, 7)
		f.want(t, wire.Ready, 13)
	})
}

func TestNewWorkerRefusesNonsense(t *testing.T) {
	for name, o := range map[string]WorkerOptions{
		"negative concurrency": {Concurrency: -1},
		"negative prefetch":    {Prefetch: -1},
		"negative jobs":        {JobsMax: -1},
		"an empty queue":       {Queues: []string{""}},
		"a list as a queue":    {Queues: []string{"a,b"}},
	} {
		if _, err := NewWorker(nil, nothing, o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := NewWorker(nil, nil, WorkerOptions{}); err == nil {
		t.Error("no handler was taken")
	}
	a, _ := NewWorker(nil, nothing, WorkerOptions{Concurrency: 3})
	b, _ := NewWorker(nil, nothing, WorkerOptions{})
	if a.ID() == b.ID() || a.opts.Prefetch != 6 || strings.ContainsAny(a.ID(), " ,*?[]{}\\") {
		t.Errorf("%q, %q, prefetch %d", a.ID(), b.ID(), a.opts.Prefetch)
	}
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
