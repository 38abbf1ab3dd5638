package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

func TestAHoldGoesWithEveryOutcome(t *testing.T) {
	boom := errors.New("boom")
	for name, ends := range map[string]func() error{
		wire.OutcomeOK: func() error { return nil }, wire.OutcomeRetry: func() error { return boom },
		wire.OutcomeDead: func() error { return Dead(boom) }, wire.OutcomeRelease: func() error { return Release(time.Second) },
		"a panic": func() error { panic("no such luck") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFake(t, Options{})
				f.fill("q", 1)
				w := start(t, c, WorkerOptions{JobsMax: 1}, func(_ context.Context, d *Delivery) error {
					d.Hold(-time.Second)
					d.Hold(1500 * time.Microsecond)
					d.Hold(time.Minute)
					d.Hold(time.Second)
					return ends()
				})
				if err := <-w.done; err != nil {
					t.Fatal(err)
				}
				if len(f.settles) == 0 || f.settles[0].HoldMS != 60_000 {
					t.Errorf("settled as %+v", f.settles)
				}
			})
		})
	}
}
