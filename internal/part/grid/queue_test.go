package grid_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// The vectors V1 to V13 of the reference, section 2, and of vectors/grid.json.

// queued are the names of the tasks in line, front to back.
func (g *gridRig) queued(session string) (names []string) {
	g.Helper()
	err := g.Mem.View(g.Context(), func(v store.Reader) error {
		list, err := v.Ready([]string{session}, rule.Seeker{Holder: "nobody", Engine: true}, 1000)
		for _, j := range list {
			names = append(names, g.Names[j.ID])
		}
		return err
	})
	if err != nil {
		g.Fatal(err)
	}
	return names
}

// running has A run on an engine, and the others wait.
func (g *gridRig) running(others ...string) *machine {
	g.Helper()
	m := g.engine("w1", 1)
	g.tasks("s", append([]string{"A"}, others...)...)
	m.Gets("A")
	return m
}

// copied has A run on two engines: V4.
func (g *gridRig) copied() (first, second *machine) {
	g.Helper()
	first = g.running()
	g.beating(100*job.Second, first)
	g.Operate("A", rule.Command{Verb: rule.Offer})
	g.line("s", "A")
	g.counters("A", counts{"live": 1, "reschedules": 1})
	second = g.engine("w2", 1)
	second.Gets("A")
	g.counters("A", counts{"live": 2, "reschedules": 1})
	g.line("s")
	return first, second
}

func TestV1AnErrorPutsTheTaskAtTheFront(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.running("B", "C")
		m.drain()
		m.Fails("A")
		g.line("s", "A", "B", "C")
		g.counters("A", counts{"retries": 1})
	})
}

func TestV2ALogoffPutsTheTaskAtTheBackAndChargesNothing(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.running("B", "C")
		m.logoff()
		g.line("s", "B", "C", "A")
		g.counters("A", counts{"evictions": 1})
		m.Gets("A: evict")
	})
}

func TestV3ALogoffWithRescheduleFirstPutsTheTaskAtTheFront(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.EvictedPlace, q.Grid.CopyPlace = job.PlaceFront, job.PlaceFront })
		g.running("B", "C").logoff()
		g.line("s", "A", "B", "C")
		g.counters("A", counts{"evictions": 1})
	})
}

func TestV4AStrategyPutsACopyInLineAndAnotherEngineTakesIt(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s")
		_, _ = g.copied() // which wants it, step by step
		g.attempts("A")
		g.Expect("A", job.Leased)
	})
}

func TestV5TheFirstResultWinsAndTheOtherEngineIsTold(t *testing.T) { // A1, V4
	grid(t, func(g *gridRig) {
		g.session("s")
		first, second := g.copied()
		second.OK("A")
		g.Expect("A", job.Done)
		g.counters("A", counts{"reschedules": 1})
		first.Gets("A: supersede")
	})
}

func TestA8AnErrorOfTheLoserCountsNowhere(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.Exclusion = &job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 1} })
		first, second := g.copied()
		second.OK("A")
		first.Gets("A: supersede")
		before := g.Stats()
		g.Refused(job.Superseded, engine.Settle{ID: g.IDs["A"], Token: first.Held["A"].Lease.Token, Outcome: job.Retried})
		after := g.Stats()
		before.Batches = after.Batches
		if before != after {
			t.Errorf("it counted: %+v, before %+v", after, before)
		}
		g.counters("A", counts{"reschedules": 1})
		g.attempts("A", "1 w1 superseded", "2 w2 ok")
		if s := g.state("s"); len(s.Strikes) != 0 || s.Done != 1 || s.Failed != 0 {
			t.Errorf("%+v", s.Session)
		}
		g.tasks("s", "B", "C") // who lost is as welcome as who won
		first.beat()
		if got := append(first.Read(), second.Read()...); len(got) != 2 {
			t.Errorf("given out: %v", got)
		}
	})
}

func TestV6WhileAnotherCopyLivesAnErrorPutsNothingInLine(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s")
		first, second := g.copied()
		first.Fails("A")
		g.line("s")
		g.counters("A", counts{"live": 1, "reschedules": 1, "retries": 1})
		second.OK("A")
		g.Expect("A", job.Done)
	})
}

func TestV7TheTaskDiesAtTheFailureAboveItsRetries(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.running()
		for range 2 {
			m.Fails("A")
			m.Gets("A")
		}
		g.counters("A", counts{"retries": 2, "live": 1})
		m.Fails("A")
		if j := g.counters("A", counts{"retries": 3}); j.State != job.Dead || j.Reason != job.Exhausted {
			g.Errorf("%s, %s", j.State, j.Reason)
		}
	})
}

func TestV8TheLastLiveCopyDecides(t *testing.T) { // A1
	for _, last := range []job.State{job.Dead, job.Done} {
		grid(t, func(g *gridRig) {
			g.session("s")
			m := g.running()
			for range 2 {
				m.Fails("A")
				m.Gets("A")
			}
			g.Operate("A", rule.Command{Verb: rule.Offer})
			other := g.engine("w2", 1)
			other.Gets("A")
			m.Fails("A")
			g.counters("A", counts{"retries": 3, "live": 1, "reschedules": 1})
			g.Expect("A", job.Leased)
			if last == job.Done {
				other.OK("A")
			} else {
				other.Fails("A")
			}
			g.Expect("A", last)
		})
	}
}

// However the last copy ends, no run begins above max_retries (A42, I2): a task
// that is past its limit is given up when its engine drains, logs off, vanishes
// uncharged, or its run is not begun in time.
func TestV8ATaskPastItsRetriesIsNotRunAgainWhenItsLastCopyIsGivenBack(t *testing.T) {
	for how, end := range map[string]func(g *gridRig, other *machine){
		"given back": func(g *gridRig, other *machine) { g.Settled(other.Held["A"], job.Released) },
		"logged off": func(_ *gridRig, other *machine) { other.logoff() },
		"lost":       func(g *gridRig, other *machine) { other.End(); g.Pass(gridpart.EngineLostAfter + job.Second) },
		"logged in anew": func(g *gridRig, other *machine) {
			g.login(other.name, 1)
		},
		"not begun": func(g *gridRig, _ *machine) { g.Pass(10 * job.Second) },
	} {
		t.Run(how, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", func(q *job.Queue) {
					q.Grid.LossesCharged = false
					if how == "not begun" {
						q.StartTimeout = 10 * job.Second
					}
				})
				m := g.running()
				for range 2 {
					m.Fails("A")
					m.Gets("A")
				}
				g.Operate("A", rule.Command{Verb: rule.Offer})
				other := g.engine("w2", 1)
				other.Gets("A")
				m.Fails("A")
				g.Expect("A", job.Leased)
				end(g, other)
				if j := g.Expect("A", job.Dead); j.Reason != job.Exhausted || j.Attempts != 3 {
					t.Errorf("%s after %d retries", j.Reason, j.Attempts)
				}
				if s := g.state("s"); s.Failed != 1 || s.Open() != 0 {
					t.Errorf("%+v", s.Session)
				}
			})
		})
	}
}

func TestV9AResultTakesTheCopyOutOfLine(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.running()
		g.Operate("A", rule.Command{Verb: rule.Offer})
		g.line("s", "A")
		m.OK("A")
		g.line("s")
		g.engine("w2", 1).Gets()
	})
}

func TestV10AtTheLimitThereAreNoMoreCopies(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Grid.MaxCopies = 5 })
		_, _ = g.copied()
		_, err := enginetest.Operate(g.Context(), g.Engine, g.IDs["A"], rule.Command{Verb: rule.Offer})
		if job.KindOf(err) != job.OverLimit {
			g.Errorf("%v", err)
		}
		g.counters("A", counts{"live": 2, "reschedules": 1})
	})
}

// V10: a strategy that fires again, and an overrun, are counted.
func TestV10AtTheLimitWhatFiresAgainIsCounted(t *testing.T) {
	limited := func(g *gridRig) uint64 {
		tally, _, _ := g.Part.Grid.Measure(g.Context())
		return tally.Suppressed["limit"]
	}
	grid(t, func(g *gridRig) { // an overrun with on_timeout: reschedule
		g.session("s", func(q *job.Queue) {
			q.RunTimeout, q.Grid.OnTimeout, q.Grid.MaxCopies, q.Grid.MaxReschedules = 10*job.Second, job.TimeoutReschedule, 5, 1
		})
		g.tasks("s", "A")
		first := g.engine("w1", 1)
		first.Gets("A")
		first.starts("A")
		second := g.engine("w2", 1)
		g.beating(10*job.Second, first, second)
		second.Gets("A")
		second.starts("A")
		if n := limited(g); n != 0 {
			g.Errorf("the first copy was suppressed %d times", n)
		}
		g.beating(10*job.Second, first, second)
		g.beating(10*job.Second, first, second)
		g.counters("A", counts{"live": 2, "reschedules": 1})
		if n := limited(g); n != 1 {
			g.Errorf("%d suppressed", n)
		}
	})
	grid(t, func(g *gridRig) { // a strategy
		g.session("s", redundant(func(r *job.Redundancy) { r.MinSamples = 1 }), func(q *job.Queue) {
			q.Grid.MaxCopies, q.Grid.MaxReschedules = 5, 1
		})
		slow, idle := g.sample()
		g.beating(30*job.Second, slow, idle)
		g.counters("t9", counts{"live": 2, "reschedules": 1})
		if n := limited(g); n != 1 || g.state("s").Redundant.Suppressed["limit"] != n {
			g.Errorf("%d suppressed, %+v", n, g.state("s").Redundant)
		}
	})
}

func TestV11EvictionsAndErrorsCountApart(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s")
		m := g.running()
		for range 3 {
			m.logoff()
			m = g.engine("w1", 1)
			m.Gets("A")
		}
		for range 2 {
			m.Fails("A")
			m.Gets("A")
		}
		m.OK("A")
		g.Expect("A", job.Done)
		g.counters("A", counts{"retries": 2, "evictions": 3})
	})
}

func TestV12SeveralAtTheFrontStandBySeqOrLifo(t *testing.T) { // A1
	for order, want := range map[job.FrontOrder][]string{job.FrontLIFO: {"B", "A", "D"}, job.FrontBySeq: {"A", "B", "D"}} {
		grid(t, func(g *gridRig) {
			g.session("s", func(q *job.Queue) { q.FrontOrder = order })
			m := g.engine("w1", 2)
			g.tasks("s", "A", "B", "D")
			m.Gets("A", "B")
			m.drain()
			m.Fails("A")
			m.Fails("B")
			g.line("s", want...)
		})
	}
}

func TestV13ACopyWhoseEngineLogsOffIsNotPutInLineAgain(t *testing.T) { // A1
	grid(t, func(g *gridRig) {
		g.session("s")
		_, second := g.copied()
		second.logoff()
		g.line("s")
		g.counters("A", counts{"live": 1, "reschedules": 1, "evictions": 1})
	})
}
