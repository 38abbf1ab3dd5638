package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/store"
)

// inStore changes what is stored behind the engine's back, as another version
// would have left it.
func (r *rig) inStore(f func(tx store.Tx) error) {
	r.Helper()
	commit, err := r.Mem.Update(r.Context(), func(tx store.Tx) error { tx.Durable(); return f(tx) })
	if err == nil {
		err = commit.Wait()
	}
	if err != nil {
		r.Fatal(err)
	}
}

// rewrites changes a stored job.
func (r *rig) rewrites(name string, edit func(*job.Job)) {
	r.Helper()
	r.inStore(func(tx store.Tx) error {
		old, err := tx.Get(r.ids[name])
		if err != nil {
			return err
		}
		j := old.Clone()
		edit(j)
		return tx.Write(old, j)
	})
}

// setAside wants a job to be dead, with a reason that says so.
func (r *rig) setAside(name, why string) {
	r.Helper()
	j := r.expect(name, job.Dead)
	list, err := r.Failures(r.Context(), j.ID, 0, true, 1)
	if err != nil || j.Reason != job.Rejected || j.PurgeAt != 0 || len(list) != 1 || !strings.Contains(list[0].Message, why) {
		r.Errorf("%s: %s, %+v, %v; want it rejected: %s", name, j.Reason, list, err, why)
	}
}

func (r *rig) faults(want uint64) {
	r.Helper()
	synctest.Wait()
	if n := r.part.Meter.Measure(r.Context()).Stats.Faults; n != want {
		r.Errorf("%d faults, want %d", n, want)
	}
}

func TestNoJobMovesToAQueueOfAnotherKind(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.session("s2")
		g.queue("inbox", func(q *job.Queue) {
			q.Turns, q.Order, q.Protection.Fair = true, job.OrderStrict, &job.FairShare{}
		})
		g.tasks("s", "task", "runs")
		g.puts("q", "job")
		g.puts("inbox", "message")
		for _, c := range []struct{ name, to, text string }{
			{"task", "q", "is a task of session \"s\""},
			{"task", "s2", "is a task of session \"s\""},
			{"task", "inbox", "is a task of session \"s\""},
			{"job", "s", "\"s\" is a session"},
			{"message", "s", "\"s\" is a session"},
			{"job", "inbox", "\"inbox\" is an inbox"},
			{"message", "q", "\"inbox\" is an inbox"},
		} {
			_, err := g.part.Desk.Do(g.Context(), ann, desk.Patch{
				Queue: c.to, Edit: func(j *job.Job, now job.Millis) { j.ExpiresAt = now + 1 },
			}.Verb(), g.ids[c.name])
			refused, _ := errors.AsType[*job.Error](err)
			if refused == nil || refused.Kind != job.WrongState || refused.Field != "queue" || !strings.Contains(refused.Text, c.text) {
				g.Errorf("%s to %s: %v", c.name, c.to, err)
			}
			if j := g.job(c.name); j.Queue == c.to || j.ExpiresAt != 0 {
				g.Errorf("%s changed: %+v", c.name, j)
			}
			g.patches(query.Search{Filter: engine.Filter{IDs: []job.ID{g.ids[c.name]}}}, desk.Patch{Queue: c.to}, 0, 1)
		}
	})
}

// What a version before moved into a session or out of one is set aside at the
// start, and its session ends.
func TestWhatWasMovedIntoASessionOrOutOfOneIsSetAside(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.tasks("s", "done", "held", "expires", "stays")
		g.puts("q", "in", "in leased", "beside")
		e := g.engine("e", 2)
		e.gets("done", "held")
		e.drain()
		g.settle(e.held["done"], job.OK)
		held := g.lease(engine.LeaseOptions{Queues: []string{"q"}, Max: 2, For: job.Hour}, "in", "in leased")
		g.settle(held["in"], job.Released)
		g.End()
		g.rewrites("held", func(j *job.Job) { j.Queue = "q" })
		g.rewrites("expires", func(j *job.Job) { j.Queue, j.ExpiresAt = "q", 1 })
		g.rewrites("in", func(j *job.Job) { j.Queue, j.ExpiresAt = "s", 1 })
		g.rewrites("in leased", func(j *job.Job) { j.Queue = "s" })
		g.inStore(func(tx store.Tx) error { return tx.Unset(job.Reserves, "jobs are placed") })
		g.Begin()
		g.setAside("held", "outside of its session")
		g.setAside("expires", "outside of its session")
		g.setAside("in", "in a session")
		g.setAside("in leased", "in a session")
		g.faults(0)
		g.refused(job.Superseded, engine.Settle{ID: held["in leased"].Job.ID, Token: held["in leased"].Lease.Token, Outcome: job.OK})
		if _, err := g.part.Dead.Revive(g.Context(), g.ids["held"], deadset.Revival{}, ann); job.KindOf(err) != job.WrongState {
			g.Errorf("a task outside of its session was replayed: %v", err)
		}
		g.anonymous(9).gets("beside")
		e = g.engine("e2", 9)
		e.gets("stays")
		e.ok("stays")
		if _, err := g.part.Grid.CloseSession(g.Context(), "s", ann); err != nil {
			g.Fatal(err)
		}
		if s := g.state("s"); !s.State.Ended() || s.Failed != 2 || s.Done != 2 {
			g.Errorf("%+v", s.Session)
		}
	}, func(r *rig) { r.Opts.QueuesMax = 10 })
}

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
		r.puts("q", "a", "b", "c")
		held := r.lease(engine.LeaseOptions{Max: 3, For: job.Hour}, "a", "b", "c")
		r.rewrites("b", func(j *job.Job) { j.Door = 99 }) // of a version to come
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
		r.expect("a", job.Scheduled)
		r.expect("b", job.Leased)
		r.faults(1)
		if err := r.Ready(); err != nil {
			r.Error(err)
		}
		r.Pass(2 * job.Hour) // the clock cannot end its lease: it is set aside, once
		r.setAside("b", "panic: ")
		r.faults(2)
		r.Restart(0)
		r.puts("q", "d")
	})
}

// A job that cannot be given out is set aside; those behind it are given out.
func TestAPanicWhileServingSetsTheJobAside(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b", "c")
		r.anonymous(9).gets("a", "c")
		r.setAside("b", "on purpose")
		r.faults(1)
	}, func(r *rig) {
		r.Around = func(s store.Store) store.Store {
			return &panicking{s, func(_, j *job.Job) bool { return j != nil && j.State == job.Leased && j.ID == r.ids["b"] }}
		}
	})
}

// A job that can neither run nor be set aside lets serving rest; commands go on.
func TestAFaultThatStaysDoesNotEndTheProcessNorKeepItBusy(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "bad", "good")
		s := r.anonymous(9)
		s.gets()
		before := r.part.Meter.Measure(r.Context()).Stats
		r.Pass(10 * job.Minute)
		after := r.part.Meter.Measure(r.Context()).Stats
		if n := after.Faults - before.Faults; n == 0 || n > 50 || after.Batches-before.Batches > 2000 {
			r.Errorf("%d faults in %d batches", n, after.Batches-before.Batches)
		}
		r.puts("q", "more")
		if err := r.Ready(); err != nil {
			r.Error(err)
		}
	}, func(r *rig) {
		r.Around = func(s store.Store) store.Store {
			return &panicking{s, func(old, _ *job.Job) bool { return old != nil && old.ID == r.ids["bad"] }}
		}
	})
}

// A session whose settings are lost rests; the clock goes on for others, and the
// server starts.
func TestARowAtFaultRests(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.tasks("s", "task")
		if _, err := g.part.Grid.CancelSession(g.Context(), "s", "", ann); err != nil {
			g.Fatal(err)
		}
		g.End()
		g.inStore(func(tx store.Tx) error {
			row, err := tx.Row(job.Sessions, "s")
			if err != nil {
				return err
			}
			s := *row.(*job.Session)
			s.State, s.Next, s.Failed = job.SessionOpen, 1, 0
			if err := tx.Set(&s); err != nil {
				return err
			}
			return tx.Unset(job.Queues, "s")
		})
		g.Begin()
		g.put("q", "due", due(g.Clock.Wall()+1000))
		g.Pass(5 * job.Minute)
		g.expect("due", job.Ready)
		if n := g.part.Meter.Measure(g.Context()).Stats.Faults; n == 0 || n > 20 {
			g.Errorf("%d faults", n)
		}
		g.anonymous(1).gets("due")
	})
}

// A panic behind a commit is as if the commit had failed: who waits for an answer is
// told that it is not known whether it took effect, streams end, all that is in
// memory is made anew, and the engine goes on.
func TestAPanicBehindACommitIsAFailedCommit(t *testing.T) {
	t.Run("in what is published", func(t *testing.T) {
		scenario(t, func(r *rig) {
			r.puts("q", "a", "b")
			s := r.named("w", 1)
			s.gets("a")
			if err := r.PanicsInPublish(r.Context()); job.KindOf(err) != job.Unavailable {
				t.Errorf("it is answered %v", err)
			}
			r.Pass(2 * job.Second)
			s.ended()
			r.faults(1)
			s = r.named("w", 2)
			s.gets("a", "b") // its own, which it has yet, and the next one
			s.ok("a", "b")
			r.expect("b", job.Done)
		})
	})
	t.Run("in what is told", func(t *testing.T) {
		var broken atomic.Bool
		scenario(t, func(r *rig) {
			r.puts("q", "a")
			synctest.Wait() // nothing else is to be told
			broken.Store(true)
			if _, err := r.Put(r.Context(), []engine.NewJob{{Job: job.Job{Queue: "z", Type: "t"}, Payload: []byte("b")}}); job.KindOf(err) != job.Unavailable {
				t.Errorf("it is answered %v", err)
			}
			r.Pass(2 * job.Second)
			r.faults(1)
			r.puts("q", "c")
			if _, depth, err := r.Queue(r.Context(), "z"); err != nil || depth.States[job.Ready] != 1 { // it took effect
				t.Errorf("%+v, %v", depth, err)
			}
			r.stream(engine.StreamOptions{Name: "w", Queues: []string{"q"}}).gets("a", "c")
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
