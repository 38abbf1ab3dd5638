package engine_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

// strictly is a scenario with two strict groups: a1 a2 a3 and b1 b2.
func strictly(t *testing.T, f func(r *rig)) {
	t.Helper()
	scenario(t, func(r *rig) {
		r.SetQueue("q", strict)
		for _, name := range []string{"a1", "a2", "b1", "a3", "b2"} {
			r.Add("q", name, grouped(name[:1]), retry(job.Retry{Curve: wait(10 * job.Second)}))
		}
		f(r)
	})
}

func TestAStrictGroupHasOneLiveTurnAndOthersProceed(t *testing.T) { // I7
	strictly(t, func(r *rig) {
		w := r.Named("w", 9)
		w.Gets("a1", "b1")
		w.OK("b1")
		w.Gets("b2")
		w.OK("a1")
		w.Gets("a2")
		w.Gets()
	})
}

func TestAStrictGroupKeepsItsOrderThroughFailureAndBackoff(t *testing.T) { // I7
	strictly(t, func(r *rig) {
		w := r.Named("w", 9)
		w.Gets("a1", "b1")
		w.Fails("a1")
		w.OK("b1")
		w.Gets("b2")
		r.Pass(10*job.Second - 1)
		w.Gets()
		r.Pass(1)
		w.Gets("a1")
		w.OK("a1")
		w.Gets("a2")
		if s := r.Stats(); s.OutOfOrder != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAStrictGroupKeepsItsOrderThroughDisconnectAndLapse(t *testing.T) { // I7
	strictly(t, func(r *rig) {
		w := r.Named("w", 1)
		w.Gets("a1")
		first := w.Held["a1"]
		w.End()
		v := r.Named("v", 9)
		v.Gets("b1")
		r.Pass(30 * job.Second)
		v.Gets("a1")
		r.Refused(job.Superseded, engine.Settle{ID: r.IDs["a1"], Token: first.Lease.Token}) // a newer turn was granted
		if v.Held["a1"].Lease.Turn <= first.Lease.Turn {
			r.Errorf("turn %d after %d", v.Held["a1"].Lease.Turn, first.Lease.Turn)
		}
		v.OK("a1")
		v.Gets("a2")
	})
}

func TestALateOKBeforeANewerTurnLetsTheGroupGoOn(t *testing.T) { // core.md section 4
	strictly(t, func(r *rig) {
		w := r.Named("w", 1)
		w.Gets("a1")
		w.End()
		r.Pass(30 * job.Second)
		r.Settled(w.Held["a1"], job.OK)
		r.Named("v", 9).Gets("a2", "b1")
	})
}

func TestAStrictGroupKeepsItsOrderThroughARestart(t *testing.T) { // I7
	strictly(t, func(r *rig) {
		w := r.Named("w", 9)
		w.Gets("a1", "b1")
		w.Fails("b1")
		r.Restart(job.Second)
		v := r.Named("v", 9)
		v.Gets() // a1 runs on at w, b1 waits
		w = r.Named("w", 1)
		w.Gets("a1")
		w.OK("a1")
		w.End()
		v.Gets("a2")
		r.Pass(9 * job.Second)
		v.Gets("b1")
		v.OK("b1", "a2")
		v.Gets("b2", "a3") // in the order in which their groups became free
		if s := r.Stats(); s.OutOfOrder != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAStrictGroupKeepsItsOrderThroughACrash(t *testing.T) { // I7: its takes are synced before they are answered
	strictly(t, func(r *rig) {
		w := r.Named("w", 9)
		w.Gets("a1", "b1")
		r.PowerCut()
		v := r.Named("v", 9)
		v.Gets()
		w.OK("a1", "b1")
		v.Gets("a2", "b2")
	})
}

func TestAHoldOnAGroupStopsItUntilItsTimeAndOthersProceed(t *testing.T) { // core.md section 2, I6
	strictly(t, func(r *rig) {
		if err := enginetest.HoldGroup(r.Context(), r.Engine, "q", "a", r.Now()+job.Minute); err != nil {
			r.Fatal(err)
		}
		w := r.Named("w", 9)
		w.Gets("b1")
		r.Restart(0)
		w = r.Named("w", 9)
		w.Gets("b1")
		r.Pass(job.Minute - 1)
		w.Gets()
		r.Pass(1)
		w.Gets("a1")
		w.OK("a1", "b1")
		w.Gets("a2", "b2")
	})
}

func TestAHeadThatIsDueLaterBlocksItsGroup(t *testing.T) { // core.md section 2
	scenario(t, func(r *rig) {
		r.SetQueue("q", strict)
		r.Add("q", "a1", grouped("a"), due(r.Now()+job.Minute))
		r.Add("q", "a2", grouped("a"), func(n *engine.NewJob) { n.Job.Priority, n.Place = 1, job.PlaceFront })
		w := r.Anonymous(9)
		r.Pass(job.Minute - 1)
		w.Gets()
		r.Pass(1)
		w.Gets("a1")
	})
}

func TestADeadHeadBlocksParksOrIsSkippedAsItsQueueSays(t *testing.T) { // core.md section 2, on_dead
	for onDead, blocked := range map[job.OnDead]bool{job.DeadSkip: false, job.DeadBlock: true, job.DeadPark: true} {
		strictly(t, func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.OnDead = onDead })
			w := r.Named("w", 9)
			w.Gets("a1", "b1")
			r.Settled(w.Held["a1"], job.Died)
			if !blocked {
				w.Gets("a2")
				return
			}
			r.Add("q", "a4", grouped("a"))
			w.Gets()
			r.Pass(30 * job.Day) // outside the dead set's retention
			r.Expect("a1", job.Dead)
			r.Restart(0)
			w = r.Named("w", 9)
			w.Gets("b1")
			r.Operate("a1", revive)
			for _, name := range []string{"a1", "a2", "a3", "a4"} {
				w.Gets(name)
				w.OK(name)
			}
			if s := r.Stats(); s.OutOfOrder != 0 {
				r.Errorf("%s: %+v", onDead, s)
			}
		})
	}
}

func TestDeletingADeadHeadFreesItsGroup(t *testing.T) {
	for _, onDead := range []job.OnDead{job.DeadBlock, job.DeadPark} {
		strictly(t, func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.OnDead = onDead })
			w := r.Named("w", 9)
			w.Gets("a1", "b1")
			r.Settled(w.Held["a1"], job.Died)
			w.Gets()
			if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a1"]); err != nil {
				r.Fatal(err)
			}
			w.Gets("a2")
		})
	}
}

func TestAReplayedMemberIsCountedAsOutOfOrder(t *testing.T) { // core.md section 2
	strictly(t, func(r *rig) {
		w := r.Named("w", 9)
		w.Gets("a1", "b1")
		r.Settled(w.Held["a1"], job.Died)
		w.Gets("a2")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.IDs["a1"], revive); job.KindOf(err) != job.WrongState {
			r.Errorf("replayed without allow_out_of_order: %v", err)
		}
		anyway := revive
		anyway.Allow = true
		r.Operate("a1", anyway)
		w.OK("a2")
		w.Gets("a1") // its sort position among those waiting
		w.OK("a1")
		w.Gets("a3")
		if s := r.Stats(); s.OutOfOrder != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestOrderStartStartsInSequenceWithinItsConcurrency(t *testing.T) { // core.md section 2
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.Order, q.Concurrency = job.OrderStart, 2 })
		for _, name := range []string{"a1", "a2", "a3", "a4"} {
			r.Add("q", name, grouped("a"))
		}
		w := r.Anonymous(9)
		w.Gets("a1", "a2")
		w.Fails("a1") // its wait blocks nobody
		w.Gets("a3")
		w.OK("a2")
		w.Gets("a4")
	})
}

func TestConcurrencyLimitsTheLeasesOfEachGroup(t *testing.T) { // core.md section 2
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.Concurrency = 2 })
		for i := range 4 {
			r.Add("q", fmt.Sprint("a", i), grouped("a"))
			r.Add("q", fmt.Sprint("b", i), grouped("b"))
		}
		r.AddAll("q", "free")
		x, y := r.Anonymous(5), r.Anonymous(9)
		x.Gets("a0", "b0", "a1", "b1", "free")
		y.Gets()
		r.SetQueue("q", func(q *job.Queue) { q.Concurrency = 3 }) // live
		y.Gets("a2", "b2")
		x.End()
		y.Gets("a0", "b0", "a1", "b1", "free")
	})
}

func TestTheOrderOfAQueueDoesNotChangeUnderOpenMembers(t *testing.T) {
	strictly(t, func(r *rig) {
		_, err := r.Part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Order = job.OrderNone; return nil }, job.Actor{})
		if job.KindOf(err) != job.WrongState {
			r.Errorf("%v", err)
		}
		if q, _, _ := r.Queue(r.Context(), "q"); q.Order != job.OrderStrict {
			r.Error("a refused change was made")
		}
	})
}

func TestTurnsNeverRepeatWhenAGroupIsEmptiedAndFilledAgain(t *testing.T) { // core.md section 4, fencing numbers
	scenario(t, func(r *rig) {
		r.SetQueue("q", strict)
		w := r.Anonymous(1)
		var last int64
		for i := range 5 {
			name := fmt.Sprint("a", i)
			r.Add("q", name, grouped("a"))
			w.Gets(name)
			if turn := w.Held[name].Lease.Turn; turn <= last {
				r.Fatalf("turn %d after %d", turn, last)
			} else {
				last = turn
			}
			w.OK(name)
			if n := r.Rows(job.Gates); n != 0 {
				r.Errorf("the gate of an empty group is kept")
			}
			r.Restart(0)
			w = r.Anonymous(1)
		}
	})
}

// Pause and hold of a queue.

func TestAPausedQueueGivesOutNothingUntilItIsResumed(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		r.AddAll("other", "b")
		r.SetQueue("q", func(q *job.Queue) { q.Paused = true })
		w := r.Anonymous(9)
		w.Gets("b")
		r.AddAll("q", "c")
		r.Restart(0)
		w = r.Anonymous(9)
		w.Gets("b")
		if j := r.Job("a"); j.State != job.Ready {
			r.Errorf("pausing touched its jobs: %+v", j)
		}
		r.SetQueue("q", func(q *job.Queue) { q.Paused = false })
		w.Gets("a", "c")
	})
}

func TestAHeldQueueWakesExactlyAtItsTime(t *testing.T) { // I6
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		r.SetQueue("q", func(q *job.Queue) { q.HoldUntil = r.Now() + job.Minute })
		w := r.Anonymous(9)
		r.Pass(job.Minute - 1)
		w.Gets()
		r.Pass(1)
		w.Gets("a")
		if q, _, _ := r.Queue(r.Context(), "q"); q.HoldUntil != 0 {
			r.Errorf("still held until %d", q.HoldUntil)
		}
	})
}

// TestNothingIsKeptOfAGroupThatIsOver: a group has a row only while it has
// members, or is held.
func TestNothingIsKeptOfAGroupThatIsOver(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"its dead head was revived": func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.OnDead = job.DeadPark })
			r.Add("q", "a", grouped("g"), func(n *engine.NewJob) { n.Job.ExpiresAt = r.Clock.Wall() + 10 })
			r.Pass(10)
			r.Expect("a", job.Dead)
			r.Operate("a", revive)
			w := r.Named("w", 1)
			w.Gets("a")
			w.OK("a")
		},
		"it was held when it ended": func(r *rig) {
			r.SetQueue("q", strict)
			r.Add("q", "a", grouped("g"))
			w := r.Named("w", 1)
			w.Gets("a")
			if err := enginetest.HoldGroup(r.Context(), r.Engine, "q", "g", r.Clock.Wall()+10); err != nil {
				r.Fatal(err)
			}
			w.OK("a")
			r.Pass(10)
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				if end(r); r.Rows(job.Gates) != 0 {
					t.Errorf("%d rows are kept of a group without members", r.Rows(job.Gates))
				}
			})
		})
	}
}

// TestAHeadThatExpiresParksItsGroup: also a head that nobody has, be it ready
// or waiting for its next attempt, and on replay the group comes back in order.
func TestAHeadThatExpiresParksItsGroup(t *testing.T) { // core.md section 2
	expires := func(n *engine.NewJob) { n.Job.ExpiresAt = n.Job.ReadyAt + job.Minute }
	for name, head := range map[string]func(*engine.NewJob){
		"ready":     func(*engine.NewJob) {},
		"scheduled": func(n *engine.NewJob) { n.Job.ReadyAt += 2 * job.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.SetQueue("q", strict)
				r.SetQueue("q", func(q *job.Queue) { q.OnDead = job.DeadPark })
				r.Add("q", "1", grouped("g"), due(r.Now()), expires, head)
				r.Add("q", "2", grouped("g"))
				r.Pass(job.Minute)
				r.Expect("1", job.Dead)
				if parked := r.GateOf("q", "g").Park; parked != "dead/"+r.IDs["1"].String() {
					r.Errorf("the group is parked under %q", parked)
				}
				r.Add("q", "3", grouped("g"))
				w := r.Named("w", 9)
				w.Gets()
				r.Operate("1", revive)
				for _, name := range []string{"1", "2", "3"} {
					w.Gets(name)
					w.OK(name)
				}
				if s := r.Stats(); s.OutOfOrder != 0 {
					r.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestADeathBehindTheHeadDoesNotPark: on_dead speaks of a head. What dies
// waiting holds those behind it once they come to it, and nobody before it.
func TestADeathBehindTheHeadDoesNotPark(t *testing.T) { // core.md section 2
	for _, onDead := range []job.OnDead{job.DeadBlock, job.DeadPark} {
		t.Run(onDead.String(), func(t *testing.T) {
			strictly(t, func(r *rig) {
				r.SetQueue("q", func(q *job.Queue) { q.OnDead = onDead })
				r.Add("q", "b3", grouped("b"), func(n *engine.NewJob) { n.Job.ExpiresAt = r.Clock.Wall() + 10 })
				r.Add("q", "b4", grouped("b"))
				r.Pass(10)
				r.Expect("b3", job.Dead)
				if g := r.GateOf("q", "b"); g.Park != "" {
					r.Errorf("the group is parked under %q", g.Park)
				}
				w := r.Named("w", 9)
				w.Gets("a1", "b1")
				w.OK("b1")
				w.Gets("b2")
				w.OK("b2")
				w.Gets()
				r.Operate("b3", revive)
				w.Gets("b3")
			})
		})
	}
}

func TestAGateThatATakeMovesOnIsOfferedToWhoeverHasRoom(t *testing.T) { // DESIGN section 4: no work waits beside a holder
	scenario(t, func(r *rig) {
		r.Add("q", "a1", grouped("a"), copies(2))
		r.Add("q", "a2", grouped("a"))
		w := r.Anonymous(9)
		w.Gets("a1") // and not a2: a1 still wants a holder, and goes first
		x := r.Anonymous(1)
		x.Gets("a1")
		w.Gets("a2")
	})
}
