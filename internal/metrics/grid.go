package metrics

import (
	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid"
)

var (
	gridTasks       = desc("grid_tasks_total", "Tasks of sessions that ended, by outcome.", "outcome")
	gridEnded       = desc("grid_attempts_ended_total", "Runs of tasks that ended, by how.", "how")
	gridCharged     = desc("grid_retries_charged_total", "Retries charged to tasks, by what for.", "kind")
	gridEvictions   = desc("grid_evictions_total", "Runs of tasks given back by a drain, a logoff, or for another session.")
	gridReschedules = desc("grid_reschedules_total", "Copies of tasks asked for: by a strategy, a timeout or a person.")
	gridStarted     = desc("grid_redundant_started_total", "Copies of tasks that a strategy asked for.", "strategy")
	gridWon         = desc("grid_redundant_won_total", "Tasks whose copy finished before the run it copied, by the strategy that asked for it.", "strategy")
	gridSuppressed  = desc("grid_redundancy_suppressed_total", "Stragglers that got no copy, by what barred it.", "reason")
	gridRedundant   = desc("grid_redundant_seconds_total", "Run time of copies and originals that lost.")
	gridUseful      = desc("grid_useful_seconds_total", "Run time of accepted results.")
	gridLateness    = desc("grid_timeout_lateness_seconds", "Time from when a run had taken too long until the server acted on it.")
	gridDetection   = desc("grid_detection_seconds", "Time from the last word of an engine until it was taken for lost.")
	gridLate        = desc("grid_late_results_total", "Results that came after the end of their run, by the answer.", "answer")
	gridShare       = desc("grid_share_slots", "Slots of the sessions that are not over: those they should have (target) and have (actual).", "what")
	gridExcluded    = desc("grid_excluded_engines", "Engines that a session that is not over gives nothing, added up over the sessions.")
	gridSessions    = desc("grid_sessions", "Sessions that are not over.")
	gridEngines     = desc("grid_engines", "Engines that are not lost, by health; only to those that are well, and to one that is probed, the grid gives tasks freely.", "health")
)

// grid is what happened to tasks, and what sessions and engines there are.
func (p page) grid(g *grid.Tally, now *grid.Now, working bool) {
	for o, n := range g.Outcomes {
		p.put(gridTasks, counter, float64(n), grid.TaskOutcome(o).String())
	}
	for how, n := range g.Ended {
		p.put(gridEnded, counter, float64(n), job.Ending(how).String())
	}
	for kind, n := range g.Charged {
		p.put(gridCharged, counter, float64(n), grid.RetryCause(kind).String())
	}
	p.put(gridEvictions, counter, float64(g.Evictions))
	p.put(gridReschedules, counter, float64(g.Reschedules))
	for s, n := range g.Started {
		p.put(gridStarted, counter, float64(n), job.RedundancyStrategy(s).String())
		p.put(gridWon, counter, float64(g.Won[s]), job.RedundancyStrategy(s).String())
	}
	for bar, n := range g.Suppressed {
		p.put(gridSuppressed, counter, float64(n), bar)
	}
	for answer, n := range g.Late {
		p.put(gridLate, counter, float64(n), answer)
	}
	p.put(gridRedundant, counter, float64(g.Redundant)/1000)
	p.put(gridUseful, counter, float64(g.Useful)/1000)
	p.histogram(gridLateness, &g.Lateness, &histogram.Spans, 1000)
	p.histogram(gridDetection, &g.Detection, &histogram.Spans, 1000)
	if !working {
		return
	}
	p.put(gridSessions, gauge, float64(now.Sessions))
	p.put(gridShare, gauge, float64(now.Target), "target")
	p.put(gridShare, gauge, float64(now.Actual), "actual")
	p.put(gridExcluded, gauge, float64(now.Excluded))
	for health := range job.HealthStates {
		p.put(gridEngines, gauge, float64(now.Engines[health]), health.String())
	}
}
