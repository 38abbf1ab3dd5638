package engine

import "context"

// UseUpPositions does as if every position in line of the reserved block had
// been drawn.
func (e *Engine) UseUpPositions(ctx context.Context) error {
	return e.do(ctx, 0, func(r *run) error { r.seq.next = r.seq.end; return nil })
}

// Roster is what the shares know of a session: tasks that wait and that run.
func (e *Engine) Roster(name string) (waiting, running int, known bool) {
	if e.core.roster == nil || e.core.roster.shares[name] == nil {
		return 0, 0, false
	}
	s := e.core.roster.shares[name]
	return s.Waiting, s.Running, true
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
