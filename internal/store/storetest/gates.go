package storetest

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var gates = []subject{
	{"a group offers one member at a time", oneMember},
	{"concurrency limits the leases of a group", concurrency},
	{"a changed limit moves the gates that stand already", changedLimit},
	{"order start: members start in sequence, a retry blocks nobody", orderStart},
	{"order strict: the head blocks its group", orderStrict},
	{"order strict: priority and place count only between groups", strictPlaces},
	{"a hold takes the whole group out of line", gateHold},
	{"a park takes the whole group out of line", gatePark},
	{"a gate held before it has members holds them when they come", gateFirst},
	{"a dead head blocks its group", gateBlocker},
	{"a dead head parks its group", gateDeadPark},
	{"a member that goes behind others leaves the place to them", gateBehind},
	{"a member parked or moved away frees its group as the order says", gateMoves},
	{"the order of a group is that of its queue now", gateOrderNow},
	{"a gate stands for a member with its requirements", gateClass},
	{"an open breaker takes the whole group out of line", gateBreaker},
	{"a half open breaker lets its probes through", gateProbe},
	{"a rate that is used up takes the group out of line", gateSlow},
	{"in a fair queue groups have turns", fairTurns},
	{"in a fair queue jobs without a group have a turn together", fairUngrouped},
	{"weights make longer turns", fairWeights},
	{"groups that have turns are counted by what they do", countedTurns},
	{"a queue gives as much as there is room", roomOfQueues},
}

func oneMember(x *site) {
	x.put("q", "a1", group("a"))
	x.put("q", "b1", group("b"))
	x.put("q", "a2", group("a"))
	x.put("q", "alone")
	x.put("q", "a0", group("a"), priority(1))
	x.put("q2", "a3", group("a"))
	x.offered("order none", "a0 b1 alone a3")
	x.expect("members", x.members("q", "a"), "a0 a1 a2")
	x.expect("the same name elsewhere", x.members("q2", "a"), "a3")
}

// members returns the names of the members of a group, in its order.
func (x *site) members(queue, group string) string {
	x.Helper()
	return x.ids(func(r store.Reader) ([]job.ID, error) { return r.IDs(store.Members(queue, group), 100) })
}

func concurrency(x *site) {
	x.queue("q", func(q *job.Queue) { q.Concurrency = 2 })
	a := x.put("q", "a", group("g"))
	b := x.put("q", "b", group("g"))
	x.put("q", "c", group("g"))
	a = x.take(a, "h")
	x.offered("one runs", "b")
	b = x.take(b, "h")
	x.offered("two run", "")
	x.settle(a, rule.SettleOK)
	x.offered("one runs again", "c")
	x.reopen()
	x.offered("one runs again, reopened", "c")
	x.settle(b, rule.SettleRelease)
	x.offered("none runs", "b")
}

func changedLimit(x *site) {
	for _, name := range []string{"a", "b"} {
		j := x.put("q", name+"1", group(name))
		x.put("q", name+"2", group(name))
		x.take(j, "h")
	}
	x.offered("no limit", "a2 b2")
	x.queue("q", func(q *job.Queue) { q.Concurrency = 1 })
	x.offered("limit 1", "")
	x.queue("q", func(q *job.Queue) { q.Concurrency = 3 })
	x.offered("limit 3", "a2 b2")
	x.queue("q", func(q *job.Queue) { q.Concurrency = 1 })
	x.update(func(tx store.Tx) error { return tx.Unset(job.Queues, "q") })
	x.offered("no settings, so no limit", "a2 b2")
}

func orderStart(x *site) {
	x.queue("q", func(q *job.Queue) { q.Order, q.Concurrency = job.OrderStart, 2 })
	a := x.put("q", "a", group("g"))
	b := x.put("q", "b", group("g"), priority(1))
	x.put("q", "c", group("g"))
	x.expect("members", x.members("q", "g"), "a b c")
	x.offered("the first", "a")
	a = x.take(a, "h")
	x.offered("the second, for all its priority", "b")
	x.settle(a, rule.SettleRetry)
	x.offered("a waits and blocks nobody", "b")
	x.take(b, "h")
	x.offered("the third", "c")
}

func orderStrict(x *site) {
	x.queue("q", func(q *job.Queue) { q.Order = job.OrderStrict })
	a := x.put("q", "a", group("g"), readyAt(x.now+10))
	b := x.put("q", "b", group("g"))
	x.put("q", "other", group("o"))
	x.offered("the head is scheduled", "other")
	x.now += 10
	a = x.do(a, rule.Command{Verb: rule.Promote})
	x.offered("the head", "a other")
	a = x.take(a, "h")
	x.offered("one turn at a time", "other")
	a = x.settle(a, rule.SettleRetry)
	x.offered("the head waits", "other")
	x.reopen()
	x.offered("the head waits, reopened", "other")
	x.now = a.ReadyAt
	a = x.do(a, rule.Command{Verb: rule.Promote})
	x.settle(x.take(a, "h"), rule.SettleOK)
	x.offered("the next", "b other")
	x.take(b, "h")
	x.offered("its turn", "other")
}

func strictPlaces(x *site) {
	x.queue("q", func(q *job.Queue) { q.Order = job.OrderStrict })
	x.put("q", "a1", group("a"))
	x.put("q", "b1", group("b"), priority(1))
	x.put("q", "a2", group("a"), priority(0), atFront())
	x.offered("heads", "b1 a1")
	x.expect("members", x.members("q", "a"), "a1 a2")
}

func (x *site) gate(queue, group string, change func(g *job.Gate)) {
	x.Helper()
	x.update(func(tx store.Tx) error {
		g, err := gateOf(tx, queue, group)
		if err != nil {
			return err
		}
		changed := *g
		change(&changed)
		return setGate(tx, &changed)
	})
}

func gateHold(x *site) {
	x.put("q", "a", group("g"))
	x.put("q", "b", group("g"))
	x.put("q", "c")
	x.gate("q", "g", func(g *job.Gate) { *g = *rule.HoldGate(g, 5) })
	x.offered("held, until the clock wakes it", "c")
	x.put("q", "first", group("g"), priority(0))
	x.offered("a newcomer is held too", "c")
	x.reopen()
	x.offered("held, reopened", "c")
	x.gate("q", "g", func(g *job.Gate) { g.Hold = 0 })
	x.offered("awake", "first c")
}

func gatePark(x *site) {
	a := x.put("q", "a", group("g"))
	x.put("q", "b", group("g"))
	x.put("q", "c", group("other"))
	x.gate("q", "g", func(g *job.Gate) { g.Park = "breaker" })
	x.offered("parked", "c")
	x.do(a, rule.Command{Verb: rule.Cancel})
	x.offered("the next is parked too", "c")
	x.gate("q", "g", func(g *job.Gate) { g.Park = "" })
	x.offered("back", "b c")
}

func gateFirst(x *site) {
	x.set(&job.Gate{Queue: "q", Group: "g", Hold: 5})
	x.put("q", "a", group("g"))
	x.offered("held", "")
	x.update(func(tx store.Tx) error { return tx.Unset(job.Gates, job.GateKey("q", "g")) })
	x.offered("no row is no hold", "a")
}

// killed is a job that its worker gave up.
func (x *site) killed(queue, name string, how ...with) *job.Job {
	x.Helper()
	return x.settle(x.take(x.put(queue, name, how...), "h"), rule.SettleDead)
}

func gateBlocker(x *site) {
	for _, order := range []job.Order{job.OrderNone, job.OrderStart, job.OrderStrict} {
		name := order.String()
		x.queue(name, func(q *job.Queue) { q.OnDead, q.Order = job.DeadBlock, order })
		a := x.killed(name, "a", group("g"))
		x.put(name, "b", group("g"))
		x.put(name, "c", group("other"))
		x.expect(name+": members", x.members(name, "g"), "a b")
		x.expect(name+": blocked", x.line(rule.Seeker{Holder: "h"}, 9, name), "c")
		x.reopen()
		x.expect(name+": blocked, reopened", x.line(rule.Seeker{Holder: "h"}, 9, name), "c")
		x.do(a, rule.Command{Verb: rule.Revive})
		x.expect(name+": revived", x.line(rule.Seeker{Holder: "h"}, 9, name), "a c")
		x.do(a, rule.Command{Verb: rule.Cancel})
		x.expect(name+": cancelled", x.line(rule.Seeker{Holder: "h"}, 9, name), "b c")
	}
	gone := x.killed("none", "gone", group("new"))
	x.put("none", "after", group("new"))
	x.do(gone, rule.Command{Verb: rule.Purge})
	x.expect("purged", x.line(rule.Seeker{Holder: "h"}, 9, "none"), "b c after")
}

func gateDeadPark(x *site) {
	x.queue("q", func(q *job.Queue) { q.OnDead, q.Order = job.DeadPark, job.OrderStrict })
	a := x.killed("q", "a", group("g"))
	x.put("q", "b", group("g"))
	x.offered("aside", "")
	x.do(a, rule.Command{Verb: rule.Revive})
	x.offered("back in order", "a")
	x.settle(x.take(a, "h"), rule.SettleOK)
	x.offered("the next", "b")
}

func gateMoves(x *site) {
	for _, order := range []job.Order{job.OrderStart, job.OrderStrict} {
		name := order.String()
		x.queue(name, func(q *job.Queue) { q.Order = order })
		a := x.put(name, "a", group("g"))
		x.put(name, "b", group("g"))
		a = x.do(a, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park = "needs/x" }})
		want := map[job.Order]string{job.OrderStart: "b"}[order]
		x.expect(name+": the head is parked", x.line(rule.Seeker{Holder: "h"}, 9, name), want)
		x.do(a, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park, j.Group = "", "other" }})
		x.expect(name+": the head left", x.line(rule.Seeker{Holder: "h"}, 9, name), "a b")
		x.expect(name+": members", x.members(name, "g"), "b")
	}
}

func gateBehind(x *site) {
	a := x.put("q", "a1", group("a"))
	x.put("q", "b")
	x.put("q", "a2", group("a"))
	x.do(a, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Priority = job.PriorityDefault + 1 }})
	x.offered("a1 is less urgent now", "b a2")
}

func countedTurns(x *site) {
	x.queue("q", func(q *job.Queue) {
		q.Turns, q.Concurrency, q.OnDead, q.Protection.Fair = true, 1, job.DeadBlock, &job.FairShare{}
	})
	expect := func(when string) {
		x.Helper()
		x.view(func(r store.Reader) error {
			want := [rule.Conditions]int64{rule.GroupReady: 1, rule.GroupRunning: 1, rule.GroupBackingOff: 1, rule.GroupBlocked: 1}
			if got := r.Depth("q").Groups; got != want {
				x.Errorf("%s: %v, want %v", when, got, want)
			}
			return nil
		})
	}
	x.put("q", "a", group("ready"))
	x.take(x.put("q", "b", group("running")), "h")
	x.put("q", "c", group("backing off"), readyAt(x.now+10))
	x.settle(x.take(x.put("q", "d", group("blocked")), "h"), rule.SettleDead)
	expect("each of another kind")
	x.reopen()
	expect("reopened")
}

// gateOrderNow: a member may come back from a time when its queue had another order.
func gateOrderNow(x *site) {
	x.queue("q", func(q *job.Queue) { q.Order = job.OrderStrict })
	a := x.killed("q", "a", group("g"))
	x.queue("q", func(q *job.Queue) { q.Order = job.OrderNone })
	x.put("q", "b", group("g"))
	a = x.do(a, rule.Command{Verb: rule.Revive, Allow: true})
	x.offered("revived", "a")
	x.take(a, "h")
	x.offered("no turns any more", "b")
	x.reopen()
	x.offered("no turns any more, reopened", "b")
}

func gateClass(x *site) {
	x.put("q", "a", group("g"), needs("os", "linux"))
	x.put("q", "b", group("g"))
	x.offered("the gate stands for a, which does not fit", "")
	x.expect("it fits", x.line(rule.Seeker{Holder: "h", Properties: map[string]string{"os": "linux"}}, 9), "a")
}

// throttle slows a group down as change says; one that says nothing is let go.
func (x *site) throttle(queue, group string, change func(t *job.Throttle)) {
	x.Helper()
	t := job.Throttle{Queue: queue, Group: group}
	if change(&t); t.Blank() {
		x.update(func(tx store.Tx) error { return tx.Unset(job.Throttles, t.Key()) })
		return
	}
	x.set(&t)
}

func gateBreaker(x *site) {
	x.throttle("q", "g", func(t *job.Throttle) { t.State = job.BreakerOpen })
	x.put("q", "a", group("g"))
	x.put("q", "b", group("g"))
	x.put("q", "c", group("other"))
	x.offered("open", "c")
	x.reopen()
	x.offered("open, reopened", "c")
	x.throttle("q", "g", func(t *job.Throttle) { t.Forced = true })
	x.offered("forced closed", "a c")
	x.throttle("q", "g", func(t *job.Throttle) { t.State = job.BreakerOpen })
	x.throttle("q", "g", func(*job.Throttle) {})
	x.offered("forgotten", "a c")
}

func gateProbe(x *site) {
	x.put("q", "a", group("g"))
	half := func(allowed, out, won int) func(t *job.Throttle) {
		return func(t *job.Throttle) {
			t.State, t.Allowed, t.Out, t.Won = job.BreakerHalfOpen, allowed, out, won
		}
	}
	x.throttle("q", "g", half(1, 0, 0))
	x.offered("one probe", "a")
	x.throttle("q", "g", half(1, 1, 0))
	x.offered("it runs", "")
	x.throttle("q", "g", half(2, 0, 1))
	x.offered("one of two", "a")
	x.throttle("q", "g", half(2, 1, 1))
	x.offered("both", "")
	x.throttle("q", "g", func(t *job.Throttle) { t.State, t.Allowed, t.Out = job.BreakerRamping, 2, 1 })
	x.offered("ramping", "a")
}

func gateSlow(x *site) {
	x.put("q", "a", group("g"))
	x.throttle("q", "g", func(t *job.Throttle) { t.Slow = 5 })
	x.offered("used up", "")
	x.throttle("q", "g", func(*job.Throttle) {})
	x.offered("there is more", "a")
}

func fairly(q *job.Queue) { q.Protection.Fair = &job.FairShare{} }

// turns gives what is first in line, one at a time.
func (x *site) turns(n int) (order string) {
	x.Helper()
	for range n {
		var first *job.Job
		x.view(func(r store.Reader) error {
			list, err := r.Ready(nil, rule.Seeker{Holder: "h"}, 1)
			if len(list) > 0 {
				first = list[0]
			}
			return err
		})
		if first == nil {
			return order + "-"
		}
		order += first.Type + " "
		x.settle(x.take(first, "h"), rule.SettleOK)
	}
	return order
}

func fairTurns(x *site) {
	x.queue("q", fairly)
	for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "c1", "b2"} {
		x.put("q", name, group(name[:1]))
	}
	x.offered("each once", "a1 b1 c1")
	x.expect("turns", x.turns(3), "a1 b1 c1 ")
	x.put("q", "d1", group("d"))
	x.reopen()
	x.expect("further", x.turns(6), "a2 b2 d1 a3 a4 -")
}

func fairUngrouped(x *site) {
	x.queue("q", fairly)
	for _, name := range []string{"a", "b", "c"} {
		x.put("q", name)
	}
	x.put("q", "g1", group("g"))
	x.put("q", "first", priority(1))
	x.put("q", "g2", group("g"))
	x.offered("the first of them", "first g1")
	x.expect("turns", x.turns(7), "first g1 a g2 b c -")
}

func fairWeights(x *site) {
	x.queue("q", func(q *job.Queue) { q.Protection.Fair = &job.FairShare{Weights: map[string]int{"a": 2}} })
	for _, name := range []string{"a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3"} {
		x.put("q", name, group(name[:1]))
	}
	x.expect("turns", x.turns(9), "a1 a2 b1 a3 a4 b2 a5 b3 -")
}

func roomOfQueues(x *site) {
	for _, name := range []string{"a", "b", "c"} {
		x.put("q", name)
		x.put("p", "p"+name)
	}
	for _, name := range []string{"r", "s"} {
		j := x.put("q", name, priority(1))
		j = x.settle(x.take(j, "h"), rule.SettleRetry)
		x.now = max(x.now, j.ReadyAt)
		x.do(j, rule.Command{Verb: rule.Promote})
	}
	for _, c := range []struct {
		all, retried int
		want         string
	}{
		{rule.NoLimit, rule.NoLimit, "r s a pa b pb c pc"},
		{2, 2, "r s pa pb pc"},
		{3, 1, "r a pa b pb pc"},
		{3, 0, "a pa b pb c pc"},
		{0, 5, "pa pb pc"},
	} {
		s := rule.Seeker{Holder: "x", Room: func(queue string) rule.Room {
			if queue == "p" {
				return rule.Room{All: rule.NoLimit}
			}
			return rule.Room{All: c.all, Retried: c.retried}
		}}
		x.expect(fmt.Sprint(c.all, " and ", c.retried), x.line(s, 100), c.want)
		x.expect(fmt.Sprint(c.all, " and ", c.retried, ", by name"), x.line(s, 100, "p", "q"), c.want)
	}
}
