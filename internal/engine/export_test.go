package engine

import (
	"context"
)

// UseUpPositions does as if every position in line of the reserved block had
// been drawn.
func (e *Engine) UseUpPositions(ctx context.Context) error {
	return e.Do(ctx, 0, func(r *Tx) error { r.seq.next = r.seq.end; return nil })
}

// PanicsInPublish is a command behind whose commit there is a panic.
func (e *Engine) PanicsInPublish(ctx context.Context) error {
	return e.Do(ctx, 0, func(r *Tx) error { r.left[nil] = true; return nil })
}
