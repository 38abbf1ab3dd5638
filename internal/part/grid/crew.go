package grid

import (
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// engines tells how many engines work for the session of a task, how many of them
// may run it, and how many of those have a slot free. It looks at those that are
// logged in: one that asks call by call is there between its calls, too.
func (g *sight) engines(tx *engine.Tx, s *rule.Situation) error {
	known, err := g.sessions.find(tx, s.Job.Queue)
	if err != nil {
		return err
	}
	class := rule.EntriesOf(s.Job).Class
	return g.fleet.each(tx, func(h *job.Holder) error {
		stream := tx.Holder(h.Name)
		if h.Machine.Lost || stream != nil && len(stream.Opts.Queues) > 0 && !slices.Contains(stream.Opts.Queues, s.Job.Queue) {
			return nil
		}
		switch s.Workers++; {
		case !rule.Fits(class, s.Job.Requires, rule.Seeker{Holder: h.Name, Engine: true, Host: h.Machine.Host, Properties: h.Properties}):
			return nil
		case rule.Excluded(known.Strikes, h.Name[len(machinePrefix):]):
			s.Excluded++
			return nil
		}
		s.Fitting++
		ids, err := tx.Store().Held(h.Name)
		if (stream != nil || h.Machine.Polls) && len(ids) < slotsOf(h) && rule.HealthAdmits(h.Machine.Health, len(ids)) > 0 {
			s.Free++
		}
		return err
	})
}
