package inbox

import (
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
)

// Why tells in the words of inboxes why a message is not delivered; "" where the
// words for jobs fit. Workers of its queue do not matter: they get nothing of it.
func (d *Door) Why(e query.Explanation, r rule.Reason) string {
	switch r.Is {
	case rule.NoWorker, rule.NoFittingWorker, rule.NoFreeWorker, rule.InLine:
		if x := d.Get(e.Job.Queue); x != nil && x.problem != "" {
			return "its inbox does not deliver: " + x.problem
		}
		return "nothing holds it back: it goes out with a turn of its group, to the receiver of its inbox or to who leases turns; workers of the queue get nothing of an inbox"
	default:
		return ""
	}
}
