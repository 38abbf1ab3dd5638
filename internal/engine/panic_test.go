package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// panicking is a store that panics when a job is written in some way.
type panicking struct {
	store.Store
	at func(old, j *job.Job) bool
}

func (p *panicking) Update(ctx context.Context, f func(store.Tx) error) (store.Commit, error) {
	return p.Store.Update(ctx, func(tx store.Tx) error { return f(panicTx{tx, p}) })
}

type panicTx struct {
	store.Tx
	p *panicking
}

func (t panicTx) Write(old, j *job.Job) error {
	if t.p.at(old, j) {
		panic("a fault on purpose")
	}
	return t.Tx.Write(old, j)
}

// The panic of one command refuses that one; those of the same batch are done.
func TestAPanicRefusesOneCommand(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c")
		held := r.Leased(engine.LeaseOptions{Max: 3, For: job.Hour}, "a", "b", "c")
		r.Rewrites("b", func(j *job.Job) { j.Door = 99 }) // of a version to come
		var mu sync.Mutex                                 // guards answers
		answers := map[string]error{}
		done := make(chan string)
		for name, d := range held {
			go func() {
				_, err := r.Settle(r.Context(), []engine.Settle{{ID: d.Job.ID, Token: d.Lease.Token, Outcome: job.Retried}})
				mu.Lock()
				answers[name] = err
				mu.Unlock()
				done <- name
			}()
		}
		for range held {
			<-done
		}
		if answers["a"] != nil || answers["c"] != nil || job.KindOf(answers["b"]) != job.Internal {
			r.Errorf("%v", answers)
		}
		r.Expect("a", job.Scheduled)
		r.Expect("b", job.Leased)
		r.Faults(1)
		if err := r.Ready(); err != nil {
			r.Error(err)
		}
		r.Pass(2 * job.Hour) // the clock cannot end its lease: it is set aside, once
		r.SetAside("b", "panic: ")
		r.Faults(2)
		r.Restart(0)
		r.AddAll("q", "d")
	})
}

// A job that cannot be given out is set aside; those behind it are given out.
func TestAPanicWhileServingSetsTheJobAside(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c")
		r.Anonymous(9).Gets("a", "c")
		r.SetAside("b", "on purpose")
		r.Faults(1)
	}, func(r *rig) {
		r.Around = func(s store.Store) store.Store {
			return &panicking{s, func(_, j *job.Job) bool { return j != nil && j.State == job.Leased && j.ID == r.IDs["b"] }}
		}
	})
}

// A job that can neither run nor be set aside lets serving rest; commands go on.
func TestAFaultThatStaysDoesNotEndTheProcessNorKeepItBusy(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "bad", "good")
		s := r.Anonymous(9)
		s.Gets()
		before := r.Part.Meter.Measure(r.Context()).Stats
		r.Pass(10 * job.Minute)
		after := r.Part.Meter.Measure(r.Context()).Stats
		if n := after.Faults - before.Faults; n == 0 || n > 50 || after.Batches-before.Batches > 2000 {
			r.Errorf("%d faults in %d batches", n, after.Batches-before.Batches)
		}
		r.AddAll("q", "more")
		if err := r.Ready(); err != nil {
			r.Error(err)
		}
	}, func(r *rig) {
		r.Around = func(s store.Store) store.Store {
			return &panicking{s, func(old, _ *job.Job) bool { return old != nil && old.ID == r.IDs["bad"] }}
		}
	})
}

// A panic behind a commit is as if the commit had failed: who waits for an answer is
// told that it is not known whether it took effect, streams end, all that is in
// memory is made anew, and the engine goes on.
func TestAPanicBehindACommitIsAFailedCommit(t *testing.T) {
	t.Run("in what is published", func(t *testing.T) {
		scenario(t, func(r *rig) {
			r.AddAll("q", "a", "b")
			s := r.Named("w", 1)
			s.Gets("a")
			if err := r.PanicsInPublish(r.Context()); job.KindOf(err) != job.Unavailable {
				t.Errorf("it is answered %v", err)
			}
			r.Pass(2 * job.Second)
			s.IsOver()
			r.Faults(1)
			s = r.Named("w", 2)
			s.Gets("a", "b") // its own, which it has yet, and the next one
			s.OK("a", "b")
			r.Expect("b", job.Done)
		})
	})
	t.Run("in what is told", func(t *testing.T) {
		var broken atomic.Bool
		scenario(t, func(r *rig) {
			r.AddAll("q", "a")
			synctest.Wait() // nothing else is to be told
			broken.Store(true)
			if _, err := r.Put(r.Context(), []engine.NewJob{{Job: job.Job{Queue: "z", Type: "t"}, Payload: []byte("b")}}); job.KindOf(err) != job.Unavailable {
				t.Errorf("it is answered %v", err)
			}
			r.Pass(2 * job.Second)
			r.Faults(1)
			r.AddAll("q", "c")
			if _, depth, err := r.Queue(r.Context(), "z"); err != nil || depth.States[job.Ready] != 1 { // it took effect
				t.Errorf("%+v, %v", depth, err)
			}
			r.Opened(engine.StreamOptions{Name: "w", Queues: []string{"q"}}).Gets("a", "c")
		}, func(r *rig) {
			own := r.Parts
			r.Parts = func() []engine.Part { return append(own(), brokenTeller{&broken}) }
		})
	})
}

// brokenTeller is a part that panics once when it has something to tell, if it is broken.
type brokenTeller struct{ broken *atomic.Bool }

func (p brokenTeller) Join(*engine.Engine) engine.Hooks {
	return engine.Hooks{Announce: func() func(bool) {
		return func(bool) {
			if p.broken.Swap(false) {
				panic("it cannot be told")
			}
		}
	}}
}
