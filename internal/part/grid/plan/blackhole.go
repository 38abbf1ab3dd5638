package plan

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Black holes: engines that fail whatever they are given in no time, and so get
// more than all others (reference section 6). The grid keeps a Health for
// each engine, tells it of the ends of runs, and asks HealthAdmits
// before it gives the engine something. room says whether one more engine may be
// out (HealthRoom); where it may not, the engine is given work as before.

// HealthRoom reports whether one more engine may be taken out of the grid, if out
// of all are.
func HealthRoom(b *job.BlackHoles, out, all int) bool {
	return float64(out+1) <= b.MaxFraction*float64(all)+1e-9
}

// HealthFailed tells of a run that failed (CountsAgainst) after so long.
func HealthFailed(h job.Health, b *job.BlackHoles, task job.ID, took job.Millis, now job.Millis, room bool) job.Health {
	switch {
	case h.State == job.HealthProbed: // not cured
		h.State, h.Until = job.HealthQuarantined, now.Add(b.Quarantined)
		return h
	case h.State == job.HealthQuarantined: // began before
		return h
	case took > b.Fast:
		h.Row = nil
		return h
	}
	row := append(h.Row[:len(h.Row):len(h.Row)], job.FastFail{Task: task})
	h.Row = row[max(0, len(row)-job.HealthTasksMax):]
	return judge(h, b, now, room)
}

// HealthSucceeded tells of a run that succeeded. probe says whether it was given
// out while the engine was probed: only that releases the engine.
func HealthSucceeded(h job.Health, probe bool) job.Health {
	if h.State == job.HealthQuarantined || h.State == job.HealthProbed && !probe {
		return h
	}
	return job.Health{}
}

// HealthElsewhere tells of a task that succeeded on another host than that of the
// engine. It is told of each engine whose row holds the task (HealthHolds).
func HealthElsewhere(h job.Health, b *job.BlackHoles, task job.ID, now job.Millis, room bool) job.Health {
	if !HealthHolds(h, task) {
		return h
	}
	h.Row = slices.Clone(h.Row)
	for i := range h.Row {
		h.Row[i].Elsewhere = h.Row[i].Elsewhere || h.Row[i].Task == task
	}
	if h.State == job.HealthProbed || h.State == job.HealthQuarantined {
		return h
	}
	return judge(h, b, now, room)
}

// HealthHolds reports whether a task is in the row of failures of an engine.
func HealthHolds(h job.Health, task job.ID) bool {
	return slices.ContainsFunc(h.Row, func(f job.FastFail) bool { return f.Task == task })
}

// judge suspends an engine whose row is too long, and puts it into quarantine
// when enough of its tasks succeeded elsewhere.
func judge(h job.Health, b *job.BlackHoles, now job.Millis, room bool) job.Health {
	if len(h.Row) < b.Failures || !room && h.State == job.HealthWell {
		return h
	}
	good := 0
	for _, f := range h.Row {
		good += oneIf(f.Elsewhere)
	}
	switch {
	case good > 0 && part(good, len(h.Row), b.Elsewhere):
		h.State, h.Until = job.HealthQuarantined, now.Add(b.Quarantined)
	case h.State == job.HealthWell:
		h.State, h.Until = job.HealthSuspended, now.Add(b.Suspended)
	}
	return h
}

// HealthRecovers is an engine after its time (Health.Until): who was only
// suspended is given work again, and suspended again by the next failure; who
// was in quarantine is probed. Before that time it is an error (I6).
func HealthRecovers(h job.Health, now job.Millis) (job.Health, error) {
	if h.Until == 0 || h.Until > now {
		return h, job.Errorf(job.WrongState, "the engine is %s until %d", h.State, h.Until)
	}
	if h.Until = 0; h.State == job.HealthSuspended {
		h.State = job.HealthWell
	} else {
		h.State = job.HealthProbed
	}
	return h, nil
}

// HealthPardoned takes a task that is poison out of the row of an engine. If the row
// was too long only because of it, the engine is well.
func HealthPardoned(h job.Health, b *job.BlackHoles, task job.ID) job.Health {
	if !HealthHolds(h, task) {
		return h
	}
	h.Row = slices.DeleteFunc(slices.Clone(h.Row), func(f job.FastFail) bool { return f.Task == task })
	if len(h.Row) < b.Failures {
		h.State, h.Until = job.HealthWell, 0
	}
	if len(h.Row) == 0 {
		h.Row = nil
	}
	return h
}

// HealthAdmits is how many more tasks an engine may be given that runs so many.
func HealthAdmits(h job.Health, running int) int {
	switch h.State {
	case job.HealthWell:
		return rule.NoLimit
	case job.HealthProbed:
		return max(0, 1-running)
	default:
		return 0
	}
}
