package grid

import (
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// sight is the room that knows who may run a task.
type sight struct{ *Grid }

// stalled reports whether a session has tasks in line, none that runs, and no
// engine that may run any of them: nothing will happen until one comes.
func (g *sight) stalled(tx *engine.Tx, s *job.Session, q *job.Queue, d engine.Depth) (bool, error) {
	if d.Wanting == 0 || d.Leases > 0 || !q.Grid.Served() || s.State.Ended() {
		return false, nil
	}
	asked := map[string]bool{} // equal engines find the same
	for after := machinePrefix; ; {
		rows, err := tx.Store().Rows(job.Holders, after, engine.TickMax)
		if err != nil {
			return false, err
		}
		for _, row := range rows {
			h := g.fleet.asItIs(row)
			if after = h.Name; h.Machine == nil || h.Machine.Lost || h.Machine.Draining || rule.Excluded(s.Strikes, after[len(machinePrefix):]) {
				continue
			}
			key := engine.NewHolder(job.Named, h.Name, engine.StreamOptions{Properties: h.Properties}).Key
			if s.Tags > 0 {
				key += h.Name
			}
			if asked[key] {
				continue
			}
			asked[key] = true
			list, err := tx.Store().Ready([]string{s.Name}, rule.Seeker{Holder: h.Name, Engine: true, Host: h.Machine.Host, Properties: h.Properties}, 1)
			if err != nil || len(list) > 0 {
				return false, err
			}
		}
		if len(rows) < engine.TickMax {
			return true, nil
		}
	}
}
