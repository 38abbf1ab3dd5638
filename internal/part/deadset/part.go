// Package deadset is the part for what is done to dead jobs: looking at them by the
// fingerprints of their failures, replays, marks (retry.md section 3).
//
// Its state is rows: replays that run or are over, and marks of fingerprints.
package deadset

import (
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Set is the dead set of a server.
type Set struct{ engine *engine.Engine }

// Join implements engine.Part.
func (set *Set) Join(e *engine.Engine) engine.Hooks {
	set.engine = e
	return engine.Hooks{
		Recover: func(tx *engine.Tx, _ job.Millis) error { return resumeReplays(tx) },
		Due: []engine.Due{
			{Table: job.Replays, Steady: true, Do: engine.Row(advance)},
			{Table: job.Marks, Do: engine.Row(releaseSome)},
		},
		Wipe: engine.WipeTable(job.Replays),
	}
}
