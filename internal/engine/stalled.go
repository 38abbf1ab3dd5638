package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// stalled reports whether a session has tasks in line, none that runs, and no
// engine that may run any of them: nothing will happen until one comes.
func (r *Tx) stalled(s *job.Session, q *job.Queue, d Depth) (bool, error) {
	if d.Wanting == 0 || d.Leases > 0 || !q.Grid.Served() || s.State.Ended() {
		return false, nil
	}
	asked := map[string]bool{} // equal engines find the same
	for after := machinePrefix; ; {
		rows, err := r.tx.Rows(job.Holders, after, tickMax)
		if err != nil {
			return false, err
		}
		for _, row := range rows {
			h := r.asItIs(row)
			if after = h.Name; h.Machine == nil || h.Machine.Lost || h.Machine.Draining || rule.Excluded(s.Strikes, after[len(machinePrefix):]) {
				continue
			}
			key := newHolder(job.Named, h.Name, StreamOptions{Properties: h.Properties}).key
			if s.Tags > 0 {
				key += h.Name
			}
			if asked[key] {
				continue
			}
			asked[key] = true
			list, err := r.tx.Ready([]string{s.Name}, rule.Seeker{Holder: h.Name, Engine: true, Host: h.Machine.Host, Properties: h.Properties}, 1)
			if err != nil || len(list) > 0 {
				return false, err
			}
		}
		if len(rows) < tickMax {
			return true, nil
		}
	}
}
