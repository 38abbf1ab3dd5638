package engine_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

func urgent(q *job.Queue) { q.Grid.Urgent = true }

func TestA22AnUrgentSessionTakesTheNewestRunsOfThoseAboveTheirShare(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("low", func(q *job.Queue) { q.Grid.Weight, q.Grid.EvictedPlace = 1, job.PlaceKeep })
		g.session("high", func(q *job.Queue) { q.Grid.Weight = 9 })
		m := g.engine("w", 4)
		for _, name := range []string{"L1", "L2", "H1", "H2"} {
			g.tasks(map[byte]string{'L': "low", 'H': "high"}[name[0]], name)
			g.pass(1)
			m.gets(name)
		}
		g.beating(31*job.Second, m)
		g.session("now", urgent)
		g.tasks("now", "U1")
		m.gets("L2: preempt", "U1") // the lowest weight first, the newest run first
		g.counters("L2", counts{"evictions": 1})
		g.line("low", "L2")
		g.tasks("now", "U2", "U3")
		m.gets("H2: preempt", "U2", "L1: preempt", "U3") // nobody falls below its share
		m.ok("U1", "U2", "U3")
		m.read()
		for _, name := range []string{"L1", "L2", "H2"} {
			if j := g.job(name); j.Attempts != 0 || j.Evictions != 1 || len(j.Leases) != 1 {
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
		m.gets("L")
		for i := range 5 {
			name := fmt.Sprint("U", i)
			g.tasks("now", name)
			g.beating(30*job.Second-1, m)
			m.gets()
			g.pass(1)
			m.gets("L: preempt", name)
			m.ok(name)
			m.gets("L")
		}
		g.tasks("now", "last") // the run is protected at its beginning, and then by what happened to the task
		g.beating(job.Minute, m)
		m.gets()
		m.ok("L")
		m.gets("last")
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
			up[0].gets("L")
			for i := range c.rounds {
				protected := 30 * job.Second
				if i == c.rounds-1 { // M begins after this run of L, which so ends first, and before the next one
					g.pass(1)
					protected--
					up = append(up, g.engine("w2", 1))
					g.tasks("low", "M")
					up[1].gets("M")
				}
				name := fmt.Sprint("U", i)
				g.tasks("now", name)
				g.beating(protected, up...)
				up[0].gets("L: preempt", name)
				up[0].ok(name)
				up[0].gets("L")
			}
			g.beating(job.Minute, up...)
			g.tasks("now", "last")
			engines := map[string]*machine{"L": up[0], "M": up[1]}
			engines[c.victim].gets(c.victim+": preempt", "last")
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
		m.gets("L1")
		g.pass(1)
		g.tasks("low", "L2")
		m.gets("L2")
		g.tasks("now", "U")
		g.beating(31*job.Second, m)
		m.gets()
		if _, err := g.ChangeSession(g.Context(), "now", func(q *job.Queue) error { urgent(q); return nil }, driver); err != nil {
			g.Fatal(err)
		}
		m.gets("L2: preempt", "U")
	})
}

// Who waited when the server stopped for a run to be protected no more waits on.
func TestA22AnUrgentSessionTakesItsSlotsAfterARestart(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("low")
		g.session("now", urgent)
		m := g.engine("w", 1)
		g.tasks("low", "L")
		m.gets("L")
		m.starts("L")
		g.tasks("now", "U")
		g.beating(20*job.Second, m)
		runs := []engine.Running{{ID: g.ids["L"], Token: m.held["L"].Lease.Token}}
		g.restart(0)
		m.epoch = g.login("w", 1, func(l *engine.Login) { l.Running = runs }).Machine.Epoch
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
		m.gets("L")
		g.tasks("now", "U")
		if _, err := g.ChangeSession(g.Context(), "now", func(q *job.Queue) error { q.Grid.Urgent = false; return nil }, driver); err != nil {
			g.Fatal(err)
		}
		g.beating(29*job.Second, m)
		g.tasks("low", "next")
		g.pass(job.Second)
		before := g.stats().Batches
		g.pass(job.Second)
		if n := g.stats().Batches - before; n > 5 {
			g.Errorf("%d transactions in a second in which nothing happens", n)
		}
		m.gets()
	}, func(r *rig) { r.twice = false }) // what is known of shares stays
}
