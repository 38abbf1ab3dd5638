package fold_test

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
	due      = parttest.Due
	keyed    = parttest.Keyed
	newNamed = parttest.NewNamed
)
