package budget_test

import (
	"testing"

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
	all      = parttest.All
	ann      = parttest.Ann
	cancel   = parttest.Cancel
	costs    = parttest.Costs
	grouped  = parttest.Grouped
	keyed    = parttest.Keyed
	newNamed = parttest.NewNamed
	revive   = parttest.Revive
	series   = parttest.Series
	strict   = parttest.Strict
)
