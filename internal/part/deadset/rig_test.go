package deadset_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/parttest"
)

// rig is an engine with all parts.
type rig struct{ *parttest.Rig }

func scenario(t *testing.T, f func(*rig), edits ...func(*rig)) {
	t.Helper()
	parttest.Scenario(t, func(r *parttest.Rig) *rig { return &rig{r} }, f, edits...)
}

var (
	ann      = parttest.Ann
	boom     = parttest.Boom
	dead     = parttest.DeadOf
	grouped  = parttest.Grouped
	numbered = parttest.Numbered
	retry    = parttest.Retry
	revive   = parttest.Revive
	strict   = parttest.Strict
	wait     = parttest.Wait
)
