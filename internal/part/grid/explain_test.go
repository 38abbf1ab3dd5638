package grid_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// obstacle is the first reason why a task does not run.
func (g *gridRig) obstacle(name string) rule.Reason {
	g.Helper()
	x, err := g.Explain(g.Context(), g.IDs[name])
	if err != nil || len(x.Reasons) == 0 {
		g.Fatalf("%s: %v, %v", name, x.Reasons, err)
	}
	return x.Reasons[0]
}

func (g *gridRig) Why(name string, want rule.Obstacle) {
	g.Helper()
	if got := g.obstacle(name); got.Is != want {
		g.Fatalf("%s waits because of %s, want %s", name, got.Is, want)
	}
}

func TestExplainTellsWhyATaskWaits(t *testing.T) {
	grid(t, func(g *gridRig) {
		x := job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 1}
		g.session("s", func(q *job.Queue) { q.Grid.Exclusion, q.Grid.MaxEngines = &x, 2 })
		g.tasks("s", "A")
		g.Anonymous(9) // a worker is no engine
		g.Why("A", rule.NoWorker)
		m := g.engine("w1", 1)
		m.Gets("A")
		g.tasks("s", "B")
		g.Why("B", rule.NoFreeWorker)
		g.engine("w2", 3).Gets("B")
		g.tasks("s", "C")
		g.Why("C", rule.QueueLimit)
		if got := g.obstacle("C"); got.Limit != 2 {
			g.Errorf("%+v", got)
		}
		edit := func(q *job.Queue) error { q.Grid.Weight = 0; return nil }
		if _, err := g.Part.Grid.ChangeSession(g.Context(), "s", edit, driver); err != nil {
			g.Fatal(err)
		}
		g.Why("C", rule.Paused)
	})
}

func TestExplainTellsThatAllEnginesAreExcluded(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 1}))
		m := g.running()
		m.Fails("A")
		g.Why("A", rule.EnginesExcluded)
		g.engine("w2", 1).Gets("A")
	})
}
