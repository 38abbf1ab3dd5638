package grid_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
)

// A session says that it is stalled exactly while no engine may run any of its
// tasks.
func TestASessionIsStalledWhileNoEngineMayRunItsTasks(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		if g.state("s").Stalled {
			t.Error("without tasks nothing is missing")
		}
		fast := func(n *engine.NewJob) {
			n.Job.Door, n.Job.Requires = job.DoorGrid, []job.Requirement{{Property: "cpuMHz", Op: ">", Value: "350"}}
		}
		g.Add("s", "A", fast)
		if !g.state("s").Stalled {
			t.Error("there is no engine at all")
		}
		g.login("slow", 1, func(l *gridpart.Login) { l.Properties = map[string]string{"cpuMHz": "350"} })
		g.login("none", 1)
		if !g.state("s").Stalled {
			t.Error("no engine meets the condition")
		}
		g.Add("s", "B", task)
		if g.state("s").Stalled {
			t.Error("any engine may run B")
		}
		if list, err := g.Part.Grid.Sessions(g.Context(), "", 10); err != nil || len(list) != 1 || list[0].Stalled {
			t.Error(list, err)
		}
	})
	grid(t, func(g *gridRig) {
		g.session("s")
		g.Add("s", "A", task)
		g.login("e", 1)
		if _, err := g.Part.Grid.Drain(g.Context(), "e", 0, job.Actor{}); err != nil {
			t.Fatal(err)
		}
		if !g.state("s").Stalled {
			t.Error("the only engine drains")
		}
		m := g.engine("fresh", 1)
		if g.state("s").Stalled {
			t.Error("a task that runs is no stall")
		}
		_ = m
	})
}
