package grid

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
)

// Why tells in the words of sessions and engines why a task does not run; "" where
// the words for jobs fit.
func Why(e query.Explanation, r rule.Reason) string {
	switch r.Is {
	case rule.Parked:
		if r.Head == nil || r.Head.State == job.None {
			return ""
		}
		return fmt.Sprintf("it needs task %d, which is %s", SeqOf(r.Head), StateOf(r.Head.State))
	case rule.Paused:
		return "its session is suspended, or has the weight 0"
	case rule.QueueLimit:
		return fmt.Sprintf("its session runs as many tasks as it may at once: max_engines is %d", r.Limit)
	case rule.NoWorker:
		return "no engine is logged in that works for its session"
	case rule.NoFittingWorker:
		if len(e.Job.Requires) == 0 {
			return "no engine may run it"
		}
		return "no engine meets what it requires: " + strings.Join(requiresOf(e.Job), ", ")
	case rule.NoFreeWorker:
		return "no engine that may run it has a slot free" + shareText(e.Share)
	case rule.InLine:
		return "nothing holds it back: it is given out when its turn comes" + shareText(e.Share)
	default:
		return ""
	}
}

func shareText(s *engine.SessionShare) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("; its session should have %d of the slots now, and has %d", s.Target, s.Actual)
}

func requiresOf(j *job.Job) (list []string) {
	for _, r := range j.Requires {
		list = append(list, r.Property+" "+r.Op+" "+r.Value)
	}
	return list
}
