package grid

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/wire"
)

// excludedMax bounds the engines that a session names.
const excludedMax = 1000

// excludedBy are the engines on which tasks of a session failed too often.
func excludedBy(s grid.SessionState) (list []wire.ExcludedEngine) {
	for i := range s.Strikes {
		k := &s.Strikes[i]
		if k.Until == 0 || len(list) == excludedMax {
			continue
		}
		e := wire.ExcludedEngine{Engine: k.Engine, Failures: int(k.Count), LastAt: int64(k.Last), Spared: !k.Out}
		if s.Settings.Grid.Exclusion != nil && s.Settings.Grid.Exclusion.TTL > 0 {
			e.Until = int64(min(k.Until, job.MaxMillis))
		}
		list = append(list, e)
	}
	return list
}
