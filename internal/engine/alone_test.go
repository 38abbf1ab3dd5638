package engine_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

// Jobs that are delivered alone: core.md section 5.

// poisonous is a job of the queue that must be alone: it was lost once, of a
// limit of two.
func (r *rig) poisonous(queue, name string, edits ...func(*engine.NewJob)) {
	r.Helper()
	r.put(queue, name, append(edits, retry(job.Retry{LossLimit: job.LimitOf(2)}))...)
	w := r.anonymous(1, queue)
	w.gets(name)
	w.close()
	if !r.expect(name, job.Ready).Isolated {
		r.Fatalf("%s need not be alone", name)
	}
}

// names are so many of a kind.
func names(kind string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(kind, i))
	}
	return list
}

func TestAHolderThatIsNeverEmptyIsEmptiedForAJobThatMustBeAlone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", names("before", 2)...)
		w := r.anonymous(2)
		w.gets("before0", "before1")
		r.poisonous("q", "poison")
		r.puts("q", names("after", 9)...) // a stream of others that never ends
		w.ok("before0")
		w.gets()
		r.put("q", "urgent", func(n *engine.NewJob) { n.Job.Priority = 1 })
		w.gets("urgent") // this stands before it
		w.ok("before1")
		w.gets() // nothing more until it is empty
		w.ok("urgent")
		w.gets("poison")
		w.gets()
		w.ok("poison")
		w.gets("after0", "after1")
	})
}

func TestOnlyOneHolderIsEmptiedAndTheOthersGoOn(t *testing.T) {
	scenario(t, func(r *rig) {
		x, y, z := r.anonymous(2), r.anonymous(2), r.anonymous(2)
		r.puts("q", names("before", 6)...)
		x.gets("before0", "before3")
		y.gets("before1", "before4")
		z.gets("before2", "before5")
		r.poisonous("q", "poison")
		r.puts("q", names("after", 9)...)
		x.ok("before0")
		x.gets()
		y.ok("before1")
		y.gets("after0")
		both := []engine.Settle{
			{ID: r.ids["before2"], Token: z.held["before2"].Lease.Token}, {ID: r.ids["before5"], Token: z.held["before5"].Lease.Token},
		}
		if _, err := r.Settle(r.Context(), both); err != nil {
			r.Fatal(err)
		}
		z.gets("poison") // z was empty sooner, so x goes on at once
		x.gets("after1")
		y.ok("before4")
		y.gets("after2")
	})
}

func TestSeveralStreamsThatAreNeverEmptyDoNotStarveAJob(t *testing.T) {
	scenario(t, func(r *rig) {
		r.poisonous("q", "poison")
		r.queue("q", func(q *job.Queue) { q.Paused = true })
		x, y := r.anonymous(2), r.anonymous(2)
		r.puts("p", names("p", 4)...)
		x.gets("p0", "p2")
		y.gets("p1", "p3")
		r.puts("q", names("q", 99)...)
		r.queue("q", func(q *job.Queue) { q.Paused = false })
		held := map[*stream][]string{x: {"p0", "p2"}, y: {"p1", "p3"}}
		for round := 0; ; round++ {
			if round == 20 {
				r.Fatal("it was passed over 20 times")
			}
			for _, s := range []*stream{x, y} { // each ends one and holds on to the rest
				s.ok(held[s][0])
				held[s] = append(held[s][1:], s.read()...)
				if _, alone := s.held["poison"]; alone {
					if len(held[s]) != 1 {
						r.Errorf("not alone: %v", held[s])
					}
					return
				}
			}
		}
	})
}

func TestAHolderGoesOnWhenItsJobIsNotToBeHadAnyMore(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"cancelled": func(r *rig) { r.operate("poison", cancel) },
		"deleted": func(r *rig) {
			if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.ids["poison"]); err != nil {
				r.Fatal(err)
			}
		},
		"expired":      func(r *rig) { r.Pass(job.Minute) },
		"paused":       func(r *rig) { r.queue("bad", func(q *job.Queue) { q.Paused = true }) },
		"held":         func(r *rig) { r.queue("bad", func(q *job.Queue) { q.HoldUntil = r.Now() + job.Hour }) },
		"group held":   func(r *rig) { _ = enginetest.HoldGroup(r.Context(), r.Engine, "bad", "g", r.Now()+job.Hour) },
		"somebody got": func(r *rig) { r.anonymous(1, "bad").gets("poison") },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.puts("q", "a", "b")
				w := r.anonymous(2)
				w.gets("a", "b")
				r.poisonous("bad", "poison", grouped("g"), func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + job.Minute })
				r.puts("q", "c", "d")
				w.ok("a")
				w.gets()
				end(r)
				w.gets("c")
			})
		})
	}
}

func TestAnotherHolderIsEmptiedWhenTheFirstIsGoneOrTakesTooLong(t *testing.T) {
	for name, fail := range map[string]func(*rig, *stream){
		"gone":           func(_ *rig, s *stream) { s.close() },
		"takes too long": func(r *rig, _ *stream) { r.Pass(job.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				x, y := r.named("x", 2), r.named("y", 2)
				r.puts("q", names("before", 4)...)
				x.gets("before0", "before2")
				y.gets("before1", "before3")
				r.poisonous("q", "poison")
				r.puts("q", names("after", 9)...)
				x.ok("before0")
				y.ok("before1")
				x.gets()
				y.gets("after0")
				fail(r, x)
				y.ok("before3")
				y.gets()
				if name == "takes too long" {
					x.gets("after1") // it goes on
				}
				y.ok("after0")
				y.gets("poison")
			})
		})
	}
}

func TestAUnaryWorkerIsEmptiedOverAllItsCalls(t *testing.T) {
	scenario(t, func(r *rig) {
		mine := engine.LeaseOptions{Worker: "host", Max: 1, For: job.Hour}
		r.puts("q", "a", "b")
		a, b := r.lease(mine, "a"), r.lease(mine, "b")
		r.poisonous("q", "poison")
		r.puts("q", "c", "d")
		r.lease(mine)
		r.settle(a["a"], job.OK)
		r.lease(mine)
		r.lease(mine)
		other := engine.LeaseOptions{Worker: "other", Max: 9, For: job.Hour, Queues: []string{"q"}}
		r.settle(b["b"], job.OK)
		held := r.lease(mine, "poison")
		r.lease(mine)
		r.lease(other, "c", "d")
		r.settle(held["poison"], job.OK)
	})
}

// The job of another call ends, and the one that waits is emptied.
func TestACallThatIsEmptiedGoesOnWhenAnotherOneOfItsWorkerEnds(t *testing.T) {
	scenario(t, func(r *rig) {
		mine := engine.LeaseOptions{Worker: "host", Max: 1, For: job.Hour}
		r.puts("q", "a")
		a := r.lease(mine, "a")
		r.poisonous("q", "poison")
		got := make(chan []engine.Delivery, 1)
		go func() { list, _ := r.Lease(r.Context(), mine); got <- list }()
		r.Pass(job.Second)
		if len(got) > 0 {
			r.Fatal("the worker got another job beside the one that must be alone")
		}
		r.settle(a["a"], job.OK)
		r.Pass(job.Second)
		if len(got) == 0 {
			r.Fatal("the worker has nothing, and its call waits")
		}
		if list := <-got; len(list) != 1 || r.names[list[0].Job.ID] != "poison" {
			r.Errorf("it got %d jobs", len(list))
		}
	})
}

func TestAUnaryCallStopsBeforeAJobThatMustBeAlone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		r.poisonous("z", "poison")
		r.puts("q", "b")
		r.lease(tenSeconds, "a")
		r.lease(tenSeconds, "poison")
		r.lease(tenSeconds, "b")
	})
}

// A member of a group stands before the job, so the call is served in two goes.
func TestACallThatIsAnsweredIsNotEmptied(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "x", "y")
		w := r.named("w", 2)
		w.gets("x", "y")
		r.put("q", "a", grouped("g"))
		r.poisonous("z", "poison")
		r.puts("q", "b")
		r.lease(engine.LeaseOptions{Worker: "host", Max: 2, For: job.Hour}, "a")
		w.ok("x")
		w.gets() // it is w that is emptied
		w.ok("y")
		w.gets("poison")
	})
}

func TestManyJobsThatMustBeAloneComeOneByOne(t *testing.T) {
	scenario(t, func(r *rig) {
		list := names("poison", 5)
		for _, name := range list {
			r.poisonous(name, name)
		}
		r.puts("q", "a", "b")
		w := r.anonymous(9)
		for _, name := range list {
			w.gets(name)
			w.ok(name)
		}
		w.gets("a", "b")
	})
}

func TestWhoIsEmptiedForAQueueThatIsFullNowGoesOn(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.Protection.MaxRunning = 2 })
		r.poisonous("q", "poison")
		r.put("q", "twice", func(n *engine.NewJob) { n.Job.Copies, n.Job.Priority = 2, 1 })
		w := r.anonymous(9)
		w.gets("twice")
		r.puts("z", "after")
		w.gets() // it is emptied: the job that must be alone stands first
		other := r.anonymous(1)
		other.gets("twice") // the queue has no room for the poison any more
		w.gets("after")
	})
}
