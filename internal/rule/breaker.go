package rule

import (
	"cmp"
	"math"

	"github.com/reprisehq/reprise/internal/job"
)

// NoLimit is more than anybody takes.
const NoLimit = math.MaxInt

// rampSteps is how often the allowance doubles before a breaker is closed.
const rampSteps = 10

// Moment is a point on both timelines (core.md section 8).
type Moment struct {
	Now    job.Millis // the date
	Steady job.Millis // for spans
}

// Window remembers the latest outcomes of a queue or a group. What is not
// known counts as success, so an empty window needs no memory.
type Window struct {
	failures [job.WindowMax / 64]uint64 // one bit each
	size     int
	next     int
	failed   int // bits that are set
	row      int // failures since the last success
}

// add remembers an outcome and forgets the oldest. A window of another size
// begins anew.
func (w *Window) add(size int, failure bool) {
	if w.size != size {
		*w = Window{size: size}
	}
	at, bit := w.next/64, uint64(1)<<(w.next%64)
	if w.failures[at]&bit != 0 {
		w.failed--
	}
	w.failures[at] &^= bit
	w.row++
	if failure {
		w.failures[at] |= bit
		w.failed++
	} else {
		w.row = 0
	}
	w.next = (w.next + 1) % size
}

func (w *Window) trips(b *job.Breaker) bool {
	return b.Ratio > 0 && float64(w.failed) >= b.Ratio*float64(b.Window) && w.failed > 0 ||
		b.Consecutive > 0 && w.row >= b.Consecutive
}

// Run is the end of one lease as a breaker sees it. Neither OK nor Failed is
// an end that does not count: release, grace, supersede, a vanished worker
// (core.md section 9).
type Run struct {
	Since      job.Millis // when the lease was granted; 0 = not known
	OK, Failed bool
}

// RunsOf returns the runs that a step on the job ended. What was charged is
// what failed (I4), so no second list says which ends those are.
func RunsOf(old *job.Job, v Verb, e Effect) []Run {
	if old == nil || e.Repeat {
		return nil
	}
	runs := make([]Run, 0, len(e.Ended)+1)
	for i := range e.Ended {
		runs = append(runs, Run{Since: e.Ended[i].Since})
	}
	j := cmp.Or(e.Job, e.Left)
	switch {
	case v == SettleOK && e.Late:
		return append(runs, Run{OK: true})
	case v == SettleOK && len(runs) > 0: // who spoke stands last
		runs[len(runs)-1].OK = true
	case j != nil && j.Attempts > old.Attempts:
		for i := max(0, len(runs)-int(j.Attempts-old.Attempts)); i < len(runs); i++ {
			runs[i].Failed = true
		}
	}
	return runs
}

// Lets is how many more runs a breaker lets through; nil is closed.
func Lets(t *job.Throttle) int {
	switch {
	case t == nil || t.State == job.BreakerClosed:
		return NoLimit
	case t.State == job.BreakerHalfOpen:
		return max(0, t.Allowed-t.Out-t.Won)
	case t.State == job.BreakerRamping:
		return max(0, t.Allowed-t.Out)
	}
	return 0
}

// Granted counts a run that was let through. The throttle is returned as it
// is where nobody counts.
func Granted(b *job.Breaker, t *job.Throttle, at Moment) *job.Throttle {
	if t.State != job.BreakerHalfOpen && t.State != job.BreakerRamping {
		return t
	}
	next := *t
	next.Out++
	if t.State == job.BreakerHalfOpen { // who is not heard of by then was no probe
		next.Until = at.Steady.Add(openFor(b, t.Openings))
	}
	return &next
}

// Ended tells a breaker that a run ended, and returns its throttle as it is
// then. What began before the present state counts only while it is closed:
// it says nothing about the target as it is now.
func Ended(b *job.Breaker, t *job.Throttle, w *Window, r Run, at Moment) *job.Throttle {
	if t.Forced || t.State == job.BreakerOpen {
		return t
	}
	next := *t
	if t.State != job.BreakerClosed {
		if r.Since < t.Since {
			return t
		}
		next.Out = max(0, t.Out-1)
	}
	switch {
	case t.State == job.BreakerHalfOpen && r.OK:
		if next.Won++; next.Won >= b.Probes {
			ramp(b, &next, at)
		}
	case t.State == job.BreakerHalfOpen && r.Failed:
		open(b, &next, w, at)
	case t.State != job.BreakerHalfOpen && (r.OK || r.Failed):
		if w.add(b.Window, r.Failed); w.trips(b) {
			open(b, &next, w, at)
		}
	}
	return &next
}

func open(b *job.Breaker, t *job.Throttle, w *Window, at Moment) {
	*w = Window{}
	*t = job.Throttle{
		Queue: t.Queue, Group: t.Group, Slow: t.Slow, State: job.BreakerOpen, Since: at.Now,
		Openings: t.Openings + 1, Until: at.Steady.Add(openFor(b, t.Openings+1)),
	}
}

// openFor is how long a breaker stays open that opens for the n-th time.
func openFor(b *job.Breaker, n int) job.Millis {
	span := b.OpenFor
	for ; n > 1 && span < b.OpenForMax; n-- {
		span *= 2
	}
	return min(span, b.OpenForMax)
}

// ramp begins to close: the runs let through so far go on to count.
func ramp(b *job.Breaker, t *job.Throttle, at Moment) {
	if b.Ramp == 0 {
		shut(t)
		return
	}
	t.State, t.Step, t.Won = job.BreakerRamping, 0, 0
	climb(b, t, at)
}

// climb goes a step up the ramp: each lets twice as many runs through.
func climb(b *job.Breaker, t *job.Throttle, at Moment) {
	t.Step++
	t.Allowed = b.Probes << t.Step
	t.Until = at.Steady.Add(b.Ramp / rampSteps)
}

// probe lets the first runs through.
func probe(b *job.Breaker, t *job.Throttle, at Moment) {
	t.State, t.Since, t.Allowed, t.Out, t.Won = job.BreakerHalfOpen, at.Now, b.Probes, 0, 0
	t.Until = at.Steady.Add(b.OpenForMax)
}

// Idle reports whether a breaker that is due waits for work that may never
// come: it let nothing through since it was half open.
func Idle(t *job.Throttle) bool { return t.State == job.BreakerHalfOpen && t.Out == 0 }

// AdvanceThrottle does what is due of a throttle: it ends a pause of the rate, and
// moves the breaker from open to half open, from lost probes to fresh ones,
// and up its ramp. Before its time it is an error (I6).
func AdvanceThrottle(b *job.Breaker, t *job.Throttle, at Moment) (*job.Throttle, error) {
	if due := t.Due(); due == 0 || due > at.Steady {
		return nil, job.Errorf(job.WrongState, "the throttle of group %q is not due", t.Group)
	}
	next := *t
	if t.Slow <= at.Steady {
		next.Slow = 0
	}
	if t.Until == 0 || t.Until > at.Steady {
		return &next, nil
	}
	switch {
	case b == nil: // the breaker was taken away
		shut(&next)
	case t.State != job.BreakerRamping:
		probe(b, &next, at)
	case t.Step >= rampSteps:
		shut(&next)
	default:
		climb(b, &next, at)
	}
	return &next, nil
}

// shut closes for good: there is nothing to remember.
func shut(t *job.Throttle) { *t = job.Throttle{Queue: t.Queue, Group: t.Group, Slow: t.Slow} }

// Force opens or closes a breaker until it is released.
func Force(t *job.Throttle, state job.BreakerState, at Moment) *job.Throttle {
	next := *t
	shut(&next)
	next.State, next.Forced, next.Since = state, true, at.Now
	return &next
}

// ReleaseForce lets a breaker decide by itself again. One that was open begins
// with a probe; without settings (b nil) it is closed.
func ReleaseForce(b *job.Breaker, t *job.Throttle, at Moment) *job.Throttle {
	next := *t
	shut(&next)
	if b != nil && t.State == job.BreakerOpen {
		next.Openings = 1
		probe(b, &next, at)
	}
	return &next
}

// CarryThrottle moves the timers of a throttle to the steady clock of a new
// start, which is ahead of the old one by shift. Nothing waits longer than it
// could have.
func CarryThrottle(b *job.Breaker, t *job.Throttle, shift job.Millis, at Moment) *job.Throttle {
	next := *t
	if t.Until != 0 {
		longest := job.Millis(0)
		if b != nil {
			longest = max(b.OpenForMax, b.Ramp)
		}
		next.Until = min(max(t.Until.Add(shift), at.Steady), at.Steady.Add(longest))
	}
	if t.Slow != 0 {
		next.Slow = at.Steady // the rate is measured anew
	}
	return &next
}
