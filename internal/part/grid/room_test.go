package grid_test

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
		first.Gets("A")
		second := g.engine("e2", 1)
		second.Gets()
		first.End()
		first.OK("A")
		second.Gets("B")
		g.Pass(0)
		third := g.engine("e3", 1)
		third.Gets()
		second.drain()
		second.Fails("B")
		third.Gets("B")
	})
}

// What an engine took by a call takes up a slot of its stream, and gives back no
// more than that.
func TestAnEngineThatStreamsAndCallsHasNoMoreThanItsSlots(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("calls")
		g.session("streams")
		e := g.engine("e1", 2)
		e.Close()
		s, err := g.Part.Grid.EngineStream(g.Context(), e.name, e.epoch, 0, []string{"streams"})
		if err != nil {
			g.Fatal(err)
		}
		e.Stream = s
		g.tasks("calls", "A", "B")
		called, err := g.Part.Grid.EngineLease(g.Context(), e.name, e.epoch, 1, []string{"calls"})
		if err != nil || len(called) != 1 {
			g.Fatal(called, err)
		}
		g.tasks("streams", "C", "D", "E", "F")
		e.Gets("C")
		g.Settled(called[0], job.OK)
		e.Gets("D")
		if state := e.state(); state.Running != 2 {
			g.Errorf("it runs %d tasks", state.Running)
		}
	})
}
