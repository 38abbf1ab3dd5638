package grid_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
)

// Tasks that use budgets: GridServer's EXTRA conditions (acceptance test A39).

func TestA39NoMoreAttemptsRunThanABudgetAllowsAndALostEngineGivesItBack(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.Budget("licence", 2)
		g.session("s")
		g.session("other")
		up := []*machine{g.engine("w0", 2), g.engine("w1", 2), g.engine("w2", 2)}
		var names []string
		for i := range 10 {
			name, session := fmt.Sprint("t", i), []string{"s", "other"}[i%2]
			g.Add(session, name, task, costs("licence", 1))
			names = append(names, name)
		}
		g.tasks("s", "free") // what uses none of it is not held up
		runs := func() (live int) {
			for _, name := range names {
				live += len(g.Job(name).Leases)
			}
			if s := g.state("s").Depth.Leases + g.state("other").Depth.Leases; int(s) < live || live > 2 {
				g.Fatalf("%d attempts run at once", live)
			}
			g.Pass(0)
			if b := g.BudgetState("licence"); b.Out != int64(live) {
				g.Fatalf("%d units are out, and %d attempts run", b.Out, live)
			}
			return live
		}
		if runs() != 2 {
			t.Fatal("two may run")
		}
		for _, m := range up {
			m.Read()
		}
		x, err := g.Explain(g.Context(), g.IDs["t9"])
		if err != nil || !slices.ContainsFunc(x.Reasons, func(r rule.Reason) bool { return r.Is == rule.BudgetShort && r.Label == "licence" }) {
			t.Errorf("%+v, %v", x.Reasons, err)
		}
		at := slices.IndexFunc(up, func(m *machine) bool { return m.Held["t0"].Job != nil })
		lost := up[at]
		up = slices.Delete(up, at, at+1)
		g.beating(15*job.Second, up...) // its engine falls silent
		if s := lost.state(); s.State != gridpart.EngineLost {
			t.Fatalf("it is %s", s.State)
		}
		if runs() != 2 {
			t.Fatal("the unit of the lost attempt is not free")
		}
		done := 0
		for range 40 {
			for _, m := range up {
				m.Read()
				m.beat()
				for _, name := range append(names, "free") {
					if d, has := m.Held[name]; has && g.Job(name).LeaseOf(d.Lease.Token) >= 0 {
						m.OK(name)
						done++
					}
				}
			}
			runs()
		}
		for _, name := range names {
			g.Expect(name, job.Done)
		}
		if g.Expect("free", job.Done); done != 11 {
			t.Errorf("%d results", done)
		}
		g.Spent("licence", 0, 0)
		g.attempts("t0", "1 "+lost.name+" lost retry", "2 "+g.winner("t0")+" ok")
	})
}

// winner is the engine whose result counts.
func (g *gridRig) winner(name string) string {
	all := g.Job(name).History()
	return all[len(all)-1].Holder[len("e/"):]
}
