package turn_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/rule"
)

// What ends for one member of a strict turn takes along those behind it, and nobody
// before it.
func TestAFailureLeavesThoseBeforeItWithTheirHolder(t *testing.T) { // inbox.md 3, core.md 2
	scenario(t, func(r *rig) {
		r.SetQueue("in", failFirst)
		r.Members("a1", "a2", "a3")
		held := r.Took(whole, "a: a1 a2 a3")
		r.Settled(held["a2"], job.Retried)
		r.Expect("a1", job.Leased)
		r.Expect("a3", job.Ready)
		r.Settled(held["a1"], job.OK)
		r.Took(whole, "") // a2 is the head, and is not due
		r.Pass(10 * job.Second)
		r.Took(whole, "a: a2 a3")
	})
}

func TestAMemberThatIsGivenBackExpiredTakesNobodyAlong(t *testing.T) { // inbox.md 9, docs/adr/0006
	scenario(t, func(r *rig) {
		r.SetQueue("in", failFirst)
		r.Member("a1", func(n *engine.NewJob) { n.Job.ExpiresAt = r.Clock.Wall() + 10*job.Second })
		r.Members("a2", "a3")
		held := r.Took(whole, "a: a1 a2 a3")
		r.Pass(10 * job.Second)
		r.Settled(held["a1"], job.Released)
		r.Expect("a2", job.Leased)
		r.Expect("a3", job.Leased)
		r.Settled(held["a2"], job.Released) // in time: it goes back, and a3 with it
		r.Expect("a3", job.Ready)
	})
}

// A member that dies behind another one is not the head: its group goes on to it,
// and is parked with it then.
func TestAMemberThatDiesBehindAnotherParksNobodyBeforeIt(t *testing.T) { // core.md 2, on_dead
	scenario(t, func(r *rig) {
		r.SetQueue("in", func(q *job.Queue) { failFirst(q); q.OnDead = job.DeadPark })
		r.Members("a1", "a2", "a3")
		held := r.Took(whole, "a: a1 a2 a3")
		r.Settled(held["a2"], job.Died)
		r.Settled(held["a1"], job.Retried)
		is := func(want rule.Condition) {
			r.Helper()
			list, err := r.Part.Turns.Groups(r.Context(), "in", nil, "", 9)
			if err != nil || len(list) != 1 || list[0].Is != want {
				r.Errorf("%+v, %v; want %s", list, err, want)
			}
		}
		is(rule.GroupBackingOff) // a1 is tried again
		r.Pass(10 * job.Second)
		r.Settled(r.Took(whole, "a: a1")["a1"], job.OK)
		is(rule.GroupBlocked)
		r.Took(whole, "")
	})
}

// The number of a turn fences: each turn of a group has a higher one than those before,
// whether the group was empty meanwhile or not.
func TestEachTurnOfAGroupHasAHigherNumber(t *testing.T) { // core.md 4
	inbox(t, bothModes, func(r *rig) {
		last := int64(0)
		next := func() {
			r.Helper()
			turns := r.TurnsNow(turn.Options{Local: true})
			if len(turns) != 1 || turns[0].Number <= last {
				r.Fatalf("%+v comes after %d", turns, last)
			}
			last = turns[0].Number
			r.Settled(turns[0].Deliveries[0], job.OK)
		}
		r.Members("a1", "a2")
		next()
		next() // of the same group, which was not empty
		r.Members("a3")
		next() // which was
	})
}
