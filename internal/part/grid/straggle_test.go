package grid_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// Redundancy driven by the clock of the engine (reference section 4, acceptance
// tests A12, A15, A17).

func redundant(edits ...func(*job.Redundancy)) func(*job.Queue) {
	return func(q *job.Queue) {
		red := job.DefaultRedundancy()
		for _, edit := range edits {
			edit(&red)
		}
		q.Grid.Redundancy = &red
	}
}

// sample has a session of ten tasks, nine of them done as in the reference: 8, 9,
// 9, 10, 10, 10, 11, 11, 12 seconds. The tenth runs for 12 seconds then.
func (g *gridRig) sample() (slow, idle *machine) {
	g.Helper()
	slow = g.engine("w1", 10)
	idle = g.engine("w2", 2)
	idle.drain()
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint("t", i))
	}
	g.tasks("s", names...)
	slow.Gets(names...)
	slow.starts(names...)
	at := job.Millis(0)
	for i, secs := range []job.Millis{8, 9, 9, 10, 10, 10, 11, 11, 12} {
		g.beating(secs*job.Second-at, slow, idle)
		at = secs * job.Second
		slow.OK(names[i])
	}
	idle = g.engine("w2", 2)
	return slow, idle
}

func TestA12AStragglerIsCopiedAtTheMillisecondAboveItsThreshold(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*job.Redundancy)
		above job.Millis
	}{
		"median 2":        {func(*job.Redundancy) {}, 20_000},
		"median 1.5":      {func(r *job.Redundancy) { r.MedianFactor = 1.5 }, 15_000},
		"median 3 of 0.9": {func(r *job.Redundancy) { r.MedianFactor, r.MedianDone = 3, 0.9 }, 30_000},
		"mean 2": {func(r *job.Redundancy) {
			r.Strategies, r.MeanFactor = job.RedundancyOf(job.RedundantMean), 2
		}, 20_000},
		"mean 3": {func(r *job.Redundancy) {
			r.Strategies = job.RedundancyOf(job.RedundantMean)
		}, 30_000},
		"stddev 3": {func(r *job.Redundancy) {
			r.Strategies = job.RedundancyOf(job.RedundantStddev)
		}, 13_464},
	} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", redundant(c.edit))
				slow, idle := g.sample()
				g.beating(c.above-12*job.Second, slow, idle)
				idle.Gets()
				g.counters("t9", counts{"live": 1})
				g.beating(1, slow, idle)
				idle.Gets("t9")
				g.counters("t9", counts{"live": 2, "reschedules": 1})
				idle.OK("t9")
				slow.Gets("t9: supersede")
				s := g.is("s", job.SessionOpen)
				if s.Done != 10 || s.Redundant.Started != startedBy(c.edit) || s.Redundant.Useful == 0 {
					g.Errorf("%+v, %+v", s.Session, s.Redundant)
				}
			})
		})
	}
}

func startedBy(edit func(*job.Redundancy)) (n [job.RedundancyStrategies]uint64) {
	red := job.DefaultRedundancy()
	edit(&red)
	for s := range job.RedundancyStrategies {
		if red.Strategies.Has(s) {
			n[s] = 1
		}
	}
	return n
}

func TestAStragglerIsFoundAfterARestart(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", redundant(func(r *job.Redundancy) {
			r.Strategies, r.MinSamples = job.RedundancyOf(job.RedundantTail, job.RedundantMedian), 1
		}))
		slow, _ := g.sample() // the tail is copied at once
		g.counters("t9", counts{"live": 2, "reschedules": 1})
		_ = slow
	})
}

func TestA15CopiesWaitForIdleSlots(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", redundant())
		g.session("other")
		slow, idle := g.sample()
		slow.drain()
		g.tasks("other", "o1", "o2", "o3")
		idle.Gets("o1", "o2")
		g.beating(30*job.Second, slow, idle)
		g.counters("t9", counts{"live": 1})
		if s := g.state("s"); s.Redundant.Suppressed["busy"] == 0 {
			g.Errorf("%+v", s.Redundant)
		}
		g.Pass(0)
		idle.OK("o1", "o2")
		idle.Gets("o3", "t9") // fresh work first
	})
}

func TestWithoutRedundancyNothingIsCopied(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s")
		slow, idle := g.sample()
		g.beating(job.Minute, slow, idle)
		g.counters("t9", counts{"live": 1})
	})
}

func TestA17CopiesSpendNoMoreThanTheyMay(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", redundant(func(r *job.Redundancy) { r.SecondsBurst, r.SecondsShare, r.MedianFactor = 12*job.Second, 0.01, 1.5 }))
		slow, idle := g.sample()
		g.beating(3*job.Second+1, slow, idle)
		idle.Gets("t9")
		g.beating(job.Minute, slow, idle)
		idle.Gets("t9: withdraw")
		g.counters("t9", counts{"live": 1, "reschedules": 1, "evictions": 1})
		s := g.state("s")
		if s.Redundant.Withdrawn != 1 || s.Redundant.Seconds > 12*job.Second+s.Redundant.Useful/100 {
			g.Errorf("%+v", s.Redundant)
		}
		slow.OK("t9")
		g.Expect("t9", job.Done)
	})
}
