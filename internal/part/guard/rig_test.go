package guard_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/parttest"
)

// rig is an engine with all parts.
type rig struct{ *parttest.Rig }

func scenario(t *testing.T, f func(*rig), edits ...func(*rig)) {
	t.Helper()
	parttest.Scenario(t, func(r *parttest.Rig) *rig { return &rig{r} }, f, edits...)
}

var (
	breaker      = parttest.Breaker
	groupBreaker = parttest.GroupBreaker
	grouped      = parttest.Grouped
	newNamed     = parttest.NewNamed
	quiet        = enginetest.Quiet
	retry        = parttest.Retry
	series       = parttest.Series
	strict       = parttest.Strict
	threes       = parttest.Threes
	wait         = parttest.Wait
)
