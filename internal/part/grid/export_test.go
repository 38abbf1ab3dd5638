package grid

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
)

// What is in memory, for tests that compare it with the rows it follows from.

// Roster is what the shares know of a session: tasks that wait and that run. The engine
// is at rest.
func (g *Grid) Roster(name string) (waiting, running int, known bool) {
	if g.shares.known == nil || g.shares.known.shares[name] == nil {
		return 0, 0, false
	}
	s := g.shares.known.shares[name]
	return s.Waiting, s.Running, true
}

// Fleet is what the shares know of engines: those that are not lost, those that are
// taken for black holes, and those that may be given tasks.
func (g *Grid) Fleet(ctx context.Context) (known, out, fit int, is bool) {
	err := g.engine.Do(ctx, 0, func(*engine.Tx) error {
		if is = g.shares.known != nil; is {
			f := &g.shares.known.fleet
			known, out, fit = f.known, f.out, f.fit
		}
		return nil
	})
	return known, out, fit, is && err == nil
}

// Pace is what is known of the copies of a session: those that run, and those that run
// or wait. The engine is at rest.
func (g *Grid) Pace(name string) (copies, wanted int, known bool) {
	s := g.copies.paces.of[name]
	if s == nil {
		return 0, 0, false
	}
	return s.spend.Copies, s.wanted, true
}
