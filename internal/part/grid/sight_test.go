package grid_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// serving is an engine whose stream is for one session.
func (g *gridRig) serving(name, session string) *machine {
	g.Helper()
	in := g.login(name, 1)
	s, err := g.Part.Grid.EngineStream(g.Context(), name, in.Engine.Epoch, 0, []string{session})
	if err != nil {
		g.Fatal(err)
	}
	return &machine{g: g, name: name, epoch: in.Engine.Epoch, stream: g.Over(s)}
}

// An engine whose stream is for another session is none for this one: explain, the stall
// of the session and copies say the same.
func TestAnEngineOfAnotherSessionIsNone(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("a")
		g.session("b")
		g.serving("w", "b")
		g.tasks("a", "A")
		if got := g.obstacle("A").Is; got != rule.NoWorker {
			t.Errorf("explain says %s", got)
		}
		if !g.state("a").Stalled {
			t.Error("no engine works for the session, and it is not stalled")
		}
	})
	grid(t, func(g *gridRig) {
		g.session("a")
		g.session("b")
		m := g.serving("w", "a")
		g.serving("other", "b")
		g.tasks("a", "A")
		m.Gets("A")
		m.starts("A")
		g.Operate("A", rule.Command{Verb: rule.Offer})
		if got := g.obstacle("A").Is.String(); got != "no_eligible_host" {
			t.Errorf("explain says %s", got)
		}
	})
}

// The share of a session is told without the slots of engines that serve others, or that it
// excludes, wherever it is told.
func TestAShareCountsOnlySlotsOfEnginesThatMayRunTheSession(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("a")
		g.session("b")
		g.serving("w1", "b")
		g.serving("w2", "b")
		m := g.serving("w", "a")
		g.tasks("a", "A1", "A2", "A3")
		m.Gets("A1")
		x, err := g.Explain(g.Context(), g.IDs["A2"])
		if err != nil {
			g.Fatal(err)
		}
		_, now, _ := g.Part.Grid.Measure(g.Context())
		if s := g.state("a"); s.Share != 1 || x.Share.Target != 1 || now.Target != 1 {
			t.Errorf("its state tells %d, explain %d, the measures %d", s.Share, x.Share.Target, now.Target)
		}
	})
}

// No more runs end for urgent tasks than there are units of the budget that these use.
func TestNoRunEndsForAnUrgentTaskThatLacksABudget(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("low")
		g.session("now", urgent)
		g.Budget("license", 1)
		m := g.engine("w", 3)
		g.tasks("low", "L1", "L2", "L3")
		m.Gets("L1", "L2", "L3")
		use := func(n *engine.NewJob) {
			n.Job.Extras = &job.Extras{Budgets: []job.BudgetUse{{Key: "license", Cost: 1}}}
		}
		g.Add("now", "U1", task, use)
		g.Add("now", "U2", task, use)
		g.beating(31*job.Second, m) // both wait until the runs are protected no more
		ended := 0
		for _, name := range []string{"L1", "L2", "L3"} {
			ended += int(g.Job(name).Evictions)
		}
		if ended != 1 {
			t.Errorf("%d runs ended for one unit", ended)
		}
	})
}
