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

// Roster is what the shares know of a session: tasks that wait and that run.
func (e *Engine) Roster(name string) (waiting, running int, known bool) {
	if e.core.roster == nil || e.core.roster.shares[name] == nil {
		return 0, 0, false
	}
	s := e.core.roster.shares[name]
	return s.Waiting, s.Running, true
}

// Fleet is what the shares know of machines: those that are not lost, those that are
// taken for black holes, and those that may be given tasks.
func (e *Engine) Fleet(ctx context.Context) (known, out, fit int, is bool) {
	err := e.Do(ctx, 0, func(r *Tx) error {
		if is = r.c.roster != nil; is {
			known, out, fit = r.c.roster.fleet.known, r.c.roster.fleet.out, r.c.roster.fleet.fit
		}
		return nil
	})
	return known, out, fit, is && err == nil
}

// Pace is what is known of the copies of a session: those that run, and those
// that run or wait.
func (e *Engine) Pace(name string) (copies, wanted int, known bool) {
	s := e.core.paces.of[name]
	if s == nil {
		return 0, 0, false
	}
	return s.spend.Copies, s.wanted, true
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
