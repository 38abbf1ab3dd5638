// Package gauge is what the two load generators, `reprise bench` and bench/, measure with:
// a clock, a bound on jobs under way, a ledger of jobs, and what the machine tells.
package gauge

import (
	"context"
	"time"
)

// origin is where Now counts from.
var origin = time.Now()

// Now is the monotonic time since the process began. All times of a run are
// taken from it.
func Now() time.Duration { return time.Since(origin) }

// Wait lets d pass, or less when ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
