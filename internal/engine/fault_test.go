package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

func TestAFailedCommitLosesNothingThatWasAcknowledged(t *testing.T) { // I5
	for seed := range uint64(20) {
		scenario(t, func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.NonIdempotent = true })
			r.AddAll("q", "done", "failed", "held", "waiting")
			w := r.Anonymous(3)
			w.Gets("done", "failed", "held")
			w.OK("done")
			w.Gets("waiting")
			w.Fails("failed")
			r.Mem.FailNextCommit(errDisk)
			if _, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "x", keyed("x"))}); job.KindOf(err) != job.Unavailable || !errors.Is(err, errDisk) {
				r.Fatalf("the put was answered %v", err)
			}
			r.Recovered()
			w.IsOver()
			r.Expect("done", job.Done)
			if j := r.Expect("failed", job.Scheduled); j.Attempts != 1 {
				r.Errorf("%+v", j)
			}
			for _, name := range []string{"held", "waiting"} {
				if j := r.Expect(name, job.Ready); j.Losses != 0 || j.Attempts != 0 {
					r.Errorf("our own failure was charged: %+v", j)
				}
			}
			added := r.PutAgain(newNamed("q", "x", keyed("x"))) // kept or not, the key makes it one
			r.Call(added[0].ID, "x")
			w = r.Anonymous(9)
			w.Gets("held", "waiting", "x")
			r.Settled(w.Held["held"], job.OK)
		}, func(r *rig) { r.Seed = seed })
	}
}

func TestAPowerCutLosesNothingThatWasAcknowledged(t *testing.T) { // I5
	scenario(t, func(r *rig) {
		for life := range 10 {
			for i := range 3 {
				r.AddAll("q", fmt.Sprint(life, "-", i))
			}
			w := r.Anonymous(3)
			list := w.Read()
			r.Settled(w.Held[list[0]], job.OK)
			r.Settled(w.Held[list[1]], job.Retried)
			r.PowerCut()
			r.Expect(list[0], job.Done)
			r.Expect(list[1], job.Scheduled)
			r.Expect(list[2], job.Ready)
		}
	})
}

func TestNamedAndUnaryLeasesSurviveAFailedCommit(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.NonIdempotent = true })
		r.AddAll("q", "named", "unary")
		w := r.Named("host", 1)
		w.Gets("named")
		held := r.Leased(tenSeconds, "unary")
		r.Mem.FailNextCommit(errDisk)
		_, _ = r.Put(r.Context(), []engine.NewJob{newNamed("q", "x")})
		r.Recovered()
		w.IsOver()
		w = r.Named("host", 1)
		w.Gets("named")
		w.OK("named")
		r.Settled(held["unary"], job.OK)
		if s := r.Stats(); s.LateOK != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestWhoWaitsDuringAFailureIsAnsweredAndTheNextIsServed(t *testing.T) {
	for seed := range uint64(8) {
		scenario(t, func(r *rig) {
			polls := make(chan error, 3)
			for range 3 {
				go func() { _, err := r.Lease(r.Context(), tenSeconds); polls <- err }()
			}
			synctest.Wait()
			r.Mem.FailNextCommit(errDisk)
			puts := make(chan error, 50)
			for i := range 50 {
				go func() {
					_, err := r.Put(r.Context(), []engine.NewJob{newNamed("other", fmt.Sprint(i))})
					puts <- err
				}()
			}
			refused := 0
			for range 50 {
				if err := <-puts; err != nil {
					refused++
				}
			}
			if refused == 0 {
				r.Error("the failure was told to nobody")
			}
			r.Recovered()
			for range 3 {
				if err := <-polls; err != nil && !errors.Is(err, engine.ErrStreamEnded) {
					r.Error(err)
				}
			}
			r.Leased(engine.LeaseOptions{Queues: []string{"q"}})
			r.AddAll("q", "a")
			r.Leased(engine.LeaseOptions{For: job.Second, Queues: []string{"q"}}, "a")
		}, func(r *rig) { r.Seed = seed })
	}
}

// broken answers reads of payloads with an error while it is on.
type broken struct {
	store.Store
	on *bool
}

func (s broken) Payloads(refs ...job.ID) ([][]byte, error) {
	if *s.on {
		return nil, errDisk
	}
	return s.Store.Payloads(refs...)
}

// Update hides payloads from a take, so that they are read afterwards.
func (s broken) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(blind{tx}) })
}

type blind struct{ store.Tx }

func (blind) Peek(job.ID) []byte { return nil }

func TestAPayloadThatCannotBeReadIsNotALeaseThatNobodyKnowsOf(t *testing.T) { // I1
	on := true
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		w := r.Anonymous(1)
		r.Pass(0)
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if list, err := w.Next(ctx); len(list) > 0 || !errors.Is(err, errDisk) {
			r.Errorf("%d deliveries, %v: the stream must learn of it, to end and give back", len(list), err)
		}
		w.End()
		on = false
		r.Anonymous(1).Gets("a")
	}, func(r *rig) { r.Around = func(s store.Store) store.Store { return broken{s, &on} } })
}

func TestAJobThatEndedBeforeItWasReadIsLeftOutAndTheOthersAreNot(t *testing.T) {
	on := false
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c", "d")
		w := r.Anonymous(4)
		r.Pass(0)
		for _, name := range []string{"a", "c"} {
			if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs[name]); err != nil {
				r.Fatal(err)
			}
		}
		w.Gets("b", "d")
	}, func(r *rig) { r.Around = func(s store.Store) store.Store { return broken{s, &on} } })
}

// torn lets the next commit wait, and fail when it is told to; what was
// applied after it is lost with it.
type torn struct {
	*mem.Store
	armed *atomic.Bool
	fail  chan struct{}
}

func (s torn) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	c, err := s.Store.Update(ctx, fn)
	if err == nil && s.armed.CompareAndSwap(true, false) {
		return tornCommit{s}, nil
	}
	return c, err
}

type tornCommit struct{ torn }

func (c tornCommit) Wait() error {
	<-c.fail
	c.PowerCut(dice(2))
	return &job.Error{Kind: job.Unavailable, Text: "it tore", Cause: errDisk}
}

func TestWhatWasAppliedBehindAFailedCommitIsNotAnswered(t *testing.T) { // I5, I7
	var armed atomic.Bool
	var fail chan struct{}
	scenario(t, func(r *rig) {
		r.SetQueue("q", strict)
		r.Add("q", "a", grouped("g"))
		armed.Store(true)
		errs := make(chan error, 2)
		for range 2 { // the second one stands on the take of the first, and asks for no sync of its own
			go func() {
				s, err := r.Stream(r.Context(), engine.StreamOptions{Name: "w", Prefetch: 1})
				if err == nil {
					s.Close()
				}
				errs <- err
			}()
			synctest.Wait()
		}
		close(fail)
		for range 2 {
			if err := <-errs; job.KindOf(err) != job.Unavailable || err == nil {
				t.Errorf("a stream was answered %v", err)
			}
		}
		r.Recovered()
	}, func(r *rig) {
		fail = make(chan struct{})
		r.Around = func(store.Store) store.Store { return torn{r.Mem, &armed, fail} }
	})
}
