package grid_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// The strategies that look at more than how long the runs of their session took:
// hedge, tail, time_left and clone (reference section 4, acceptance test A12).

func strategy(list ...job.RedundancyStrategy) func(*job.Redundancy) {
	return func(r *job.Redundancy) { r.Strategies = job.RedundancyOf(list...) }
}

// history runs a session of a task type before others, so that it is known how
// long its tasks take: these many milliseconds each.
func (g *gridRig) history(took ...job.Millis) {
	g.Helper()
	g.session("earlier", redundant(), func(q *job.Queue) { q.Grid.MaxReschedules = 0 })
	m := g.engine("w0", len(took))
	names := make([]string, len(took))
	for i := range took {
		names[i] = fmt.Sprint("h", i)
	}
	g.tasks("earlier", names...)
	m.Gets(names...)
	m.starts(names...)
	at := job.Millis(0)
	for i, ms := range took {
		g.beating(ms-at, m)
		at = ms
		m.OK(names[i])
	}
	m.logoff()
}

// tells says how far the run of a task is.
func (m *machine) tells(name string, fraction float64) {
	m.g.Helper()
	list, err := m.g.Extend(m.g.Context(), []engine.Extension{{
		ID: m.g.IDs[name], Token: m.Held[name].Lease.Token, Progress: &job.RunProgress{Fraction: fraction},
	}})
	if err != nil || list[0].Err != nil {
		m.g.Fatal(err, list)
	}
}

// A12: hedge knows from other sessions what is slow; it needs no run of its own.
func TestA12HedgeFiresByTheRunsOfItsTypeInAllSessions(t *testing.T) {
	grid(t, func(g *gridRig) {
		var took []job.Millis
		for i := range job.Millis(20) { // of which the 19th is the p95
			took = append(took, 1000+100*i)
		}
		g.history(took...)
		g.session("s", redundant(strategy(job.RedundantHedge), func(r *job.Redundancy) { r.HedgeSamples = 20 }))
		slow, idle := g.engine("w1", 1), g.engine("w2", 1)
		idle.drain()
		g.tasks("s", "A")
		slow.Gets("A")
		slow.starts("A")
		idle = g.engine("w2", 1)
		g.beating(2800, slow, idle)
		idle.Gets()
		g.beating(1, slow, idle)
		idle.Gets("A")
		if s := g.state("s"); s.Redundant.Started[job.RedundantHedge] != 1 {
			g.Errorf("%+v", s.Redundant)
		}
	})
}

func TestHedgeWithoutEnoughHistoryCopiesNothing(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.history(1000, 1000, 1000)
		g.session("s", redundant(strategy(job.RedundantHedge), func(r *job.Redundancy) { r.HedgeSamples = 4 }))
		slow := g.engine("w1", 1)
		g.tasks("s", "A")
		slow.Gets("A")
		slow.starts("A")
		idle := g.engine("w2", 1)
		g.beating(job.Minute, slow, idle)
		idle.Gets()
	})
}

// A12: tail copies at once what runs when nearly all is done and nothing waits.
func TestA12TailFiresWhenNineOfTenAreDone(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", redundant(strategy(job.RedundantTail)))
		slow, idle := g.sample()
		slow.Read()
		idle.Gets("t9")
		if j := g.counters("t9", counts{"live": 2, "reschedules": 1}); j.Leases[1].Since-j.Leases[0].Started > 12*job.Second+5 {
			g.Errorf("the copy began at %d, the run at %d", j.Leases[1].Since, j.Leases[0].Started)
		}
	})
}

// timed has a session whose tasks take 10 seconds, and four that run: as the
// sample of LATE in the reference, at a tenth of its times.
func (g *gridRig) timed(edit func(*job.Redundancy)) (m, idle *machine) {
	g.Helper()
	g.session("s", redundant(strategy(job.RedundantTimeLeft), edit))
	m = g.engine("w1", 9)
	g.tasks("s", "d0", "d1", "d2", "d3", "d4", "A", "B", "C", "D")
	m.Gets("d0", "d1", "d2", "d3", "d4", "A", "B", "C", "D")
	m.starts("d0", "d1", "d2", "d3", "d4", "C")
	g.beating(job.Second, m)
	m.starts("A")
	g.beating(3*job.Second, m)
	m.starts("B")
	g.beating(2*job.Second, m)
	m.starts("D")
	g.beating(4*job.Second, m)
	m.OK("d0", "d1", "d2", "d3", "d4")
	return m, g.engine("w2", 2)
}

// A12: of those that tell their progress the one that ends last is copied, at the
// millisecond from which it has more left than twice what a new run takes.
func TestA12TimeLeftFiresForTheRunThatEndsLast(t *testing.T) {
	grid(t, func(g *gridRig) { // B ran 6 s and has 24 s left, a new run takes 10 s
		m, idle := g.timed(func(*job.Redundancy) {})
		m.tells("A", 0.9)
		m.tells("C", 0.5)
		m.tells("D", 0.8)
		idle.Gets()
		m.tells("B", 0.2)
		idle.Gets()
		g.beating(job.Second, m, idle) // runs are looked at once a second
		idle.Gets("B")
		g.counters("B", counts{"live": 2, "reschedules": 1})
		if s := g.state("s"); s.Redundant.Started[job.RedundantTimeLeft] != 1 {
			g.Errorf("%+v", s.Redundant)
		}
	})
	grid(t, func(g *gridRig) { // B has 24 s left at 6 s, and more than 28 s above an age of 7 s
		m, idle := g.timed(func(r *job.Redundancy) { r.LeftFactor = 2.8 })
		m.tells("B", 0.2)
		idle.Gets()
		g.beating(job.Second, m, idle) // exactly 28 s left
		idle.Gets()
		g.beating(1, m, idle)
		idle.Gets("B")
	})
}

func TestTimeLeftForgetsRunsThatEndedAndThoseThatHaveACopy(t *testing.T) {
	grid(t, func(g *gridRig) {
		m, idle := g.timed(func(*job.Redundancy) {})
		m.tells("B", 0.2)
		idle.Gets("B")
		m.tells("C", 0.1)
		m.OK("C")
		for range 5 {
			g.beating(job.Second, m, idle)
			m.tells("B", 0.2)
			m.tells("D", 0.9)
		}
		idle.Gets()
		if s := g.state("s"); s.Redundant.Started[job.RedundantTimeLeft] != 1 {
			g.Errorf("%+v", s.Redundant)
		}
	})
}

// A12: clone copies the tasks of a small session as they begin, once nothing
// waits for the slots. By the formula of Dolly: one run in twenty of the type is
// slow, so ten tasks have two runs each.
func TestA12CloneCopiesASmallSessionFromTheStart(t *testing.T) {
	slow := append(make([]job.Millis, 0, 20), 30_000)
	for range 19 {
		slow = append(slow, 10_000)
	}
	slow[0], slow[19] = slow[19], slow[0]
	fast := func(r *job.Redundancy) { r.HedgeSamples = 20 }
	for name, c := range map[string]struct {
		tasks, want int
		edit        func(*job.Redundancy)
	}{
		"ten tasks":          {10, 2, fast},
		"five tasks":         {5, 2, fast},
		"more than a few":    {11, 1, fast},
		"too short a budget": {10, 1, func(r *job.Redundancy) { fast(r); r.SecondsBurst = 99 * job.Second }},
		"too short a past":   {10, 1, func(r *job.Redundancy) { r.HedgeSamples = 21 }},
	} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.history(slow...)
				g.session("s", redundant(func(r *job.Redundancy) { r.SecondsBurst = 100 * job.Second }, strategy(job.RedundantClone), c.edit))
				g.session("other")
				x, y := g.engine("w1", c.tasks), g.engine("w2", c.tasks)
				y.drain()
				var names []string
				for i := range c.tasks {
					names = append(names, fmt.Sprint("t", i))
				}
				g.tasks("s", names...)
				x.Gets(names...)
				g.tasks("other", "o") // which waits for a slot, too
				y = g.engine("w2", c.tasks)
				if c.want == 1 {
					y.Gets("o")
					return
				}
				got := y.Read()
				if slices.Sort(got); !slices.Equal(got, append([]string{"o"}, names[:c.tasks-1]...)) { // a slot is kept for what waits
					g.Fatalf("the second engine has %v", got)
				}
				g.counters("t0", counts{"live": 2, "reschedules": 1})
				y.OK("t0", "o")
				y.Gets(names[c.tasks-1])
				x.Gets("t0: supersede")
			})
		})
	}
}
