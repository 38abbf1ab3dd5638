package engine

import "context"

// UseUpPositions does as if every position in line of the reserved block had
// been drawn.
func (e *Engine) UseUpPositions(ctx context.Context) error {
	return e.do(ctx, 0, func(r *run) error { r.seq.next = r.seq.end; return nil })
}
