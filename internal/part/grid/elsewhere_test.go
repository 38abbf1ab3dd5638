package grid_test

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
)

// Where a task that failed runs next: elsewhere if it can, and at once in any case
// (retry_elsewhere; reference section 6).

func elsewhere(q *job.Queue) { q.Grid.RetryElsewhere, q.Retry.Limit = true, job.LimitOf(50) }

// failsFirst has an engine fail A, when the others have been served after it: it
// is the first that would get the task again.
func (g *gridRig) failsFirst(m *machine, others ...*machine) {
	g.Helper()
	for _, o := range others {
		g.tasks("s", "for "+o.name)
		o.Gets("for " + o.name)
	}
	for _, o := range others {
		o.OK("for " + o.name)
	}
	m.Fails("A")
}

func TestATaskThatFailedRunsElsewhereWhereAnEngineIsFree(t *testing.T) {
	for _, set := range []bool{false, true} {
		grid(t, func(g *gridRig) {
			g.session("s", func(q *job.Queue) { elsewhere(q); q.Grid.RetryElsewhere = set })
			m := g.running()
			other := g.engine("w2", 1)
			g.failsFirst(m, other)
			if !set {
				m.Gets("A")
				return
			}
			m.Gets()
			other.Gets("A")
			g.counters("A", counts{"live": 1, "retries": 1})
			other.Fails("A") // it failed on both: whoever is asked first gets it
			m.Gets("A")
		})
	}
}

func TestAnotherHostIsBetterThanAnotherEngineOfTheHost(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", elsewhere)
		m := g.engine("w1", 1, onHost("h"))
		g.tasks("s", "A")
		m.Gets("A")
		neighbour, far := g.engine("w2", 1, onHost("h")), g.engine("w3", 1, onHost("g"))
		g.failsFirst(m, neighbour, far)
		far.Gets("A")
		m.Gets()
		neighbour.Gets()
		g.tasks("s", "B")
		m.Gets("B") // who was passed by is still the first
		far.drain()
		far.Fails("A")
		neighbour.Gets("A")
		neighbour.drain()
		neighbour.Fails("A")
		m.OK("B")
		m.Gets("A")
	})
}

func TestATaskThatFailedDoesNotWaitForAnEngine(t *testing.T) {
	for name, other := range map[string]func(g *gridRig) *machine{
		"alone": func(*gridRig) *machine { return nil },
		"busy": func(g *gridRig) *machine {
			o := g.engine("w2", 1)
			g.tasks("s", "B")
			o.Gets("B")
			return o
		},
		"draining": func(g *gridRig) *machine { o := g.engine("w2", 1); o.drain(); return o },
		"unfit": func(g *gridRig) *machine {
			return g.engine("w2", 1, func(l *gridpart.Login) { l.Properties = map[string]string{"os": "plan9"} })
		},
		"of other sessions": func(g *gridRig) *machine {
			g.session("other")
			in := g.login("w2", 1)
			s, err := g.Part.Grid.EngineStream(g.Context(), "w2", in.Engine.Epoch, 0, []string{"other"})
			if err != nil {
				g.Fatal(err)
			}
			return &machine{g.Over(s), g, "w2", in.Engine.Epoch}
		},
		"gone": func(g *gridRig) *machine { o := g.engine("w2", 1); o.End(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", elsewhere)
				m := g.engine("w1", 1, func(l *gridpart.Login) { l.Properties = map[string]string{"os": "linux"} })
				g.Add("s", "A", func(n *engine.NewJob) {
					task(n)
					n.Job.Requires = []job.Requirement{{Property: "os", Op: "!=", Value: "plan9"}}
				})
				m.Gets("A")
				o := other(g)
				m.Fails("A")
				m.Gets("A")
				if o != nil {
					o.Gets()
				}
			})
		})
	}
}

func TestATaskThatFailedDoesNotGoToAnExcludedEngine(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", elsewhere, func(q *job.Queue) { q.Grid.Exclusion = &job.Exclusion{Failures: 2, EachFailure: true, MaxFraction: 1} })
		m, out := g.engine("w1", 1), g.engine("w2", 1)
		m.drain()
		g.tasks("s", "B")
		out.Gets("B")
		out.Fails("B")
		out.Gets("B")
		out.Fails("B")
		out.Gets()
		m = g.engine("w1", 1)
		m.Gets("B")
		m.OK("B")
		g.tasks("s", "A")
		m.Gets("A")
		m.Fails("A")
		m.Gets("A")
		out.Gets()
	})
}

// A37: an engine that did not begin a task is the last to get it again, also where
// it failed on the others.
func TestATaskThatWasNotBegunGoesElsewhereWhereverItFailed(t *testing.T) {
	for _, set := range []bool{false, true} {
		grid(t, func(g *gridRig) {
			g.session("s", func(q *job.Queue) { elsewhere(q); q.Grid.RetryElsewhere, q.StartTimeout = set, 10*job.Second })
			mute := g.engine("w1", 1)
			g.tasks("s", "X")
			mute.Gets("X")
			other := g.engine("w2", 1)
			g.tasks("s", "A")
			other.Gets("A")
			mute.OK("X")
			other.Fails("A")
			mute.Gets("A")
			g.tasks("s", "Y")
			other.Gets("Y")
			other.OK("Y")
			g.beating(10*job.Second, mute, other)
			mute.Gets("A: release")
			other.Gets("A")
		})
	}
}

func TestAnEngineThatHandsATaskOnGetsTheNextOnes(t *testing.T) {
	for most, want := range map[int][]string{0: {"B", "C"}, 2: {"B"}} { // no more may run in all
		grid(t, func(g *gridRig) {
			g.session("s", elsewhere, func(q *job.Queue) { q.Retry.Curve = &job.Curve{Kind: job.CurveConstant, Delay: job.Second} })
			m := g.engine("w1", 2)
			g.tasks("s", "A")
			m.Gets("A")
			other := g.engine("w2", 1, func(l *gridpart.Login) { l.Properties = map[string]string{"is": "w2"} })
			g.Add("s", "last", task, func(n *engine.NewJob) { n.Job.Requires = []job.Requirement{{Property: "is", Op: "=", Value: "w2"}} })
			other.Gets("last")
			other.OK("last")
			m.Fails("A")
			for _, name := range []string{"B", "C"} {
				g.Add("s", name, task, func(n *engine.NewJob) { n.Job.ReadyAt = g.Now().Add(job.Second) })
			}
			g.Pass(job.Second) // all are due at once, A stands first, and w1 is first to be served
			other.Gets("A")
			m.Gets(want...)
		}, func(r *rig) { r.Opts.InFlightMax = most })
	}
}

func TestAnEngineThatAsksCallByCallGetsWhatFailedElsewhere(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", elsewhere)
		m := g.running()
		m.drain()
		m.Fails("A")
		in := g.login("w2", 2)
		list, err := g.Part.Grid.EngineLease(g.briefly(), "w2", in.Engine.Epoch, 2, nil)
		if err != nil || len(list) != 1 {
			g.Fatal(list, err)
		}
		g.held(list[0])
	})
}

func TestExplainTellsWhereATaskFailed(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", elsewhere)
		m := g.engine("w1", 1, onHost("h"))
		g.tasks("s", "A")
		m.Gets("A")
		avoids := func(want ...string) {
			g.Helper()
			x, err := g.Explain(g.Context(), g.IDs["A"])
			if err != nil || !slices.Equal(x.Avoids, want) {
				g.Errorf("%v, %v, want %v", x.Avoids, err, want)
			}
		}
		avoids()
		m.drain()
		m.Fails("A")
		avoids("h")
		g.Why("A", rule.NoFreeWorker)
		edit := func(q *job.Queue) error { q.Grid.RetryElsewhere = false; return nil }
		if _, err := g.Part.Grid.ChangeSession(g.Context(), "s", edit, driver); err != nil {
			g.Fatal(err)
		}
		avoids()
	})
}
