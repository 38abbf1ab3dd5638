package sim_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Runs that take too long, and runs that do not begin: engines that end them by
// themselves at their time and say so, and engines that are mute.

// drawTimes draws when runs of a session take too long.
func (w *world) drawTimes(q *job.Queue) {
	q.Grid.TimeoutSlack = pick(w, []job.Millis{0, 2 * job.Second, 4 * job.Second})
	q.Grid.PollPeriod = pick(w, []job.Millis{0, 0, 0, 5 * job.Second})
	q.StartTimeout = pick(w, []job.Millis{0, 4 * job.Second, 12 * job.Second})
}

// own is when an engine ends a run by itself, as it knows: its own clock, since the
// run began there. 0 = it does not.
func (w *world) own(h hand) job.Millis {
	if at := w.grid.began[h.d.Lease.Token]; at > 0 && h.d.StopAfter > 0 {
		return at + h.d.StopAfter
	}
	return 0
}

// stopAfter holds what an engine is told about the end of a run against its session.
func (w *world) stopAfter(h *holder, d *engine.Delivery) {
	if w.grid == nil {
		return
	}
	t := &taskScene{judge: w.judge, commit: &commit{}, old: d.Job, q: w.judge.book.queue(d.Job.Queue)}
	want := t.most()
	if t.q.Grid.OnTimeout != job.TimeoutRetry || t.q.Grid.PollPeriod > 0 {
		want = 0
	}
	if d.StopAfter != want {
		broken("A10", "%s is to end its run of %s after %s, and must after %s", h.name, w.judge.name(d.Job.ID), d.StopAfter, want)
	}
}

// stops are the runs that an engine was told to stop, and did.
func (e *gridEngine) stops() []job.Token {
	return slices.SortedFunc(maps.Keys(e.h.voided), func(a, b job.Token) int { return bytes.Compare(a[:], b[:]) })
}

// overrun lets the soonest time of some run come, up to a moment before it, or to
// itself: it takes too long, or was to have begun. Its engine lives meanwhile.
func (w *world) overrun() {
	w.beat()
	w.settle()
	var next []job.Millis
	late := w.oneIn(3) // to begin
	steady, mine := w.clock.Steady(), w.clock.mono()
	for _, h := range w.hands {
		j := w.judge.book.jobs[h.d.Job.ID]
		if j == nil || j.LeaseOf(h.d.Lease.Token) < 0 {
			continue
		}
		l := j.Leases[j.LeaseOf(h.d.Lease.Token)]
		list := []job.Millis{w.own(h) - mine, l.RunEnd - steady}
		if late {
			list = []job.Millis{l.StartBy - steady}
		}
		for _, left := range list {
			if left > 0 {
				next = append(next, left)
			}
		}
	}
	if len(next) == 0 {
		w.begin()
		return
	}
	span := slices.Min(next)
	if w.oneIn(4) {
		span--
	}
	w.say("    %s", span)
	w.pass(span)
	if !w.oneIn(3) { // else they are mute
		w.endOverruns()
	}
}

// endOverruns is what engines say of the runs whose time is up on their own clocks.
func (w *world) endOverruns() {
	c := &call{}
	for _, h := range slices.Clone(w.hands) {
		if at := w.own(h); at == 0 || at > w.clock.mono() || h.h.voided[h.d.Lease.Token] {
			continue
		}
		w.hands = slices.DeleteFunc(w.hands, func(o hand) bool { return o.d.Lease.Token == h.d.Lease.Token })
		w.spent = append(w.spent, h)
		c.reqs = append(c.reqs, &request{kind: askSettle, settle: engine.Settle{
			ID: h.d.Job.ID, Token: h.d.Lease.Token, Outcome: job.Retried,
			Failure: job.Failure{Timeout: true, Message: fmt.Sprintf("the run timeout of %s is over", h.d.StopAfter)},
		}})
	}
	w.sendSettles(c)
}
