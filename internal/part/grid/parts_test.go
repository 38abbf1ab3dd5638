package grid_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/parttest"
)

// rig is an engine with all parts.
type rig struct{ *parttest.Rig }

type stream = parttest.Stream

func scenario(t *testing.T, f func(*rig), edits ...func(*rig)) {
	t.Helper()
	parttest.Scenario(t, func(r *parttest.Rig) *rig { return &rig{r} }, f, edits...)
}

var (
	ann       = parttest.Ann
	cancel    = parttest.Cancel
	costs     = parttest.Costs
	cpuTime   = parttest.CPUTime
	dice      = enginetest.Dice
	due       = parttest.Due
	errDisk   = parttest.ErrDisk
	failFirst = parttest.FailFirst
	grouped   = parttest.Grouped
	large     = parttest.Large
	newNamed  = parttest.NewNamed
	quiet     = enginetest.Quiet
	revive    = parttest.Revive
	toTheEnd  = parttest.ToTheEnd
)
