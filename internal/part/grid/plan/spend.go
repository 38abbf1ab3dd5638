package plan

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// RedundancyBar is why a straggler is not copied now.
type RedundancyBar uint8

// The bars of Spend.Bar.
const (
	RedundancyFree RedundancyBar = iota
	BarBusy                      // first runs wait for the slots there are
	BarRunning                   // RunningShare of what runs are copies
	BarSeconds                   // the time that copies may spend is used up
)

func (b RedundancyBar) String() string {
	return [...]string{"", "busy", "running_share", "seconds_share"}[b]
}

// Spend is what the copies of a session cost. It is a plain value. Its zero
// value is a session that has done nothing yet.
//
// What counts is slot time beyond the first live run of each task, whichever of
// them wins: Start when a task gets a second or further live lease, End when
// one ends and another lives, Earn when a result is accepted.
type Spend struct {
	Useful job.Millis // run time of accepted results
	Spent  job.Millis // on copies, up to At
	At     job.Millis // on the steady clock
	Copies int        // that run
}

// Left is how much time copies may spend yet. It is below nothing only if
// copies ran on past Dry.
func (s *Spend) Left(r *job.Redundancy, steady job.Millis) job.Millis {
	return r.SecondsBurst + job.Millis(r.SecondsShare*float64(s.Useful)) - s.until(steady)
}

func (s *Spend) until(steady job.Millis) job.Millis {
	return s.Spent + job.Millis(s.Copies)*max(0, steady-s.At)
}

func (s *Spend) pass(steady job.Millis) {
	s.Spent, s.At = s.until(steady), max(s.At, steady)
}

// Start counts a copy that begins.
func (s *Spend) Start(steady job.Millis) { s.pass(steady); s.Copies++ }

// End counts a copy that ended.
func (s *Spend) End(steady job.Millis) { s.pass(steady); s.Copies = max(0, s.Copies-1) }

// Earn counts a useful run.
func (s *Spend) Earn(run job.Millis) { s.Useful += max(run, 0) }

// Bar is why no further copy of a straggler may be wanted now. expected is how
// long a new run takes (Durations.Median): the copy is not begun if what is
// left does not last for that, for it and for those that run. wanted is the
// copies that run or wait for a slot, running all runs of the session, idle the
// slots that are free less the first runs that wait for one, of any session.
// Where copies stand at the front of the line they do not wait for idle slots.
func (s *Spend) Bar(r *job.Redundancy, steady, expected job.Millis, wanted, running, idle int, front bool) RedundancyBar {
	switch {
	case busy(r, idle, front):
		return BarBusy
	case wanted >= max(1, int(r.RunningShare*float64(running)+1e-9)):
		return BarRunning
	case s.Left(r, steady) < rule.Times(max(expected, 1), int64(max(wanted, s.Copies)+1)):
		return BarSeconds
	}
	return RedundancyFree
}

// CloneBar is why a task that began gets no clone now. How many it may have, and
// what they may cost, is what Clones says.
func CloneBar(r *job.Redundancy, idle int, front bool) RedundancyBar {
	if busy(r, idle, front) {
		return BarBusy
	}
	return RedundancyFree
}

func busy(r *job.Redundancy, idle int, front bool) bool { return idle <= 0 && !r.AlsoBusy && !front }

// Dry is when the copies that run will have spent what they may; 0 = never, none
// runs. An engine that takes the youngest copy of the session away then never
// spends more than SecondsShare and SecondsBurst: the task runs on, and nothing
// is charged.
func (s *Spend) Dry(r *job.Redundancy, steady job.Millis) job.Millis {
	if s.Copies == 0 {
		return 0
	}
	return steady.Add(max(0, s.Left(r, steady)) / job.Millis(s.Copies))
}
