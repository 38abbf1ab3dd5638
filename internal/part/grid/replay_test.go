package grid_test

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/model/account"
)

// replayed is what a task comes to by its attempts and nothing else, reckoned by
// the second account of tasks (account.Replay). A copy that was asked for and never
// ran left no attempt, so reschedules are those that ran.
func replayed(j *job.Job, q *job.Queue) (account.Tally, error) {
	var list []account.Event
	then := func(what account.Happening) { list = append(list, account.Event{Task: j.ID, What: what}) }
	then(account.TaskSubmitted)
	begins, ends := begunOf(j), j.History()
	live, most := 0, int(q.Grid.MaxCopies)
	begun := func(until job.Millis, number uint32) {
		for len(begins) > 0 && (begins[0].Since < until && live < most || begins[0].Number <= number || begins[0].Since == until && begins[0].Copy && live == 1) {
			live++
			if begins[0].Copy {
				then(account.CopyAsked)
			}
			then(account.RunBegan)
			begins = begins[1:]
		}
	}
	for i := range ends {
		a := &ends[i]
		at := a.Ended
		if a.Why == job.AttemptLate {
			at = givenUp(ends[i:], begins, a.Number)
		}
		begun(at, a.Number)
		live -= min(1, int(a.Number))
		switch a.Why {
		case job.AttemptOK:
			then(account.RunSucceeded)
		case job.AttemptError:
			then(account.RunFailed)
		case job.AttemptTimeout:
			then(account.RunTimedOut)
		case job.AttemptLost:
			then(account.RunVanished)
		case job.AttemptReleased:
			then(account.RunGivenBack)
		case job.AttemptUndelivered: // for its engine did not know of it, or did not begin it
			if a.Charged == job.ChargedNothing {
				then(account.RunUncharged)
			} else {
				then(account.RunEvicted)
			}
		case job.AttemptEvicted, job.AttemptPreempted, job.AttemptWithdrawn:
			then(account.RunEvicted)
		case job.AttemptRestarted:
			then(account.RunUncharged)
		case job.AttemptSuperseded: // by a result, or by another one that commits
			if !byResult(ends, i) {
				then(account.RunUncharged)
			}
		case job.AttemptLate: // it was given up before, unless a crash forgot the whole run
			if a.Number > 0 && a.Charged != job.ChargedNothing {
				then(account.RunVanished)
			} else if a.Number > 0 {
				then(account.RunUncharged)
			}
		case job.AttemptCancelled: // with its task
		}
	}
	begun(job.MaxMillis, 0)
	if slices.ContainsFunc(ends, func(a job.Attempt) bool { return a.Why == job.AttemptLate }) {
		then(account.LateSucceeded)
	}
	if j.Reason == job.Killed || j.Reason == job.ReasonCancelled {
		then(account.TaskCancelledBy)
	}
	limit, _ := q.Retry.LimitValue()
	tasks, err := account.Replay(list, account.Rules{
		MaxRetries: uint32(limit), MaxReschedules: q.Grid.MaxReschedules, MaxCopies: most,
		LossesCharged: q.Grid.LossesCharged, LossLimit: q.Retry.LossLimitValue(),
	})
	tally := *tasks[j.ID]
	if tally.Reason == job.ReasonCancelled {
		tally.Reason = j.Reason // killed, where one that it needs failed
	}
	return tally, err
}

// byResult reports whether an attempt was superseded by the result of another one,
// which ended in the same step, or came late and stands where it was given up.
func byResult(ends []job.Attempt, i int) bool {
	won := slices.IndexFunc(ends, func(a job.Attempt) bool { return a.Why == job.AttemptOK || a.Why == job.AttemptLate })
	if won < 0 || ends[i].Ended < ends[won].Ended {
		return false
	}
	between := ends[i+1:]
	if ends[won].Why == job.AttemptOK {
		between = ends[min(i, won)+1 : max(i, won)]
	}
	return !slices.ContainsFunc(between, func(a job.Attempt) bool { return a.Why != job.AttemptSuperseded })
}

// run is when a run of a task was given out.
type run struct {
	Number uint32
	Since  job.Millis
	Copy   bool
}

// begunOf are the runs of a task that are known by number, in their order.
func begunOf(j *job.Job) (list []run) {
	for _, a := range j.History() {
		if a.Number > 0 {
			list = append(list, run{a.Number, a.Since, a.Copy})
		}
	}
	for _, l := range j.Leases {
		if l.Number > 0 {
			list = append(list, run{l.Number, l.Since, l.Copy})
		}
	}
	slices.SortFunc(list, func(a, b run) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// givenUp is until when the first of these attempts, whose result came late, was
// live at most: the next one that ended did so later, and so did a run begin that
// is no copy.
func givenUp(ends []job.Attempt, begins []run, number uint32) job.Millis {
	at := ends[0].Ended
	if len(ends) > 1 {
		at = min(at, ends[1].Ended)
	}
	for _, b := range begins {
		if b.Number > number && !b.Copy {
			return min(at, b.Since)
		}
	}
	return at
}
