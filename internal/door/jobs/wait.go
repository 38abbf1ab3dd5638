package jobs

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// waits are the words for what keeps a ready job from running (operations.md, wire.Waits),
// where it is more than that others stand before it or that nobody takes it.
var waits = [rule.Obstacles]string{
	rule.Paused: "paused", rule.Held: "held", rule.BreakerShut: "held", rule.GroupParked: "held",
	rule.BehindHead: "behind head", rule.GroupLimit: "limited", rule.QueueLimit: "limited", rule.RateUsed: "limited",
	rule.BudgetUsed: "limited", rule.ServerLimit: "limited", rule.BudgetShort: "limited",
	rule.BehindTag: "behind head", rule.KeptForTag: "held",
}

// waitOf is the word for what is nearest to the job of what keeps it from
// running, as far as that was looked at (engine.Obstacles); "" = nothing does.
func waitOf(j *job.Job, is rule.Obstacle) string {
	switch {
	case rule.WaitsFor(j) != "":
		return "budget"
	case j.Park != "":
		return "held"
	case j.State == job.Ready:
		return waits[is]
	}
	return ""
}
