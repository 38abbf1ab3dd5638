package turn_test

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
	policy    = parttest.Policy
	bothModes = parttest.BothModes
	cpuTime   = parttest.CPUTime
	errDisk   = parttest.ErrDisk
	failFirst = parttest.FailFirst
	grouped   = parttest.Grouped
	newNamed  = parttest.NewNamed
	revive    = parttest.Revive
	toTheEnd  = parttest.ToTheEnd
	whole     = parttest.Whole
)
