package meter_test

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
	all      = parttest.All
	cancel   = parttest.Cancel
	due      = parttest.Due
	newNamed = parttest.NewNamed
	retry    = parttest.Retry
	revive   = parttest.Revive
	wait     = parttest.Wait
)
