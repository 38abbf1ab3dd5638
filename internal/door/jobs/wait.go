package jobs

import (
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// waits are the words for what keeps a ready job from running (operations.md),
// where it is more than that others stand before it or that nobody takes it.
var waits = [rule.Obstacles]string{
	rule.Paused: "paused", rule.Held: "held", rule.BreakerShut: "held", rule.GroupParked: "held", rule.BehindHead: "behind head",
	rule.GroupLimit: "limited", rule.QueueLimit: "limited", rule.RateUsed: "limited", rule.BudgetUsed: "limited",
	rule.ServerLimit: "limited", rule.BudgetShort: "limited",
}

// WaitOf is the word for what is nearest to the job of what keeps it from
// running; "" = nothing does.
func WaitOf(x engine.Explanation) string {
	if len(x.Reasons) == 0 || x.Job.State != job.Ready {
		return ""
	}
	return waits[x.Reasons[0].Is]
}
