package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

// Jobs that are delivered alone: core.md section 5.

func TestAHolderThatIsNeverEmptyIsEmptiedForAJobThatMustBeAlone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", names("before", 2)...)
		w := r.Anonymous(2)
		w.Gets("before0", "before1")
		r.Poisonous("q", "poison")
		r.AddAll("q", names("after", 9)...) // a stream of others that never ends
		w.OK("before0")
		w.Gets()
		r.Add("q", "urgent", func(n *engine.NewJob) { n.Job.Priority = 1 })
		w.Gets("urgent") // this stands before it
		w.OK("before1")
		w.Gets() // nothing more until it is empty
		w.OK("urgent")
		w.Gets("poison")
		w.Gets()
		w.OK("poison")
		w.Gets("after0", "after1")
	})
}

func TestOnlyOneHolderIsEmptiedAndTheOthersGoOn(t *testing.T) {
	scenario(t, func(r *rig) {
		x, y, z := r.Anonymous(2), r.Anonymous(2), r.Anonymous(2)
		r.AddAll("q", names("before", 6)...)
		x.Gets("before0", "before3")
		y.Gets("before1", "before4")
		z.Gets("before2", "before5")
		r.Poisonous("q", "poison")
		r.AddAll("q", names("after", 9)...)
		x.OK("before0")
		x.Gets()
		y.OK("before1")
		y.Gets("after0")
		both := []engine.Settle{
			{ID: r.IDs["before2"], Token: z.Held["before2"].Lease.Token}, {ID: r.IDs["before5"], Token: z.Held["before5"].Lease.Token},
		}
		if _, err := r.Settle(r.Context(), both); err != nil {
			r.Fatal(err)
		}
		z.Gets("poison") // z was empty sooner, so x goes on at once
		x.Gets("after1")
		y.OK("before4")
		y.Gets("after2")
	})
}

func TestSeveralStreamsThatAreNeverEmptyDoNotStarveAJob(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Poisonous("q", "poison")
		r.SetQueue("q", func(q *job.Queue) { q.Paused = true })
		x, y := r.Anonymous(2), r.Anonymous(2)
		r.AddAll("p", names("p", 4)...)
		x.Gets("p0", "p2")
		y.Gets("p1", "p3")
		r.AddAll("q", names("q", 99)...)
		r.SetQueue("q", func(q *job.Queue) { q.Paused = false })
		held := map[*stream][]string{x: {"p0", "p2"}, y: {"p1", "p3"}}
		for round := 0; ; round++ {
			if round == 20 {
				r.Fatal("it was passed over 20 times")
			}
			for _, s := range []*stream{x, y} { // each ends one and holds on to the rest
				s.OK(held[s][0])
				held[s] = append(held[s][1:], s.Read()...)
				if _, alone := s.Held["poison"]; alone {
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
		"cancelled": func(r *rig) { r.Operate("poison", cancel) },
		"deleted": func(r *rig) {
			if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["poison"]); err != nil {
				r.Fatal(err)
			}
		},
		"expired":      func(r *rig) { r.Pass(job.Minute) },
		"paused":       func(r *rig) { r.SetQueue("bad", func(q *job.Queue) { q.Paused = true }) },
		"held":         func(r *rig) { r.SetQueue("bad", func(q *job.Queue) { q.HoldUntil = r.Now() + job.Hour }) },
		"group held":   func(r *rig) { _ = enginetest.HoldGroup(r.Context(), r.Engine, "bad", "g", r.Now()+job.Hour) },
		"somebody got": func(r *rig) { r.Anonymous(1, "bad").Gets("poison") },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.AddAll("q", "a", "b")
				w := r.Anonymous(2)
				w.Gets("a", "b")
				r.Poisonous("bad", "poison", grouped("g"), func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + job.Minute })
				r.AddAll("q", "c", "d")
				w.OK("a")
				w.Gets()
				end(r)
				w.Gets("c")
			})
		})
	}
}

func TestAnotherHolderIsEmptiedWhenTheFirstIsGoneOrTakesTooLong(t *testing.T) {
	for name, fail := range map[string]func(*rig, *stream){
		"gone":           func(_ *rig, s *stream) { s.End() },
		"takes too long": func(r *rig, _ *stream) { r.Pass(job.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				x, y := r.Named("x", 2), r.Named("y", 2)
				r.AddAll("q", names("before", 4)...)
				x.Gets("before0", "before2")
				y.Gets("before1", "before3")
				r.Poisonous("q", "poison")
				r.AddAll("q", names("after", 9)...)
				x.OK("before0")
				y.OK("before1")
				x.Gets()
				y.Gets("after0")
				fail(r, x)
				y.OK("before3")
				y.Gets()
				if name == "takes too long" {
					x.Gets("after1") // it goes on
				}
				y.OK("after0")
				y.Gets("poison")
			})
		})
	}
}

func TestAUnaryWorkerIsEmptiedOverAllItsCalls(t *testing.T) {
	scenario(t, func(r *rig) {
		mine := engine.LeaseOptions{Worker: "host", Max: 1, For: job.Hour}
		r.AddAll("q", "a", "b")
		a, b := r.Leased(mine, "a"), r.Leased(mine, "b")
		r.Poisonous("q", "poison")
		r.AddAll("q", "c", "d")
		r.Leased(mine)
		r.Settled(a["a"], job.OK)
		r.Leased(mine)
		r.Leased(mine)
		other := engine.LeaseOptions{Worker: "other", Max: 9, For: job.Hour, Queues: []string{"q"}}
		r.Settled(b["b"], job.OK)
		held := r.Leased(mine, "poison")
		r.Leased(mine)
		r.Leased(other, "c", "d")
		r.Settled(held["poison"], job.OK)
	})
}

// The job of another call ends, and the one that waits is emptied.
func TestACallThatIsEmptiedGoesOnWhenAnotherOneOfItsWorkerEnds(t *testing.T) {
	scenario(t, func(r *rig) {
		mine := engine.LeaseOptions{Worker: "host", Max: 1, For: job.Hour}
		r.AddAll("q", "a")
		a := r.Leased(mine, "a")
		r.Poisonous("q", "poison")
		got := make(chan []engine.Delivery, 1)
		go func() { list, _ := r.Lease(r.Context(), mine); got <- list }()
		r.Pass(job.Second)
		if len(got) > 0 {
			r.Fatal("the worker got another job beside the one that must be alone")
		}
		r.Settled(a["a"], job.OK)
		r.Pass(job.Second)
		if len(got) == 0 {
			r.Fatal("the worker has nothing, and its call waits")
		}
		if list := <-got; len(list) != 1 || r.Names[list[0].Job.ID] != "poison" {
			r.Errorf("it got %d jobs", len(list))
		}
	})
}

func TestAUnaryCallStopsBeforeAJobThatMustBeAlone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		r.Poisonous("z", "poison")
		r.AddAll("q", "b")
		r.Leased(tenSeconds, "a")
		r.Leased(tenSeconds, "poison")
		r.Leased(tenSeconds, "b")
	})
}

// A member of a group stands before the job, so the call is served in two goes.
func TestACallThatIsAnsweredIsNotEmptied(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "x", "y")
		w := r.Named("w", 2)
		w.Gets("x", "y")
		r.Add("q", "a", grouped("g"))
		r.Poisonous("z", "poison")
		r.AddAll("q", "b")
		r.Leased(engine.LeaseOptions{Worker: "host", Max: 2, For: job.Hour}, "a")
		w.OK("x")
		w.Gets() // it is w that is emptied
		w.OK("y")
		w.Gets("poison")
	})
}

func TestManyJobsThatMustBeAloneComeOneByOne(t *testing.T) {
	scenario(t, func(r *rig) {
		list := names("poison", 5)
		for _, name := range list {
			r.Poisonous(name, name)
		}
		r.AddAll("q", "a", "b")
		w := r.Anonymous(9)
		for _, name := range list {
			w.Gets(name)
			w.OK(name)
		}
		w.Gets("a", "b")
	})
}

func TestWhoIsEmptiedForAQueueThatIsFullNowGoesOn(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.Protection.MaxRunning = 2 })
		r.Poisonous("q", "poison")
		r.Add("q", "twice", func(n *engine.NewJob) { n.Job.Copies, n.Job.Priority = 2, 1 })
		w := r.Anonymous(9)
		w.Gets("twice")
		r.AddAll("z", "after")
		w.Gets() // it is emptied: the job that must be alone stands first
		other := r.Anonymous(1)
		other.Gets("twice") // the queue has no room for the poison any more
		w.Gets("after")
	})
}
