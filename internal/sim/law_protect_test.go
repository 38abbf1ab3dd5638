package sim_test

import (
	"github.com/reprisehq/reprise/internal/job"
)

// breakers of the histories: they open soon and do not stay open for long.
var (
	queueBreaker = &job.Breaker{Window: 8, Ratio: 0.25, OpenFor: job.Second, OpenForMax: 3 * job.Second, Probes: 1, Ramp: job.Second}
	groupBreaker = &job.Breaker{Window: 20, Consecutive: 1, OpenFor: 500, OpenForMax: 1500, Probes: 1, Ramp: job.Second}
)

// protectQueue draws what protects a queue; it is taken away as often.
func (w *world) protectQueue(name string, what, n int) {
	switch what {
	case 0:
		w.setQueue(name, "breaker", func(q *job.Queue) { q.Protection.Breaker = toggled(q.Protection.Breaker, queueBreaker) })
	case 1:
		w.setQueue(name, "group breaker", func(q *job.Queue) { q.Protection.GroupBreaker = toggled(q.Protection.GroupBreaker, groupBreaker) })
	default:
		w.setQueue(name, "max_running", func(q *job.Queue) { q.Protection.MaxRunning = 2 * n })
	}
}

func toggled(now, then *job.Breaker) *job.Breaker {
	if now == nil {
		return then
	}
	return nil
}

func (b books) throttle(queue, group string) job.Throttle {
	if t, ok := b.rows[rowKey{job.Throttles, job.GateKey(queue, group)}].(*job.Throttle); ok {
		return *t
	}
	return job.Throttle{Queue: queue, Group: group}
}

// lets reports whether a breaker lets one more through.
func lets(t job.Throttle) bool {
	switch t.State {
	case job.BreakerOpen:
		return false
	case job.BreakerHalfOpen:
		return t.Out+t.Won < t.Allowed
	case job.BreakerRamping:
		return t.Out < t.Allowed
	case job.BreakerClosed:
	}
	return true
}

// shut is retry.md section 4: why what protects its queue and group does not
// let a job through; "" = it does.
func (x *judge) shut(j *job.Job) string {
	if !lets(x.book.throttle(j.Queue, "")) {
		return "the breaker of its queue lets nothing through"
	}
	if j.Group != "" && !lets(x.book.throttle(j.Queue, j.Group)) {
		return "the breaker of its group lets nothing through"
	}
	if most := x.book.queue(j.Queue).Protection.MaxRunning; most > 0 {
		running := 0
		for _, other := range x.book.jobs {
			if other.Queue == j.Queue {
				running += len(other.Leases)
			}
		}
		if running >= most {
			x.coverage.feature("max_running reached")
			return "as many runs of its queue are live as may be"
		}
	}
	return x.metered(j)
}

// throttle holds the moves of a breaker against retry.md section 4.
func (x *judge) throttle(c *commit, old, row job.Throttle) {
	x.slowed(c, old, row)
	b := x.book.queue(row.Queue).Protection.GroupBreaker
	if row.Group == "" {
		b = x.book.queue(row.Queue).Protection.Breaker
	}
	law, because := "retry.md 4", ""
	switch from, to := old.State, row.State; {
	case b == nil:
		if to != job.BreakerClosed {
			because = "nobody asked for a breaker"
		}
	case from == to:
	case to == job.BreakerOpen && from != job.BreakerOpen:
		x.coverage.feature("a breaker opened")
		x.counted.Opened++
		span := b.OpenFor
		for range old.Openings {
			span *= 2
		}
		if span = min(span, b.OpenForMax); row.Until != c.steady.Add(span) || row.Openings != old.Openings+1 {
			because = "it must be open for " + span.String()
		}
	case from == job.BreakerOpen && to == job.BreakerHalfOpen:
		x.coverage.feature("a breaker half open")
		if c.steady < old.Until {
			law, because = "I6", "it was to be open for longer"
		}
	case from == job.BreakerHalfOpen && to == job.BreakerRamping:
		x.coverage.feature("a breaker closing")
	case from == job.BreakerRamping && to == job.BreakerClosed:
		x.coverage.feature("a breaker closed")
		if c.steady < old.Until {
			law, because = "I6", "its ramp was not over"
		}
	case from == job.BreakerHalfOpen && to == job.BreakerClosed && row.Group != "":
		for _, j := range x.book.jobs {
			if j.Queue == row.Queue && j.Group == row.Group && (j.State.Open() || j.BlocksGroup) {
				because = "its group has work"
			}
		}
	default:
		because = "there is no such way"
	}
	if because != "" {
		broken(law, "the breaker of queue %s, group %q, went at %d from %+v to %+v: %s", row.Queue, row.Group, c.steady, old, row, because)
	}
}
