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
		r.queue("q", strict)
		for _, name := range []string{"a1", "a2", "b1", "a3", "b2"} {
			r.put("q", name, grouped(name[:1]), retry(job.Retry{Curve: wait(10 * job.Second)}))
		}
		f(r)
	})
}

func TestAStrictGroupHasOneLiveTurnAndOthersProceed(t *testing.T) { // I7
	strictly(t, func(r *rig) {
		w := r.named("w", 9)
		w.gets("a1", "b1")
		w.ok("b1")
		w.gets("b2")
		w.ok("a1")
		w.gets("a2")
		w.gets()
	})
}

func TestAStrictGroupKeepsItsOrderThroughFailureAndBackoff(t *testing.T) { // I7
	strictly(t, func(r *rig) {
		w := r.named("w", 9)
		w.gets("a1", "b1")
		w.fail("a1")
		w.ok("b1")
		w.gets("b2")
		r.Pass(10*job.Second - 1)
		w.gets()
		r.Pass(1)
		w.gets("a1")
		w.ok("a1")
		w.gets("a2")
		if s := r.stats(); s.OutOfOrder != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAStrictGroupKeepsItsOrderThroughDisconnectAndLapse(t *testing.T) { // I7
	strictly(t, func(r *rig) {
		w := r.named("w", 1)
		w.gets("a1")
		first := w.held["a1"]
		w.close()
		v := r.named("v", 9)
		v.gets("b1")
		r.Pass(30 * job.Second)
		v.gets("a1")
		r.refused(job.Superseded, engine.Settle{ID: r.ids["a1"], Token: first.Lease.Token}) // a newer turn was granted
		if v.held["a1"].Lease.Turn <= first.Lease.Turn {
			r.Errorf("turn %d after %d", v.held["a1"].Lease.Turn, first.Lease.Turn)
		}
		v.ok("a1")
		v.gets("a2")
	})
}

func TestALateOKBeforeANewerTurnLetsTheGroupGoOn(t *testing.T) { // core.md section 4
	strictly(t, func(r *rig) {
		w := r.named("w", 1)
		w.gets("a1")
		w.close()
		r.Pass(30 * job.Second)
		r.settle(w.held["a1"], job.OK)
		r.named("v", 9).gets("a2", "b1")
	})
}

func TestAStrictGroupKeepsItsOrderThroughARestart(t *testing.T) { // I7
	strictly(t, func(r *rig) {
		w := r.named("w", 9)
		w.gets("a1", "b1")
		w.fail("b1")
		r.Restart(job.Second)
		v := r.named("v", 9)
		v.gets() // a1 runs on at w, b1 waits
		w = r.named("w", 1)
		w.gets("a1")
		w.ok("a1")
		w.close()
		v.gets("a2")
		r.Pass(9 * job.Second)
		v.gets("b1")
		v.ok("b1", "a2")
		v.gets("b2", "a3") // in the order in which their groups became free
		if s := r.stats(); s.OutOfOrder != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAStrictGroupKeepsItsOrderThroughACrash(t *testing.T) { // I7: its takes are synced before they are answered
	strictly(t, func(r *rig) {
		w := r.named("w", 9)
		w.gets("a1", "b1")
		r.PowerCut()
		v := r.named("v", 9)
		v.gets()
		w.ok("a1", "b1")
		v.gets("a2", "b2")
	})
}

func TestAHoldOnAGroupStopsItUntilItsTimeAndOthersProceed(t *testing.T) { // core.md section 2, I6
	strictly(t, func(r *rig) {
		if err := enginetest.HoldGroup(r.Context(), r.Engine, "q", "a", r.Now()+job.Minute); err != nil {
			r.Fatal(err)
		}
		w := r.named("w", 9)
		w.gets("b1")
		r.Restart(0)
		w = r.named("w", 9)
		w.gets("b1")
		r.Pass(job.Minute - 1)
		w.gets()
		r.Pass(1)
		w.gets("a1")
		w.ok("a1", "b1")
		w.gets("a2", "b2")
	})
}

func TestAHeadThatIsDueLaterBlocksItsGroup(t *testing.T) { // core.md section 2
	scenario(t, func(r *rig) {
		r.queue("q", strict)
		r.put("q", "a1", grouped("a"), due(r.Now()+job.Minute))
		r.put("q", "a2", grouped("a"), func(n *engine.NewJob) { n.Job.Priority, n.Place = 1, job.PlaceFront })
		w := r.anonymous(9)
		r.Pass(job.Minute - 1)
		w.gets()
		r.Pass(1)
		w.gets("a1")
	})
}

func TestADeadHeadBlocksParksOrIsSkippedAsItsQueueSays(t *testing.T) { // core.md section 2, on_dead
	for onDead, blocked := range map[job.OnDead]bool{job.DeadSkip: false, job.DeadBlock: true, job.DeadPark: true} {
		strictly(t, func(r *rig) {
			r.queue("q", func(q *job.Queue) { q.OnDead = onDead })
			w := r.named("w", 9)
			w.gets("a1", "b1")
			r.settle(w.held["a1"], job.Died)
			if !blocked {
				w.gets("a2")
				return
			}
			r.put("q", "a4", grouped("a"))
			w.gets()
			r.Pass(30 * job.Day) // outside the dead set's retention
			r.expect("a1", job.Dead)
			r.Restart(0)
			w = r.named("w", 9)
			w.gets("b1")
			r.operate("a1", revive)
			for _, name := range []string{"a1", "a2", "a3", "a4"} {
				w.gets(name)
				w.ok(name)
			}
			if s := r.stats(); s.OutOfOrder != 0 {
				r.Errorf("%s: %+v", onDead, s)
			}
		})
	}
}

func TestDeletingADeadHeadFreesItsGroup(t *testing.T) {
	for _, onDead := range []job.OnDead{job.DeadBlock, job.DeadPark} {
		strictly(t, func(r *rig) {
			r.queue("q", func(q *job.Queue) { q.OnDead = onDead })
			w := r.named("w", 9)
			w.gets("a1", "b1")
			r.settle(w.held["a1"], job.Died)
			w.gets()
			if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.ids["a1"]); err != nil {
				r.Fatal(err)
			}
			w.gets("a2")
		})
	}
}

func TestAReplayedMemberIsCountedAsOutOfOrder(t *testing.T) { // core.md section 2
	strictly(t, func(r *rig) {
		w := r.named("w", 9)
		w.gets("a1", "b1")
		r.settle(w.held["a1"], job.Died)
		w.gets("a2")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.ids["a1"], revive); job.KindOf(err) != job.WrongState {
			r.Errorf("replayed without allow_out_of_order: %v", err)
		}
		anyway := revive
		anyway.Allow = true
		r.operate("a1", anyway)
		w.ok("a2")
		w.gets("a1") // its sort position among those waiting
		w.ok("a1")
		w.gets("a3")
		if s := r.stats(); s.OutOfOrder != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestOrderStartStartsInSequenceWithinItsConcurrency(t *testing.T) { // core.md section 2
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.Order, q.Concurrency = job.OrderStart, 2 })
		for _, name := range []string{"a1", "a2", "a3", "a4"} {
			r.put("q", name, grouped("a"))
		}
		w := r.anonymous(9)
		w.gets("a1", "a2")
		w.fail("a1") // its wait blocks nobody
		w.gets("a3")
		w.ok("a2")
		w.gets("a4")
	})
}

func TestConcurrencyLimitsTheLeasesOfEachGroup(t *testing.T) { // core.md section 2
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.Concurrency = 2 })
		for i := range 4 {
			r.put("q", fmt.Sprint("a", i), grouped("a"))
			r.put("q", fmt.Sprint("b", i), grouped("b"))
		}
		r.puts("q", "free")
		x, y := r.anonymous(5), r.anonymous(9)
		x.gets("a0", "b0", "a1", "b1", "free")
		y.gets()
		r.queue("q", func(q *job.Queue) { q.Concurrency = 3 }) // live
		y.gets("a2", "b2")
		x.close()
		y.gets("a0", "b0", "a1", "b1", "free")
	})
}

func TestTheOrderOfAQueueDoesNotChangeUnderOpenMembers(t *testing.T) {
	strictly(t, func(r *rig) {
		_, err := r.part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Order = job.OrderNone; return nil }, job.Actor{})
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
		r.queue("q", strict)
		w := r.anonymous(1)
		var last int64
		for i := range 5 {
			name := fmt.Sprint("a", i)
			r.put("q", name, grouped("a"))
			w.gets(name)
			if turn := w.held[name].Lease.Turn; turn <= last {
				r.Fatalf("turn %d after %d", turn, last)
			} else {
				last = turn
			}
			w.ok(name)
			if n := r.rows(job.Gates); n != 0 {
				r.Errorf("the gate of an empty group is kept")
			}
			r.Restart(0)
			w = r.anonymous(1)
		}
	})
}

// Pause and hold of a queue.

func TestAPausedQueueGivesOutNothingUntilItIsResumed(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		r.puts("other", "b")
		r.queue("q", func(q *job.Queue) { q.Paused = true })
		w := r.anonymous(9)
		w.gets("b")
		r.puts("q", "c")
		r.Restart(0)
		w = r.anonymous(9)
		w.gets("b")
		if j := r.job("a"); j.State != job.Ready {
			r.Errorf("pausing touched its jobs: %+v", j)
		}
		r.queue("q", func(q *job.Queue) { q.Paused = false })
		w.gets("a", "c")
	})
}

func TestAHeldQueueWakesExactlyAtItsTime(t *testing.T) { // I6
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		r.queue("q", func(q *job.Queue) { q.HoldUntil = r.Now() + job.Minute })
		w := r.anonymous(9)
		r.Pass(job.Minute - 1)
		w.gets()
		r.Pass(1)
		w.gets("a")
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
			r.queue("q", func(q *job.Queue) { q.OnDead = job.DeadPark })
			r.put("q", "a", grouped("g"), func(n *engine.NewJob) { n.Job.ExpiresAt = r.Clock.Wall() + 10 })
			r.Pass(10)
			r.expect("a", job.Dead)
			r.operate("a", revive)
			w := r.named("w", 1)
			w.gets("a")
			w.ok("a")
		},
		"it was held when it ended": func(r *rig) {
			r.queue("q", strict)
			r.put("q", "a", grouped("g"))
			w := r.named("w", 1)
			w.gets("a")
			if err := enginetest.HoldGroup(r.Context(), r.Engine, "q", "g", r.Clock.Wall()+10); err != nil {
				r.Fatal(err)
			}
			w.ok("a")
			r.Pass(10)
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				if end(r); r.rows(job.Gates) != 0 {
					t.Errorf("%d rows are kept of a group without members", r.rows(job.Gates))
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
				r.queue("q", strict)
				r.queue("q", func(q *job.Queue) { q.OnDead = job.DeadPark })
				r.put("q", "1", grouped("g"), due(r.Now()), expires, head)
				r.put("q", "2", grouped("g"))
				r.Pass(job.Minute)
				r.expect("1", job.Dead)
				if parked := r.gateOf("q", "g").Park; parked != "dead/"+r.ids["1"].String() {
					r.Errorf("the group is parked under %q", parked)
				}
				r.put("q", "3", grouped("g"))
				w := r.named("w", 9)
				w.gets()
				r.operate("1", revive)
				for _, name := range []string{"1", "2", "3"} {
					w.gets(name)
					w.ok(name)
				}
				if s := r.stats(); s.OutOfOrder != 0 {
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
				r.queue("q", func(q *job.Queue) { q.OnDead = onDead })
				r.put("q", "b3", grouped("b"), func(n *engine.NewJob) { n.Job.ExpiresAt = r.Clock.Wall() + 10 })
				r.put("q", "b4", grouped("b"))
				r.Pass(10)
				r.expect("b3", job.Dead)
				if g := r.gateOf("q", "b"); g.Park != "" {
					r.Errorf("the group is parked under %q", g.Park)
				}
				w := r.named("w", 9)
				w.gets("a1", "b1")
				w.ok("b1")
				w.gets("b2")
				w.ok("b2")
				w.gets()
				r.operate("b3", revive)
				w.gets("b3")
			})
		})
	}
}

func TestAGateThatATakeMovesOnIsOfferedToWhoeverHasRoom(t *testing.T) { // DESIGN section 4: no work waits beside a holder
	scenario(t, func(r *rig) {
		r.put("q", "a1", grouped("a"), copies(2))
		r.put("q", "a2", grouped("a"))
		w := r.anonymous(9)
		w.gets("a1") // and not a2: a1 still wants a holder, and goes first
		x := r.anonymous(1)
		x.gets("a1")
		w.gets("a2")
	})
}
