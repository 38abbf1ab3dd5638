package account

import (
	"errors"
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// A second account of tasks: what the counters of a task must be by what
// happened to it, reckoned without Step. Runs that kill engines and servers hold
// the server's counters against it.

// Happening is something that happened to a task.
type Happening uint8

// What can happen.
const (
	TaskSubmitted   Happening = iota
	RunBegan                  // an engine took it
	CopyAsked                 // a strategy fired, or a run overran with on_timeout reschedule
	RunFailed                 // its engine told of an error
	RunTimedOut               // it overran with on_timeout retry
	RunVanished               // its engine was lost; not of a task delivered alone if it was not alone there (core.md 5)
	RunEvicted                // the server took it back: rebalance, pre-emption, a drain that was too slow
	RunGivenBack              // its engine gave it back: logoff, drain
	RunUncharged              // it ended without blame and without a count: a start of the server, a copy taken away
	RunSucceeded              // its result is the one of the task
	LateSucceeded             // so is the result of a run that was lost before
	TaskCancelledBy           // a person, or its session
	Happenings                // how many there are
)

func (h Happening) String() string {
	return [Happenings]string{
		"submitted", "began", "copy asked", "failed", "timed out", "vanished", "evicted", "given back", "ended uncharged", "succeeded", "succeeded late", "cancelled",
	}[h]
}

// Event is one event of a history, in the order in which they were decided.
type Event struct {
	Task job.ID
	What Happening
}

// Rules are the limits that a history was made under.
type Rules struct {
	MaxRetries     uint32
	MaxReschedules uint32
	MaxCopies      int
	LossesCharged  bool // a lost engine is a retry, as GridServer has it
	LossLimit      uint32
}

// Tally is what a task comes to by its history. The zero value is a task
// that was not submitted.
type Tally struct {
	State  job.State // Ready while it waits, however long
	Reason job.Reason
	Live   int  // runs
	InLine bool // waits for a run, or a copy of it does
	Asked  int  // copies that have not begun

	Retries     uint32
	Reschedules uint32
	Evictions   uint32
	Losses      uint32 // in a row
	Runs        uint32
	Results     uint32 // that were accepted
}

// Add follows one event. What cannot have happened is an error, and changes
// nothing.
func (t *Tally) Add(what Happening, r Rules) error {
	refuse := func(why string) error {
		return fmt.Errorf("%s: %s (%s, %d live, in line %t, %d retries, %d reschedules)", what, why, t.State, t.Live, t.InLine, t.Retries, t.Reschedules)
	}
	switch {
	case (what == TaskSubmitted) != (t.State == job.None):
		return refuse("submitted twice, or not at all")
	case t.State.Terminal():
		return refuse("the task is finished")
	case what == RunBegan && !t.InLine:
		return refuse("no run is wanted")
	case what == RunBegan && t.Live >= r.MaxCopies, what == CopyAsked && t.Live+t.Asked >= r.MaxCopies:
		return refuse("more than max_copies")
	case what == CopyAsked && t.Reschedules >= r.MaxReschedules:
		return refuse("more than max_reschedules")
	case (what >= CopyAsked && what <= RunSucceeded) && t.Live == 0:
		return refuse("no run is live")
	}
	switch what {
	case TaskSubmitted:
		t.State, t.InLine = job.Ready, true
	case RunBegan:
		if t.State, t.Asked = job.Leased, max(0, t.Asked-min(t.Live, 1)); t.Asked == 0 {
			t.InLine = false
		}
		t.Live++
		t.Runs++
	case CopyAsked:
		t.Reschedules++
		t.Asked++
		t.InLine = true
	case RunFailed, RunTimedOut:
		if what == RunFailed {
			t.Losses = 0
		}
		t.charge(r)
	case RunVanished:
		if r.LossesCharged {
			t.charge(r)
			break
		}
		t.Losses++
		if t.Live == 1 && r.LossLimit > 0 && t.Losses >= r.LossLimit {
			t.finish(job.Dead, job.Lost)
			break
		}
		t.over(r)
	case RunEvicted, RunGivenBack:
		if t.Evictions++; what == RunGivenBack {
			t.Losses = 0
		}
		t.over(r)
	case RunUncharged:
		t.over(r)
	case RunSucceeded, LateSucceeded:
		t.Results++
		t.Losses = 0
		t.finish(job.Done, job.Alive)
	case TaskCancelledBy:
		t.finish(job.Dead, job.ReasonCancelled)
	case Happenings:
	}
	return nil
}

// charge counts a failed run: it is what decides if it was the last one.
func (t *Tally) charge(r Rules) {
	t.Retries++
	if t.over(r); t.Live > 0 {
		t.InLine = false
	}
	t.Asked = 0
}

// over ends one run. A copy that was asked for beside the last one is what runs
// next: the task has one place in line. The end of the last one decides about a
// task that is past its retries, whatever end it is.
func (t *Tally) over(r Rules) {
	switch t.Live--; {
	case t.Live > 0:
	case t.Retries > r.MaxRetries:
		t.finish(job.Dead, job.Exhausted)
	default:
		t.State, t.InLine, t.Asked = job.Ready, true, 0
	}
}

func (t *Tally) finish(s job.State, why job.Reason) {
	t.State, t.Reason, t.Live, t.InLine, t.Asked = s, why, 0, false, 0
}

// Replay reckons a whole history. Its error names every event that cannot have
// happened; what follows is reckoned without it.
func Replay(history []Event, r Rules) (map[job.ID]*Tally, error) {
	tasks := map[job.ID]*Tally{}
	var wrong []error
	for i, e := range history {
		t := tasks[e.Task]
		if t == nil {
			t = &Tally{}
			tasks[e.Task] = t
		}
		if err := t.Add(e.What, r); err != nil {
			wrong = append(wrong, fmt.Errorf("event %d, task %s: %w", i, e.Task, err))
		}
	}
	return tasks, errors.Join(wrong...)
}
