package rule

import "github.com/reprisehq/reprise/internal/job"

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
