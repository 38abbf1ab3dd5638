package engine

import (
	"time"

	"github.com/reprisehq/reprise/internal/job"
)

// Clock is where the engine gets its time from (core.md section 8).
type Clock interface {
	// Wall is the date in milliseconds since the epoch. It may step.
	Wall() job.Millis
	// Steady starts at the date and then runs on through steps of the wall
	// clock: leases and timeouts are measured on it.
	Steady() job.Millis
}

// SystemClock is the clock of the machine.
func SystemClock() Clock { return systemClock{start: time.Now()} }

type systemClock struct{ start time.Time }

func (c systemClock) Wall() job.Millis { return job.Millis(time.Now().UnixMilli()) }

func (c systemClock) Steady() job.Millis {
	return job.Millis(c.start.UnixMilli() + time.Since(c.start).Milliseconds())
}

// stopwatch measures how long the machine takes, for the metrics. No rule
// reads it.
type stopwatch struct{ began time.Time }

func startWatch() stopwatch { return stopwatch{time.Now()} }

func (s stopwatch) took() time.Duration { return time.Since(s.began) }

const (
	stepMax    = 5 * job.Second  // a larger gap between two looks at the clock is a step
	skewMax    = job.Second      // the date may be so far off the steady clock before that is written down
	clockGuard = 60 * job.Second // Expire and Purge wait so long after a step (clock_guard)
	lapseGuard = 30 * job.Second // holders get so long to report after a step, or their whole time if that is longer
)

// watch looks for steps of the clock between two batches.
type watch struct {
	wall, steady job.Millis
	planned      job.Millis // steady time at which the committer meant to wake
	guard        job.Millis // until then nothing expires and nothing is purged
	lapses       job.Millis // until then no holder lapses
	skew         job.Millis // how far the date is ahead of the steady clock, as written down
}

// drift returns how far the date is ahead of the steady clock, and whether
// that must be written down anew.
func (w *watch) drift() (skew job.Millis, news bool) {
	skew = w.wall - w.steady
	return skew, skew-w.skew >= skewMax || w.skew-skew >= skewMax
}

// look notes the time and reports a forward step: the date ran ahead of the
// steady clock, or the process stood still for longer than it meant to sleep.
func (w *watch) look(wall, steady job.Millis) (step job.Millis) {
	if w.steady != 0 {
		if ahead := (wall - w.wall) - (steady - w.steady); ahead > stepMax {
			step = ahead
		}
		if late := steady - w.planned; w.planned != 0 && late > stepMax {
			step = max(step, late)
		}
	}
	w.wall, w.steady, w.planned = wall, steady, 0
	if step > 0 {
		w.guard, w.lapses = steady.Add(clockGuard), steady.Add(lapseGuard)
	}
	return step
}
