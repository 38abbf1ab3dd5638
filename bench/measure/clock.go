package measure

import (
	"context"
	"time"
)

var origin = time.Now()

// now is the monotonic time since the process began. All times of a run are
// taken from it.
func now() time.Duration { return time.Since(origin) }

// wait lets d pass, or less when ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
