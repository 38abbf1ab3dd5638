package engine_test

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
	policy   = parttest.Policy
	all      = parttest.All
	ann      = parttest.Ann
	boom     = parttest.Boom
	breaker  = parttest.Breaker
	cancel   = parttest.Cancel
	cpuTime  = parttest.CPUTime
	dead     = parttest.DeadOf
	dice     = enginetest.Dice
	due      = parttest.Due
	errDisk  = parttest.ErrDisk
	grouped  = parttest.Grouped
	keyed    = parttest.Keyed
	large    = parttest.Large
	names    = parttest.Series
	newNamed = parttest.NewNamed
	numbered = parttest.Numbered
	quiet    = enginetest.Quiet
	retry    = parttest.Retry
	revive   = parttest.Revive
	strict   = parttest.Strict
	wait     = parttest.Wait
)
