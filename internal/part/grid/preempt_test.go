package grid_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
)

func urgent(q *job.Queue) { q.Grid.Urgent = true }

// polls is a call for up to most tasks.
func (m *machine) polls(most int) (names []string) {
	m.g.Helper()
	list, err := m.g.Part.Grid.EngineLease(m.g.briefly(), m.name, m.epoch, most, nil)
	if err != nil {
		m.g.Fatal(err)
	}
	for _, d := range list {
		names = append(names, m.g.Names[d.Job.ID])
	}
	return names
}

func TestA22AnUrgentSessionTakesTheNewestRunsOfThoseAboveTheirShare(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("low", func(q *job.Queue) { q.Grid.Weight, q.Grid.EvictedPlace = 1, job.PlaceKeep })
		g.session("high", func(q *job.Queue) { q.Grid.Weight = 9 })
		m := g.engine("w", 4)
		for _, name := range []string{"L1", "L2", "H1", "H2"} {
			g.tasks(map[byte]string{'L': "low", 'H': "high"}[name[0]], name)
			g.Pass(1)
			m.Gets(name)
		}
		g.beating(31*job.Second, m)
		g.session("now", urgent)
		g.tasks("now", "U1")
		m.Gets("L2: preempt", "U1") // the lowest weight first, the newest run first
		g.counters("L2", counts{"evictions": 1})
		g.line("low", "L2")
		g.tasks("now", "U2", "U3")
		m.Gets("H2: preempt", "U2", "L1: preempt", "U3") // nobody falls below its share
		m.OK("U1", "U2", "U3")
		m.Read()
		for _, name := range []string{"L1", "L2", "H2"} {
			if j := g.Job(name); j.Attempts != 0 || j.Evictions != 1 || len(j.Leases) != 1 {
				g.Errorf("%s: %+v", name, j)
			}
		}
	})
}

func TestA23ATaskThatWasPreemptedFiveTimesIsLeftAlone(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("low", func(q *job.Queue) { q.Grid.Weight, q.Grid.EvictedPlace = 1, job.PlaceKeep })
		g.session("now", urgent)
		m := g.engine("w", 1)
		g.tasks("low", "L")
		m.Gets("L")
		for i := range 5 {
			name := fmt.Sprint("U", i)
			g.tasks("now", name)
			g.beating(30*job.Second-1, m)
			m.Gets()
			g.Pass(1)
			m.Gets("L: preempt", name)
			m.OK(name)
			m.Gets("L")
		}
		g.tasks("now", "last") // the run is protected at its beginning, and then by what happened to the task
		g.beating(job.Minute, m)
		m.Gets()
		m.OK("L")
		m.Gets("last")
	})
}

// Of two runs of a session the newer one is taken, unless its task had enough.
func TestA23AnotherRunIsTakenInPlaceOfOneThatWasPreemptedFiveTimes(t *testing.T) {
	for _, c := range []struct {
		rounds int
		victim string
		l, m   counts
	}{
		{4, "L", counts{"evictions": 5}, counts{"live": 1}},
		{5, "M", counts{"evictions": 5, "live": 1}, counts{"evictions": 1}},
	} {
		grid(t, func(g *gridRig) {
			g.session("low", func(q *job.Queue) { q.Grid.Weight, q.Grid.EvictedPlace = 1, job.PlaceKeep })
			g.session("now", urgent)
			up := []*machine{g.engine("w1", 1)}
			g.tasks("low", "L")
			up[0].Gets("L")
			for i := range c.rounds {
				protected := 30 * job.Second
				if i == c.rounds-1 { // M begins after this run of L, which so ends first, and before the next one
					g.Pass(1)
					protected--
					up = append(up, g.engine("w2", 1))
					g.tasks("low", "M")
					up[1].Gets("M")
				}
				name := fmt.Sprint("U", i)
				g.tasks("now", name)
				g.beating(protected, up...)
				up[0].Gets("L: preempt", name)
				up[0].OK(name)
				up[0].Gets("L")
			}
			g.beating(job.Minute, up...)
			g.tasks("now", "last")
			engines := map[string]*machine{"L": up[0], "M": up[1]}
			engines[c.victim].Gets(c.victim+": preempt", "last")
			g.counters("L", c.l)
			g.counters("M", c.m)
		})
	}
}

// A session that is made urgent, or gets more weight, takes its slots at once.
func TestA22ASessionThatBecomesUrgentTakesItsSlots(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("low", func(q *job.Queue) { q.Grid.EvictedPlace = job.PlaceKeep })
		g.session("now")
		m := g.engine("w", 2)
		g.tasks("low", "L1")
		m.Gets("L1")
		g.Pass(1)
		g.tasks("low", "L2")
		m.Gets("L2")
		g.tasks("now", "U")
		g.beating(31*job.Second, m)
		m.Gets()
		if _, err := g.Part.Grid.ChangeSession(g.Context(), "now", func(q *job.Queue) error { urgent(q); return nil }, driver); err != nil {
			g.Fatal(err)
		}
		m.Gets("L2: preempt", "U")
	})
}

// Who waited when the server stopped for a run to be protected no more waits on.
func TestA22AnUrgentSessionTakesItsSlotsAfterARestart(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("low")
		g.session("now", urgent)
		m := &machine{g: g, name: "w", epoch: g.login("w", 1).Engine.Epoch}
		g.tasks("low", "L")
		if got := m.polls(1); !slices.Equal(got, []string{"L"}) { // no stream comes back and asks
			g.Fatal(got)
		}
		g.tasks("now", "U")
		g.beating(20*job.Second, m)
		g.Restart(0)
		g.beating(10*job.Second, m)
		g.attempts("L", "1 w preempted eviction")
	})
}

// Once nobody is urgent any more, nobody looks for runs to be pre-empted.
func TestNothingIsLookedAtForAnUrgentSessionThatIsOver(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("low")
		g.session("now", urgent)
		m := g.engine("w", 1)
		g.tasks("low", "L")
		m.Gets("L")
		g.tasks("now", "U")
		if _, err := g.Part.Grid.ChangeSession(g.Context(), "now", func(q *job.Queue) error { q.Grid.Urgent = false; return nil }, driver); err != nil {
			g.Fatal(err)
		}
		g.beating(29*job.Second, m)
		g.tasks("low", "next")
		g.Pass(job.Second)
		before := g.Stats().Batches
		g.Pass(job.Second)
		if n := g.Stats().Batches - before; n > 5 {
			g.Errorf("%d transactions in a second in which nothing happens", n)
		}
		m.Gets()
	}, func(r *rig) { r.Twice = false }) // what is known of shares stays
}

// A run is ended only where a task of the urgent session may run in its place.
func TestA22NoRunEndsWhereTheUrgentTaskMayNotRun(t *testing.T) {
	fast := func(n *engine.NewJob) {
		n.Job.Requires = []job.Requirement{{Property: "cpu", Op: ">", Value: "1"}}
	}
	cpus := func(n string) func(*gridpart.Login) {
		return func(l *gridpart.Login) { l.Properties = map[string]string{"cpu": n} }
	}
	t.Run("by its conditions", func(t *testing.T) {
		grid(t, func(g *gridRig) {
			g.session("low")
			g.session("now", urgent)
			quick := g.engine("quick", 1, cpus("2"))
			g.tasks("low", "L1")
			quick.Gets("L1")
			g.Pass(1)
			slow := g.engine("slow", 1, cpus("1"))
			g.tasks("low", "L2")
			slow.Gets("L2")
			g.beating(31*job.Second, quick, slow)
			g.Add("now", "U", task, fast)
			slow.Gets() // its run is the newest
			quick.Gets("L1: preempt", "U")
		})
	})
	t.Run("by exclusion", func(t *testing.T) {
		grid(t, func(g *gridRig) {
			g.session("low")
			g.session("now", urgent, func(q *job.Queue) { q.Grid.Exclusion = &job.Exclusion{Failures: 1, MaxFraction: 1} })
			bad := g.engine("bad", 1)
			g.tasks("now", "U")
			bad.Gets("U")
			g.tasks("low", "L")
			bad.Fails("U")
			bad.Gets("L")
			g.beating(31*job.Second, bad)
			bad.Gets()
			if _, err := g.Part.Grid.ClearExclusions(g.Context(), "now", "", driver); err != nil {
				g.Fatal(err)
			}
			bad.Gets("L: preempt", "U")
		})
	})
	t.Run("without a stream", func(t *testing.T) {
		grid(t, func(g *gridRig) {
			g.session("low")
			g.session("now", urgent)
			m := g.engine("w", 1)
			g.tasks("low", "L")
			m.Gets("L")
			m.Close()
			g.tasks("now", "U")
			for range 7 {
				m.beat()
				g.Pass(5 * job.Second)
			}
			g.counters("L", counts{"live": 1})
			m.connect()
			m.Gets("L", "L: preempt", "U") // it is handed L back, and gives it up
		})
	})
	t.Run("by fewer slots than it had", func(t *testing.T) {
		grid(t, func(g *gridRig) {
			g.session("low")
			g.session("now", urgent)
			m := g.engine("w", 2)
			g.tasks("low", "L1", "L2")
			m.Gets("L1", "L2")
			runs := []gridpart.Running{{ID: g.IDs["L1"], Token: m.Held["L1"].Lease.Token}, {ID: g.IDs["L2"], Token: m.Held["L2"].Lease.Token}}
			m = g.engine("w", 1, func(l *gridpart.Login) { l.Running = runs })
			m.Gets("L1", "L2") // they are handed back
			g.beating(31*job.Second, m)
			g.tasks("now", "U")
			m.Gets() // the end of one of them would free no slot
			m.OK("L1")
			m.Gets("L2: preempt", "U")
		})
	})
}

// What is about to be free need not be made free: an engine that asks call by call
// has not asked yet, or a session is cancelled.
func TestA22NoMoreRunsEndThanUrgentTasksLackSlots(t *testing.T) {
	t.Run("an engine that polls", func(t *testing.T) {
		grid(t, func(g *gridRig) {
			g.session("low")
			g.session("other")
			g.session("now", urgent)
			m := &machine{g: g, name: "w", epoch: g.login("w", 3).Engine.Epoch}
			g.tasks("low", "L1", "L2")
			m.polls(2)
			g.beating(31*job.Second, m)
			g.tasks("other", "O") // its share is what low has too much
			g.tasks("now", "U")
			if got := m.polls(3); !slices.Equal(got, []string{"U"}) {
				g.Errorf("given %v", got)
			}
			g.counters("L1", counts{"live": 1})
			g.counters("L2", counts{"live": 1})
		})
	})
	t.Run("a session that is cancelled", func(t *testing.T) {
		grid(t, func(g *gridRig) {
			g.session("low", func(q *job.Queue) { q.Grid.Weight = 1 })
			g.session("gone")
			g.session("now", urgent)
			m := g.engine("w", 2)
			g.tasks("gone", "G")
			m.Gets("G")
			g.beating(20*job.Second, m)
			g.tasks("low", "L")
			m.Gets("L")
			g.tasks("now", "U") // L is protected, and G is what its session may have
			g.beating(20*job.Second, m)
			m.Gets()
			if _, err := g.Part.Grid.CancelSession(g.Context(), "gone", "", driver); err != nil {
				g.Fatal(err)
			}
			m.Gets("G: cancel", "U")
		})
	})
}

// A run ends for an urgent task only if that may take its place: not for one that a
// free slot is for, nor for one that the engine may not run.
func TestNoRunEndsForAnUrgentTaskInVain(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("low")
		g.session("now", urgent, func(q *job.Queue) { q.Grid.MaxEngines = 2 })
		m := g.engine("w", 3)
		g.tasks("low", "L1", "L2")
		g.Add("low", "L3", task, func(n *engine.NewJob) { n.Job.RunTimeout = 31 * job.Second })
		m.Gets("L1", "L2", "L3")
		late := m.Held["L3"].Lease.Token
		g.beating(31*job.Second, m)
		m.Gets("L3: timeout")
		g.tasks("now", "U1")
		g.Add("now", "U2", task, func(n *engine.NewJob) {
			n.Job.Requires = []job.Requirement{{Property: "cpu", Op: ">", Value: "1"}}
		})
		m.beat(late) // it has a free slot again
		m.Gets("U1")
		g.counters("L1", counts{"live": 1})
		g.counters("L2", counts{"live": 1})
	})
}
