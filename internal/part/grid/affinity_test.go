package grid_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
)

// Task affinity (reference section 6, acceptance test A24).

func affine(q *job.Queue) { q.Grid.AffinityWait = 10 * job.Second }

// tagged submits tasks with a tag, one by one.
func (g *gridRig) tagged(session, tag string, names ...string) {
	g.Helper()
	for _, name := range names {
		g.Add(session, name, task, tagOf(tag))
	}
}

func tagOf(tag string) func(*engine.NewJob) {
	return func(n *engine.NewJob) { n.Job.Extras = &job.Extras{Affinity: &job.Affinity{Tag: tag}} }
}

// holding has an engine that ran the tag "x" and is busy with another task, and
// one that is idle.
func (g *gridRig) holding(edits ...func(*job.Queue)) (holder, idle *machine) {
	g.Helper()
	g.session("s", append([]func(*job.Queue){affine}, edits...)...)
	holder = g.engine("w1", 1)
	g.tagged("s", "x", "first")
	holder.Gets("first")
	g.tasks("s", "other")
	holder.OK("first")
	holder.Gets("other")
	return holder, g.engine("w2", 1)
}

func TestA24ATaskWaitsForTheEngineThatRanItsTag(t *testing.T) {
	for name, c := range map[string]struct {
		busy job.Millis
		on   string
	}{"busy for 4 s": {4 * job.Second, "w1"}, "busy for 12 s": {12 * job.Second, "w2"}} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				holder, idle := g.holding()
				g.tagged("s", "x", "A")
				g.Why("A", rule.KeptForTag)
				since := g.Clock.Wall()
				if got := g.obstacle("A"); got.Label != "x" || got.Until != since+10*job.Second {
					g.Errorf("%+v at %d", got, since)
				}
				if c.on == "w1" {
					g.beating(c.busy, holder, idle)
					idle.Gets()
					holder.OK("other")
					holder.Gets("A")
					return
				}
				g.beating(10*job.Second-1, holder, idle)
				idle.Gets()
				g.beating(1, holder, idle)
				idle.Gets("A")
				g.beating(2*job.Second, holder, idle)
				holder.OK("other")
				holder.Gets()
			})
		})
	}
}

func TestTasksOfATagFollowEachOtherOnOneEngine(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", affine)
		x, y := g.engine("w1", 1), g.engine("w2", 1)
		g.tagged("s", "a", "a1", "a2", "a3")
		g.tagged("s", "b", "b1", "b2")
		x.Gets("a1")
		y.Gets("b1")
		g.Why("a2", rule.KeptForTag)
		g.Why("a3", rule.BehindTag)
		if got := g.obstacle("a3"); got.Head == nil || got.Head.ID != g.IDs["a2"] {
			g.Errorf("%+v", got)
		}
		for range 3 { // each wait begins when a task is the next of its tag
			g.beating(4*job.Second, x, y)
		}
		x.Gets() // it is busy, and after ten seconds anyone may have them
		y.OK("b1")
		y.Gets("a2") // the first in line
		g.tagged("s", "b", "b3")
		x.OK("a1")
		x.Gets("a3") // both ran the tag
		y.OK("a2")
		y.Gets("b2")
		x.OK("a3")
		x.Gets()
		y.OK("b2")
		y.Gets("b3")
	})
}

// The wait of a task begins when it becomes the next of its tag, not before.
func TestTheWaitBeginsWithTheTurnOfATask(t *testing.T) {
	grid(t, func(g *gridRig) {
		holder, idle := g.holding()
		g.tagged("s", "x", "A", "B")
		holder.OK("other")
		holder.Gets("A") // and B is next, 8 s later
		g.beating(8*job.Second, holder, idle)
		holder.OK("A")
		holder.Gets("B")
		g.tagged("s", "x", "C", "D")
		g.beating(10*job.Second, holder, idle)
		idle.Gets("C")
		idle.OK("C")
		idle.Gets("D") // it ran the tag now, too
	})
}

func TestAnEngineThatIsGoneIsNotWaitedFor(t *testing.T) {
	for name, leave := range map[string]func(*machine){"logoff": (*machine).logoff, "drain": (*machine).drain} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				holder, idle := g.holding()
				holder.OK("other")
				leave(holder)
				g.tagged("s", "x", "A")
				idle.Gets("A")
			})
		})
	}
}

// What comes back is for anyone: the retry of a task does not wait for the engine
// that failed it.
func TestATaskWithATagThatComesBackIsForAnyone(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", affine)
		x := g.engine("w1", 1)
		g.tagged("s", "a", "A", "B")
		x.Gets("A")
		x.drain()
		y := g.engine("w2", 1)
		y.Gets()
		x.Fails("A")
		y.Gets("A")
		y.OK("A")
		y.Gets("B")
	})
}

func TestANextTaskThatIsCancelledMakesRoomForTheOneBehindIt(t *testing.T) {
	grid(t, func(g *gridRig) {
		holder, idle := g.holding()
		g.tagged("s", "x", "A", "B", "C")
		g.Operate("B", cancel) // which stands aside
		g.Operate("A", cancel)
		g.Why("C", rule.KeptForTag)
		g.Operate("A", rule.Command{Verb: rule.Revive})
		g.Why("A", rule.BehindTag)
		holder.OK("other")
		holder.Gets("C")
		holder.OK("C")
		holder.Gets("A")
		idle.Gets()
	})
}

func TestAffinitySurvivesARestart(t *testing.T) {
	grid(t, func(g *gridRig) {
		holder, idle := g.holding()
		g.tagged("s", "x", "A", "B")
		holder.OK("other")
		holder.Gets("A")
		for _, again := range []func(){func() { g.Restart(job.Second) }, g.PowerCut} {
			again()
			idle.epoch = g.login("w2", 1).Engine.Epoch
			idle.connect()
			idle.Gets()
			g.Why("B", rule.KeptForTag)
			holder.epoch = g.login("w1", 1, func(l *gridpart.Login) {
				l.Running = []gridpart.Running{{ID: g.IDs["A"], Token: holder.Held["A"].Lease.Token}}
			}).Engine.Epoch
			held := holder.Held
			holder.connect()
			holder.Held = held
			holder.Gets("A") // as before
		}
		holder.OK("A")
		holder.Gets("B")
		idle.Gets()
	})
}

func TestTagsAreNotLookedAtWithoutAWait(t *testing.T) {
	grid(t, func(g *gridRig) {
		_, idle := g.holding(func(q *job.Queue) { q.Grid.AffinityWait = 0 })
		g.tagged("s", "x", "A")
		idle.Gets("A")
	})
}

func TestATaskWithATagWaitsForWhatItNeedsFirst(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", affine)
		g.Add("s", "A", needs("1", 0))
		g.Add("s", "B", needs("2", 0, "1"), tagOf("x"))
		g.Add("s", "C", needs("3", 0), tagOf("x"))
		m := g.engine("w1", 1)
		m.Gets("A")
		n := g.engine("w2", 1)
		n.Gets("C")
		m.OK("A")
		g.Why("B", rule.KeptForTag)
		m.Gets()
		n.OK("C")
		n.Gets("B")
	})
}

func TestTagsOfASessionAreForgottenWithIt(t *testing.T) {
	grid(t, func(g *gridRig) {
		holder, _ := g.holding(func(q *job.Queue) { q.Grid.Retain = job.Minute })
		holder.OK("other")
		if n := g.Rows(job.Affinities); n != 1 {
			g.Fatalf("%d rows", n)
		}
		if _, err := g.Part.Grid.CloseSession(g.Context(), "s", driver); err != nil {
			g.Fatal(err)
		}
		g.Pass(2 * job.Minute)
		if n := g.Rows(job.Affinities); n != 0 {
			g.Errorf("%d rows are left", n)
		}
	})
}
