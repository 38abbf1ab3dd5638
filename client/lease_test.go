package client

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// secretOf is that of a worker of the fake.
func secretOf(worker string) string { return "secret of " + worker }

// unary is POST /jobs/lease of the fake.
func (f *fake) unary(w http.ResponseWriter, r *http.Request) {
	var ask wire.Lease
	f.read(r, &ask)
	out := wire.Leases{Jobs: []wire.Job{}}
	until := time.After(time.Duration(ask.WaitMS) * time.Millisecond)
	for {
		f.mu.Lock()
		for _, j := range f.jobs {
			if len(out.Jobs) < max(ask.Max, 1) && j.Status == wire.Ready && (ask.Queues == nil || slices.Contains(ask.Queues, j.Queue)) {
				f.lease(j, ask.Worker)
				leased := j.Job
				leased.LeaseUntil = time.Now().UnixMilli() + max(ask.LeaseMS, 1)
				out.Jobs = append(out.Jobs, leased)
			}
		}
		wake := f.wake
		f.mu.Unlock()
		if len(out.Jobs) == 0 {
			select {
			case <-wake:
				continue
			case <-until:
			case <-r.Context().Done():
			}
		}
		if ask.Register {
			out.Secret = secretOf(ask.Worker)
		}
		f.write(w, 200, out)
		return
	}
}

func (f *fake) extendWorker(w http.ResponseWriter, ask wire.Extensions) {
	if ask.Secret != secretOf(ask.Worker) {
		f.fail(w, 403, wire.CodeForbidden)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := wire.Verdicts{Verdicts: []wire.Verdict{}}
	for _, j := range f.jobs {
		if j.holder == ask.Worker {
			out.Verdicts = append(out.Verdicts, wire.Verdict{ID: j.ID, Status: j.Status})
		}
	}
	f.write(w, 200, out)
}

func TestALeaseWaitsLongerThanOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newFake(t, Options{Timeout: 10 * time.Second})
		began := time.Now()
		got, err := c.Lease(t.Context(), wire.Lease{WaitMS: 60_000})
		if took := time.Since(began); err != nil || len(got.Jobs) != 0 || took != time.Minute {
			t.Fatalf("%+v %v after %s", got, err, took)
		}
		go func() {
			<-time.After(25 * time.Second)
			_, _ = EnqueueJSON(context.WithoutCancel(t.Context()), c, "q", "t", 1)
		}()
		began = time.Now()
		got, err = c.Lease(t.Context(), wire.Lease{WaitMS: 60_000, Worker: "w"})
		if took := time.Since(began); err != nil || len(got.Jobs) != 1 || took != 25*time.Second {
			t.Fatalf("%+v %v after %s", got, err, took)
		}
	})
}

func TestALeaseOfAServerThatIsSilentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{Timeout: 10 * time.Second})
		var calls atomic.Int32
		silence := make(chan struct{})
		defer close(silence)
		f.refuse = func(*http.Request) *refusal { calls.Add(1); <-silence; return &refusal{hangUp: true} }
		began := time.Now()
		_, err := c.Lease(t.Context(), wire.Lease{WaitMS: 5_000})
		if took := time.Since(began); err == nil || took != 15*time.Second || calls.Load() != 1 { // it may have taken jobs
			t.Fatalf("%v after %s and %d calls", err, took, calls.Load())
		}
	})
}

func TestAHeartbeatOfAWorkerIsRefusedBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.refuse = func(r *http.Request) *refusal { t.Errorf("%s was asked", r.URL); return nil }
		for _, x := range []struct {
			worker, secret string
			life           time.Duration
		}{{"", "s", 0}, {"w", "", 0}, {"w", "s", -time.Second}, {"w", "s", time.Microsecond}} {
			if _, err := c.ExtendWorker(t.Context(), x.worker, x.secret, x.life); err == nil {
				t.Errorf("%+v is accepted", x)
			}
		}
	})
}

func TestWhatALeaseLeavesOutIsNotSent(t *testing.T) {
	for want, v := range map[string]any{
		`{}`:                                   wire.Lease{},
		`{"queues":["q"],"max":2,"wait_ms":5}`: wire.Lease{Queues: []string{"q"}, Max: 2, WaitMS: 5},
		`{"worker":"w","secret":"s"}`:          wire.Extensions{Worker: "w", Secret: "s"},
		`{"leases":[]}`:                        wire.Extensions{Leases: []wire.Extension{}},
		`{"leases":[{"id":"i","lease":"l"}]}`:  wire.Extensions{Leases: []wire.Extension{{ID: "i", Lease: "l"}}},
		`{"ms":7,"worker":"w","secret":"s"}`:   wire.Extensions{MS: 7, Worker: "w", Secret: "s"},
		`{"worker":"w","register":true}`:       wire.Lease{Worker: "w", Register: true},
	} {
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
