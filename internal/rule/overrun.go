package rule

import (
	"cmp"

	"github.com/reprisehq/reprise/internal/job"
)

// OverrunSeen is when it is seen that a run is over its time: at its end,
// exactly, or where a session has a poll period at the first sweep that is not
// before it. Sweeps are at the multiples of the period on the steady clock
// (grid.md 6). An engine of ours does not sweep: it sets the end of the run to
// this when the run begins, so a run started at s with a limit of M ends at
// OverrunSeen(s + M, P), which is in [s + M, s + M + P).
func OverrunSeen(end, period job.Millis) job.Millis {
	if period <= 0 {
		return end
	}
	if over := end % period; over > 0 {
		return end.Add(period - over)
	}
	return end
}

// OverrunWindow is within what span from its start it is seen that a run of a task takes
// too long: never before From, and by By at the latest. All is the same over all runs that
// the task may have yet, if each takes too long, without the waits between them; zero if
// their number has no limit, or overruns are no failures.
type OverrunWindow struct {
	From, By       job.Millis
	AllFrom, AllBy job.Millis
}

// OverrunOf is the window of an open task; false if its runs may take as long as they will.
func OverrunOf(q *job.Queue, j *job.Job, p *job.Retry) (w OverrunWindow, ok bool) {
	t := cmp.Or(j.RunTimeout, q.RunTimeout)
	if q.Grid == nil || t == 0 || !j.State.Open() {
		return w, false
	}
	w.From, w.By = t, t.Add(q.Grid.PollPeriod)
	if StopAfter(q, j) > 0 { // by the engine; by the server if that is mute
		w.By = t.Add(q.Grid.TimeoutSlack)
	}
	if limit, bounded := p.LimitValue(); bounded && q.Grid.OnTimeout == job.TimeoutRetry {
		runs := max(limit-int64(j.Attempts), 0) + 1
		w.AllFrom, w.AllBy = Times(w.From, runs), Times(w.By, runs)
	}
	return w, true
}
