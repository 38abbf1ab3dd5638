package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
)

// UseUpPositions does as if every position in line of the reserved block had
// been drawn.
func (e *Engine) UseUpPositions(ctx context.Context) error {
	return e.Do(ctx, 0, func(r *Tx) error { r.seq.next = r.seq.end; return nil })
}

// Recent is what happened lately in all queues.
type Recent struct{ recent }

// NewRecent knows at most so many queues.
func NewRecent(most int, since job.Millis) *Recent {
	return &Recent{recent{max: most, since: since, queues: map[string]*lately{}}}
}

// Enqueued counts one job.
func (r *Recent) Enqueued(queue string, steady job.Millis) {
	var t Tally
	t.N[Enqueued] = 1
	r.add(queue, steady, &t)
}

// Rates are those of a queue.
func (r *Recent) Rates(queue string, steady job.Millis) (Rates, bool) { return r.of(queue, steady) }

// PanicsInPublish is a command behind whose commit there is a panic.
func (e *Engine) PanicsInPublish(ctx context.Context) error {
	return e.Do(ctx, 0, func(r *Tx) error { r.left[nil] = true; return nil })
}

// BreakEvents has whoever tells events panic until mend is called.
func (e *Engine) BreakEvents() (mend func()) {
	l := &Listener{hub: &e.hub, bell: make(chan struct{})}
	close(l.bell)
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.hub.list = append(e.hub.list, l)
	e.hub.count()
	return l.Close
}
