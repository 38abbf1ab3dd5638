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

// OverrunWindow is how long a run can have taken, at least and less than, when
// it is seen that it is over its limit; and the same summed over all runs of a
// task each of which hangs, without the time in line: what explain and a
// preview tell of a session (reference section 5). Without a period the two are
// the same.
func OverrunWindow(limit, period job.Millis, retries uint32) (best, worst, bestAll, worstAll job.Millis) {
	best, worst = limit, limit.Add(max(period, 0))
	runs := int64(retries) + 1
	return best, worst, times(best, runs), times(worst, runs)
}
