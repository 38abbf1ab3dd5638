package rule

import (
	"cmp"

	"github.com/reprisehq/reprise/internal/job"
)

// What is particular to tasks of sessions (spec/grid.md): more copies of one,
// where it stands again, and its number among the finished.

// CopyBar is why no further copy of a job may be wanted.
type CopyBar uint8

// The reasons.
const (
	CopyAllowed   CopyBar = iota
	CopyLimit             // as many as may be were asked for in its life
	CopiesLive            // as many as may be run or are wanted
	CopyUnsafe            // its queue is marked non-idempotent
	CopyCommitted         // a run of it has the word that its effects count
	CopySpent             // it failed past its limit, and the run that lives is its last
)

func (b CopyBar) String() string {
	return [...]string{"allowed", "max_reschedules is used up", "max_copies run or wait", "it is marked non-idempotent", "a run of it commits", "its retries are used up, and the run that goes on is its last"}[b]
}

// NoCopy is why no further copy of the job may be wanted now.
func NoCopy(j *job.Job, q *job.Queue, s *Server) CopyBar {
	g := q.Grid
	switch {
	case j.CopiesWanted == 255, g != nil && j.CopiesWanted >= g.MaxCopies:
		return CopiesLive
	case g == nil:
		return CopyAllowed
	case j.Committed():
		return CopyCommitted
	case j.Reschedules >= g.MaxReschedules:
		return CopyLimit
	case q.NonIdempotent:
		return CopyUnsafe
	case noRunLeft(View{Queue: q, Server: s}, j):
		return CopySpent
	}
	return CopyAllowed
}

// oneMore wants one more copy of a job.
func oneMore(v View, j *job.Job, p job.Place) {
	j.CopiesWanted++
	j.Reschedules++
	if g := v.Queue.Grid; g != nil && p == job.PlaceUnset {
		p = g.CopyPlace
	}
	place(v, j, p)
}

// evictedTo is where a job stands that was given back without blame.
func evictedTo(v View, p job.Place) job.Place {
	if g := v.Queue.Grid; g != nil && p == job.PlaceUnset {
		return g.EvictedPlace
	}
	return p
}

// lostTo is where a job stands whose holder vanished.
func lostTo(v View) job.Place {
	if g := v.Queue.Grid; g != nil {
		return cmp.Or(g.LostPlace, job.PlaceFront)
	}
	return job.PlaceKeep
}

// runsOn reports whether a run that took too long goes on, beside a copy.
func runsOn(v View) bool {
	return v.Queue.Grid != nil && v.Queue.Grid.OnTimeout == job.TimeoutReschedule
}

// overran wants a copy of a run that took too long and goes on.
func overran(v View, j *job.Job, l *job.Lease, e *Effect) {
	l.RunEnd = 0 // once for each attempt
	switch NoCopy(j, v.Queue, v.Server) {
	case CopyAllowed:
		oneMore(v, j, job.PlaceUnset)
	case CopyLimit:
		e.AtLimit = true
	case CopiesLive, CopyUnsafe, CopyCommitted, CopySpent:
	}
}

// StopAfter is how long a run of a task goes on before its engine ends it by itself
// and tells of a timeout (reference section 5, 2); 0 = it does not. That is where
// overruns are ended, and when they happen.
func StopAfter(q *job.Queue, j *job.Job) job.Millis {
	if g := q.Grid; g == nil || g.OnTimeout != job.TimeoutRetry || g.PollPeriod > 0 {
		return 0
	}
	return cmp.Or(j.RunTimeout, q.RunTimeout)
}

// runEnd is when a run that starts now has taken too long; 0 = never. Where
// overruns are looked for at a period only, that is its next multiple, and where
// engines end them by themselves, they have some time for that.
func runEnd(v View, j *job.Job) job.Millis {
	t := cmp.Or(j.RunTimeout, v.Queue.RunTimeout)
	if t == 0 {
		return 0
	}
	if g := v.Queue.Grid; g != nil {
		if StopAfter(v.Queue, j) > 0 {
			return v.Steady.Add(t).Add(g.TimeoutSlack)
		}
		return OverrunSeen(v.Steady.Add(t), g.PollPeriod)
	}
	return v.Steady.Add(t)
}

// backGrace is how long an engine that is back after a start of the server has to
// tell of runs that ended meanwhile.
const backGrace = job.Second

// ownRunEnd is when a run has taken too long by the clock of its engine, which went on
// while the server was away. The start of the server gave it more time (ClockShift),
// because its engine could not be heard.
func ownRunEnd(v View, j *job.Job, l *job.Lease) job.Millis {
	began := cmp.Or(l.Started, l.Since)
	v.Steady -= max(0, v.Now-began)
	if l.Until == 0 && l.Length > 0 {
		return v.Steady.Add(l.Length)
	}
	return runEnd(v, j)
}

// finish gives a task its number among the finished of its session.
func finish(v View, j *job.Job) {
	if v.Queue.Grid != nil {
		j.Finished = v.Seq()
	}
}

// failedRun is a lease that the clock ended as a failed attempt.
type failedRun struct {
	lease job.Lease
	what  job.Failure
	place job.Place // where the job stands again; unset = by policy
}

// lostRun is the failure of a task whose engine is lost.
func lostRun(v View, l job.Lease) failedRun {
	return failedRun{l, job.Failure{Type: "Lost", Message: "its engine was not heard of any more"}, v.Queue.Grid.LostPlace}
}

func chargesLoss(v View, how job.Ending) bool {
	g := v.Queue.Grid
	return g != nil && g.LossesCharged && how == job.ByLapse
}
