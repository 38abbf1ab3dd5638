package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Engines that a session excludes (grid.md 9; reference section 6). The grid
// keeps a list of strikes for each session with an Exclusion, as part of a
// row. Every function here returns a new list, or the same one if nothing
// changed:
//
//   - Struck when a run ended so that CountsAgainst says yes;
//   - PardonStrikes when a task turned out to be poison, or ClearStrikes when a person
//     says so;
//   - Exclude after each of these, at NextPardon, and when engines that may run
//     tasks of the session come or go: it says who is out;
//   - Excluded for each engine that asks for work.

// CountsAgainst reports whether a run that ended so counts against its engine:
// an error it told, and a run that took too long. What it gave back in good
// order, what was superseded or cancelled, and what it lost with itself do not.
func CountsAgainst(how job.Ending) bool {
	return how == job.ByRetry || how == job.ByDead || how == job.ByTimeout
}

// noEnd is the end of an exclusion that only a person ends.
const noEnd = job.Millis(math.MaxInt64)

func strikeAt(list []job.Strike, engine string) (int, bool) {
	return slices.BinarySearchFunc(list, engine, func(s job.Strike, name string) int { return cmp.Compare(s.Engine, name) })
}

// Struck counts a failed run of a task against its engine.
func Struck(list []job.Strike, x *job.Exclusion, engine string, task job.ID, now job.Millis) []job.Strike {
	list = slices.Clone(list)
	i, known := strikeAt(list, engine)
	if !known {
		if list = slices.Insert(list, i, job.Strike{Engine: engine}); len(list) > job.StrikesMax {
			list = dropOldest(list, engine)
			i, _ = strikeAt(list, engine)
		}
	}
	s := &list[i]
	if x.TTL > 0 && s.Last > 0 && now-s.Last >= x.TTL { // long ago
		*s = job.Strike{Engine: engine}
	}
	s.Count++
	s.Last = now
	if n := len(s.Tasks); n < x.Failures && (x.EachFailure || !slices.Contains(s.Tasks, task)) {
		s.Tasks = append(s.Tasks[:n:n], task)
	}
	if len(s.Tasks) >= x.Failures {
		if s.Until = noEnd; x.TTL > 0 {
			s.Until = now.Add(x.TTL)
		}
	}
	return list
}

// dropOldest forgets who failed longest ago, but not the one named.
func dropOldest(list []job.Strike, but string) []job.Strike {
	oldest := -1
	for i := range list {
		if list[i].Engine != but && (oldest < 0 || list[i].Last < list[oldest].Last) {
			oldest = i
		}
	}
	return slices.Delete(list, oldest, oldest+1)
}

// PardonStrikes takes back what a task counted against engines: it was to blame itself.
func PardonStrikes(list []job.Strike, x *job.Exclusion, task job.ID) []job.Strike {
	if !slices.ContainsFunc(list, func(s job.Strike) bool { return slices.Contains(s.Tasks, task) }) {
		return list
	}
	var out []job.Strike
	for _, s := range list {
		if slices.Contains(s.Tasks, task) {
			kept := slices.DeleteFunc(slices.Clone(s.Tasks), func(id job.ID) bool { return id == task })
			s.Count -= uint32(len(s.Tasks) - len(kept))
			if s.Tasks = kept; len(kept) < x.Failures {
				s.Until, s.Out = 0, false
			}
			if len(kept) == 0 {
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// ClearStrikes forgets what there is against an engine, or against all if it is
// "".
func ClearStrikes(list []job.Strike, engine string) []job.Strike {
	i, known := strikeAt(list, engine)
	switch {
	case engine == "":
		return nil
	case !known:
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// Exclude says who is out: of the engines that may run tasks of the session, and
// have failed too often, no more than MaxFraction; who did best is spared. all
// is how many may run them, may which. stalled says that every one of them
// failed too often, which is what the session's status tells; if none is
// spared, nothing runs until somebody clears the list or other engines come.
func Exclude(list []job.Strike, x *job.Exclusion, all int, may func(engine string) bool, now job.Millis) (out []job.Strike, stalled bool) {
	out = slices.DeleteFunc(slices.Clone(list), func(s job.Strike) bool { return s.Until > 0 && s.Until <= now })
	var bad []int
	for i := range out {
		if out[i].Out = false; out[i].Until > now && may(out[i].Engine) {
			bad = append(bad, i)
		}
	}
	slices.SortFunc(bad, func(a, b int) int { // the worst first
		s, t := &out[a], &out[b]
		return cmp.Or(cmp.Compare(t.Count, s.Count), cmp.Compare(t.Last, s.Last), cmp.Compare(a, b))
	})
	most := int(x.MaxFraction*float64(all) + 1e-9)
	for _, i := range bad[:min(most, len(bad))] {
		out[i].Out = true
	}
	return out, all > 0 && len(bad) >= all
}

// Excluded reports whether the session gives an engine nothing.
func Excluded(list []job.Strike, engine string) bool {
	if len(list) == 0 {
		return false
	}
	i, known := strikeAt(list, engine)
	return known && list[i].Out
}

// NextPardon is when the next exclusion is over; 0 = none ends by itself.
func NextPardon(list []job.Strike) (at job.Millis) {
	for i := range list {
		if list[i].Until != noEnd {
			at = rule.Sooner(at, list[i].Until)
		}
	}
	return at
}

// PoisonHosts is on how many hosts a task fails until it is taken for poison:
// it is given up, and PardonStrikes and HealthPardoned take back what it counted.
const PoisonHosts = 3

// failedThere reports whether a run of a task counts against its engine, and is
// one since an operator brought the task back, if one did.
func failedThere(j *job.Job, a *job.Attempt) bool {
	return (a.Why == job.AttemptError || a.Why == job.AttemptTimeout) && (j.RevivedAt == 0 || a.Ended > j.RevivedAt)
}

// FailedOn are the hosts on which a task failed, which its next run avoids where
// it can, in the order of its first failures there.
func FailedOn(j *job.Job) (hosts []string) {
	for _, a := range j.History() {
		if failedThere(j, &a) && !slices.Contains(hosts, a.Host) {
			hosts = append(hosts, a.Host)
		}
	}
	return hosts
}

// Poison reports whether a task failed on so many hosts that it is to blame
// itself.
func Poison(j *job.Job) bool {
	return len(FailedOn(j)) >= PoisonHosts
}

// Undelivered reports whether the latest engine that a task was given to did not
// begin it in time: whatever the session says, it is somebody else's turn (reference
// section 2, S5).
func Undelivered(j *job.Job) bool {
	list := j.History()
	return len(list) > 0 && list[len(list)-1].Why == job.AttemptUndelivered
}

// Reluctance is how little a task should run on an engine again: 3 = it was not
// begun there just now, 2 = it failed there, 1 = it did on another engine of the
// same host, 0 = on neither. It is a preference among engines that are free, never a
// reason to wait.
func Reluctance(j *job.Job, engine, host string) (most int) {
	if list := j.History(); Undelivered(j) && list[len(list)-1].Holder == engine {
		return 3
	}
	for _, a := range j.History() {
		switch {
		case !failedThere(j, &a):
		case a.Holder == engine:
			return 2
		case a.Host == host:
			most = 1
		}
	}
	return most
}
