package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// The end of a run makes room below max_engines for any engine, also where the
// one that ran it takes no more.
func TestAnEngineThatWaitsIsServedWhenAnotherMakesRoomBelowMaxEngines(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.MaxEngines = 1 })
		g.tasks("s", "A", "B", "C")
		first := g.engine("e1", 1)
		first.gets("A")
		second := g.engine("e2", 1)
		second.gets()
		first.close()
		first.ok("A")
		second.gets("B")
		g.pass(0)
		third := g.engine("e3", 1)
		third.gets()
		second.drain()
		second.fail("B")
		third.gets("B")
	})
}
