package engine_test

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
		o.gets("for " + o.name)
	}
	for _, o := range others {
		o.ok("for " + o.name)
	}
	m.fail("A")
}

func TestATaskThatFailedRunsElsewhereWhereAnEngineIsFree(t *testing.T) {
	for _, set := range []bool{false, true} {
		grid(t, func(g *gridRig) {
			g.session("s", func(q *job.Queue) { elsewhere(q); q.Grid.RetryElsewhere = set })
			m := g.running()
			other := g.engine("w2", 1)
			g.failsFirst(m, other)
			if !set {
				m.gets("A")
				return
			}
			m.gets()
			other.gets("A")
			g.counters("A", counts{"live": 1, "retries": 1})
			other.fail("A") // it failed on both: whoever is asked first gets it
			m.gets("A")
		})
	}
}

func TestAnotherHostIsBetterThanAnotherEngineOfTheHost(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", elsewhere)
		m := g.engine("w1", 1, onHost("h"))
		g.tasks("s", "A")
		m.gets("A")
		neighbour, far := g.engine("w2", 1, onHost("h")), g.engine("w3", 1, onHost("g"))
		g.failsFirst(m, neighbour, far)
		far.gets("A")
		m.gets()
		neighbour.gets()
		g.tasks("s", "B")
		m.gets("B") // who was passed by is still the first
		far.drain()
		far.fail("A")
		neighbour.gets("A")
		neighbour.drain()
		neighbour.fail("A")
		m.ok("B")
		m.gets("A")
	})
}

func TestATaskThatFailedDoesNotWaitForAnEngine(t *testing.T) {
	for name, other := range map[string]func(g *gridRig) *machine{
		"alone": func(*gridRig) *machine { return nil },
		"busy": func(g *gridRig) *machine {
			o := g.engine("w2", 1)
			g.tasks("s", "B")
			o.gets("B")
			return o
		},
		"draining": func(g *gridRig) *machine { o := g.engine("w2", 1); o.drain(); return o },
		"unfit": func(g *gridRig) *machine {
			return g.engine("w2", 1, func(l *gridpart.Login) { l.Properties = map[string]string{"os": "plan9"} })
		},
		"of other sessions": func(g *gridRig) *machine {
			g.session("other")
			in := g.login("w2", 1)
			s, err := g.part.Grid.MachineStream(g.Context(), "w2", in.Machine.Epoch, 0, []string{"other"})
			if err != nil {
				g.Fatal(err)
			}
			return &machine{&stream{s, g.rig, map[string]engine.Delivery{}}, g, "w2", in.Machine.Epoch}
		},
		"gone": func(g *gridRig) *machine { o := g.engine("w2", 1); o.close(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", elsewhere)
				m := g.engine("w1", 1, func(l *gridpart.Login) { l.Properties = map[string]string{"os": "linux"} })
				g.put("s", "A", func(n *engine.NewJob) {
					task(n)
					n.Job.Requires = []job.Requirement{{Property: "os", Op: "!=", Value: "plan9"}}
				})
				m.gets("A")
				o := other(g)
				m.fail("A")
				m.gets("A")
				if o != nil {
					o.gets()
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
		out.gets("B")
		out.fail("B")
		out.gets("B")
		out.fail("B")
		out.gets()
		m = g.engine("w1", 1)
		m.gets("B")
		m.ok("B")
		g.tasks("s", "A")
		m.gets("A")
		m.fail("A")
		m.gets("A")
		out.gets()
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
			mute.gets("X")
			other := g.engine("w2", 1)
			g.tasks("s", "A")
			other.gets("A")
			mute.ok("X")
			other.fail("A")
			mute.gets("A")
			g.tasks("s", "Y")
			other.gets("Y")
			other.ok("Y")
			g.beating(10*job.Second, mute, other)
			mute.gets("A: release")
			other.gets("A")
		})
	}
}

func TestAnEngineThatHandsATaskOnGetsTheNextOnes(t *testing.T) {
	for most, want := range map[int][]string{0: {"B", "C"}, 2: {"B"}} { // no more may run in all
		grid(t, func(g *gridRig) {
			g.session("s", elsewhere, func(q *job.Queue) { q.Retry.Curve = &job.Curve{Kind: job.CurveConstant, Delay: job.Second} })
			m := g.engine("w1", 2)
			g.tasks("s", "A")
			m.gets("A")
			other := g.engine("w2", 1, func(l *gridpart.Login) { l.Properties = map[string]string{"is": "w2"} })
			g.put("s", "last", task, func(n *engine.NewJob) { n.Job.Requires = []job.Requirement{{Property: "is", Op: "=", Value: "w2"}} })
			other.gets("last")
			other.ok("last")
			m.fail("A")
			for _, name := range []string{"B", "C"} {
				g.put("s", name, task, func(n *engine.NewJob) { n.Job.ReadyAt = g.Now().Add(job.Second) })
			}
			g.Pass(job.Second) // all are due at once, A stands first, and w1 is first to be served
			other.gets("A")
			m.gets(want...)
		}, func(r *rig) { r.Opts.InFlightMax = most })
	}
}

func TestAnEngineThatAsksCallByCallGetsWhatFailedElsewhere(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", elsewhere)
		m := g.running()
		m.drain()
		m.fail("A")
		in := g.login("w2", 2)
		list, err := g.part.Grid.MachineLease(g.briefly(), "w2", in.Machine.Epoch, 2, nil)
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
		m.gets("A")
		avoids := func(want ...string) {
			g.Helper()
			x, err := g.Explain(g.Context(), g.ids["A"])
			if err != nil || !slices.Equal(x.Avoids, want) {
				g.Errorf("%v, %v, want %v", x.Avoids, err, want)
			}
		}
		avoids()
		m.drain()
		m.fail("A")
		avoids("h")
		g.why("A", rule.NoFreeWorker)
		edit := func(q *job.Queue) error { q.Grid.RetryElsewhere = false; return nil }
		if _, err := g.part.Grid.ChangeSession(g.Context(), "s", edit, driver); err != nil {
			g.Fatal(err)
		}
		avoids()
	})
}
