//go:build !linux

package bench

import (
	"context"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// pacer waits for points in time, to the precision of the runtime's timers.
type pacer struct{ done <-chan struct{} }

func newPacer(ctx context.Context) (*pacer, error) { return &pacer{ctx.Done()}, nil }

func (p *pacer) close() {}

// until returns at due, at once when it has passed.
func (p *pacer) until(due time.Duration) error {
	left := due - gauge.Now()
	if left <= 0 {
		return nil
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.done:
		return context.Canceled
	}
}
