package turn_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/meter"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/rule"
)

func (r *rig) measured(queue string) meter.Queue {
	r.Helper()
	m, own, err := r.Part.Meter.Queue(r.Context(), queue)
	if err != nil || !own {
		r.Fatal(own, err)
	}
	return m
}

func (r *rig) ages(want meter.Ages) {
	r.Helper()
	if got := r.measured("in").Ages; got != want {
		r.Errorf("the oldest are %v, want %v", got, want)
	}
}

// The age of the oldest job is told for each state, and follows it from one to the
// next.
func TestTheOldestOfEachStateIsTold(t *testing.T) { // inbox.md, metrics
	const s = job.Second
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(1) })
		r.ages(meter.Ages{})
		r.Members("a1")
		r.Pass(5 * s)
		r.Members("b1")
		r.ages(meter.Ages{job.Ready: 5 * s})
		held := r.Took(turn.Options{Local: true}, "a: a1")
		r.Pass(s)
		r.ages(meter.Ages{job.Ready: s, job.Leased: 6 * s})
		r.Settled(held["a1"], job.Retried)
		r.ages(meter.Ages{job.Ready: s, job.Scheduled: 6 * s})
		r.Pass(10 * s)
		held = r.Took(turn.Options{Local: true, Turns: 9}, "b: b1; a: a1")
		r.Settled(held["a1"], job.Retried)
		r.Settled(held["b1"], job.OK)
		r.Pass(s)
		r.ages(meter.Ages{job.Dead: 17 * s})
	})
}

// What becomes of members of turns is counted: how long it took, at which attempt.
func TestLatencyAndAttemptsOfTurnsAreMeasured(t *testing.T) { // inbox.md, metrics
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(2) })
		r.Members("a1", "b1", "c1")
		r.Member("d1", func(n *engine.NewJob) { n.Job.GraceUntil = r.Clock.Wall() + 9*job.Second })
		r.run(-1, "a1 b1 d1") // c1 at once; d1 inside its time to live, which is no attempt
		r.Pass(10 * job.Second)
		r.run(-1, "b1") // a1 at the second attempt, d1 at the first
		r.Pass(10 * job.Second)
		r.run(-1, "b1")
		r.Expect("b1", job.Dead)
		r.AddAll("q", "x") // of a queue without turns nothing is
		r.Anonymous(9).Gets("x")
		r.Settled(engine.Delivery{Job: r.Job("x")}, job.OK)
		m := r.measured("in").Turns
		var want meter.TurnTally
		want.Ended = 4
		want.Done.Counts[0], want.Done.Counts[1], want.Done.Sum = 2, 1, 4
		want.Exhausted.Counts[2], want.Exhausted.Sum = 1, 3
		want.Latency.Counts[0], want.Latency.Counts[10], want.Latency.Sum = 1, 2, 20_000
		if m != want {
			r.Errorf("counted is\n%+v, want\n%+v", m, want)
		}
		if q := r.measured("q").Turns; q != (meter.TurnTally{}) {
			r.Errorf("%+v", q)
		}
	})
}

// Each status that partitions the jobs of an inbox has its own oldest one, however
// many others there are in the same state (inbox.md, metrics).
func TestTheOldestOfEachStatusIsTold(t *testing.T) {
	const s = job.Second
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(1); q.OnDead = job.DeadBlock })
		ages := func(want meter.StatusAges) {
			r.Helper()
			if got := r.measured("in").StatusAges; got != want {
				r.Errorf("the oldest are %v, want %v", got, want)
			}
		}
		r.Members("a1") // will be exhausted
		r.Pass(s)
		r.Members("b1") // will retry
		r.Pass(s)
		r.Members("c1") // will be paused
		r.Pass(s)
		held := r.Took(turn.Options{Local: true, Turns: 9}, "a: a1; b: b1; c: c1")
		ages(meter.StatusAges{rule.StatusRunning: 3 * s})
		r.Settled(held["a1"], job.Retried)
		r.Settled(held["c1"], job.Released)
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Pause, held["c1"].Job.ID); err != nil {
			r.Fatal(err)
		}
		r.Pass(s)
		r.Members("d1") // waits
		ages(meter.StatusAges{rule.StatusRetrying: 4 * s, rule.StatusRunning: 3 * s, rule.StatusPaused: 2 * s, rule.StatusWaiting: 1})
		r.Settled(held["b1"], job.Retried)
		r.Pass(10 * s)
		again := r.Took(turn.Options{Local: true, Turns: 9}, "a: a1; b: b1; d: d1")
		r.Settled(again["a1"], job.Retried) // the second one: exhausted
		r.Settled(again["b1"], job.Released)
		ages(meter.StatusAges{rule.StatusBlocking: 14 * s, rule.StatusRetrying: 13 * s, rule.StatusPaused: 12 * s, rule.StatusRunning: 10 * s})
	})
}
