package grid_test

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
)

// names is a heartbeat that tells of these runs and no others.
func (m *machine) names(list ...engine.Delivery) gridpart.Heard {
	m.g.Helper()
	b := gridpart.Beat{Epoch: m.epoch, Running: []gridpart.Running{}}
	for _, d := range list {
		b.Running = append(b.Running, gridpart.Running{ID: d.Job.ID, Token: d.Lease.Token})
	}
	out, err := m.g.Part.Grid.Heartbeat(m.g.Context(), m.name, b)
	if err != nil {
		m.g.Fatal(err)
	}
	return out
}

// caller is an engine that asks call by call.
func (g *gridRig) caller(name string, slots int) *machine {
	g.Helper()
	return &machine{g: g, name: name, epoch: g.login(name, slots).Engine.Epoch}
}

func (m *machine) calls(most int) []engine.Delivery {
	m.g.Helper()
	list, err := m.g.Part.Grid.EngineLease(m.g.briefly(), m.name, m.epoch, most, nil)
	if err != nil {
		m.g.Fatal(err)
	}
	return list
}

func TestATaskWhoseAnswerWasLostIsOfferedAgain(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.tasks("s", "A", "B", "C")
		m := g.caller("w1", 2)
		kept := m.calls(1)
		lost := m.calls(1) // B: its answer does not arrive
		for range 2 {
			g.Pass(5 * job.Second)
			m.names(kept...) // the answer may be on its way
		}
		g.Pass(5*job.Second - 1)
		m.names(kept...)
		g.line("s", "C")
		g.Pass(1)
		m.beat() // says nothing of what it has
		g.counters("B", counts{"live": 1})
		if out := m.names(kept...); out.Running != 1 || out.Stop != nil {
			g.Errorf("%+v", out)
		}
		g.line("s", "B", "C") // where it stood, and nobody is to blame
		g.counters("A", counts{"live": 1})
		g.counters("B", counts{})
		g.attempts("B", "1 w1 undelivered")

		if out := m.names(append(kept, lost...)...); !slices.Equal(out.Stop, []gridpart.Running{{ID: g.IDs["B"], Token: lost[0].Lease.Token}}) {
			g.Errorf("it has what is over, and is to stop %v", out.Stop)
		}
		g.Settled(lost[0], job.OK) // it was late, and right after all
		g.Expect("B", job.Done)
		g.attempts("B", "1 w1 late")
	})
}

func TestARunThatItsEngineDoesNotNameAnyMoreIsLost(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.LossesCharged = false })
		m := g.running("B")
		m.starts("A")
		g.beating(15*job.Second, m)
		m.names() // it has a stream, over which it got all that it has
		g.counters("A", counts{"live": 1})
		m.End()
		m.names()
		g.line("s", "A", "B")
		g.counters("A", counts{"losses": 1})
		g.attempts("A", "1 w1 lost loss")
	})
}

func TestAfterAStepOfTheClockAnEngineNeedNotNameWhatItHas(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		g.tasks("s", "A")
		m := g.caller("w1", 1)
		m.calls(1)
		g.Clock.Step.Add(3_600_000)
		m.names()
		g.counters("A", counts{"live": 1})
		g.beating(30*job.Second, m)
		m.names()
		g.counters("A", counts{})
	})
}

// A task that kills each engine before that says `started` has a limit: an engine that
// comes back without it has lost it, as one that does not come back.
func TestATaskThatEachEngineComesBackWithoutIsLost(t *testing.T) {
	for name, is := range map[string]struct {
		apart bool
		runs  []string
		why   job.Reason
	}{
		"charged": {false, []string{"1 w lost retry", "2 w lost retry", "3 w lost retry"}, job.Exhausted},
		"apart":   {true, []string{"1 w lost loss", "2 w lost loss", "3 w lost loss", "4 w lost loss", "5 w lost loss"}, job.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", func(q *job.Queue) { q.Grid.LossesCharged = !is.apart })
				g.tasks("s", "A")
				for range is.runs {
					g.Expect("A", job.Ready)
					g.caller("w", 1).calls(1)
					g.Pass(job.Second)
					g.login("w", 1)
				}
				if j := g.Expect("A", job.Dead); j.Reason != is.why {
					g.Errorf("it is dead, %s", j.Reason)
				}
				g.attempts("A", is.runs...)
			})
		})
	}
}
