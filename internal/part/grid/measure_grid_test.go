package grid_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
)

// What happens to tasks is counted once each, by the words of the reference
// (section 8, metrics).
func TestWhatHappensToTasksIsCounted(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.RunTimeout = 40 * job.Second })
		g.tasks("s", "fails", "overruns", "lost", "drained", "copied", "left", "given up")
		m := g.engine("w1", 1)
		next := func(m *machine, name string) { g.Helper(); m.Gets(name); m.starts(name) }

		next(m, "fails")
		m.Fails("fails")
		next(m, "fails")
		m.OK("fails")

		next(m, "overruns")
		g.beating(40*job.Second, m)
		m.Gets("overruns: timeout")
		m.beat(m.Held["overruns"].Lease.Token)
		next(m, "overruns")
		m.OK("overruns")

		next(m, "lost")
		m.End()
		silent := m.Held["lost"]
		g.Pass(gridpart.EngineLostAfter)
		m = g.engine("w2", 1)
		next(m, "lost")
		g.Settled(silent, job.OK) // late, and first
		m.Gets("lost: supersede", "drained")
		m.starts("drained")
		m.logoff()
		m = g.engine("w3", 1)
		next(m, "copied") // drained is behind all others now
		g.Operate("copied", rule.Command{Verb: rule.Offer})
		other := g.engine("w4", 1)
		other.Gets("left") // a copy stands behind what is fresh
		other.OK("left")
		other.Gets("given up")
		other.OK("given up")
		other.Gets("drained")
		other.OK("drained")
		next(other, "copied")
		g.Pass(2 * job.Second)
		other.OK("copied")
		m.Gets("copied: supersede")
		lost := m.Held["copied"]
		if g.Try(engine.Settle{ID: lost.Job.ID, Token: lost.Lease.Token, Outcome: job.OK}).Err == nil {
			t.Error("two successes of one task")
		}

		tally, now, _ := g.Part.Grid.Measure(g.Context())
		if tally.Outcomes != [gridpart.TaskOutcomes]uint64{7, 0, 0} || tally.Charged != [gridpart.RetryCauses]uint64{1, 1, 1} || tally.Evictions != 1 || tally.Reschedules != 1 {
			t.Errorf("outcomes %v, charged %v, %d evictions, %d reschedules", tally.Outcomes, tally.Charged, tally.Evictions, tally.Reschedules)
		}
		want := [job.Endings]uint64{job.ByRetry: 1, job.ByOK: 6, job.ByTimeout: 1, job.ByLapse: 1, job.ByEvict: 1, job.BySupersede: 2}
		if tally.Ended != want {
			t.Errorf("runs ended %v, want %v", tally.Ended, want)
		}
		if tally.Late["accepted"] != 1 || tally.Late["superseded"] != 1 || tally.Late["ignored"] != 0 {
			t.Errorf("late %v", tally.Late)
		}
		if tally.Useful != 2*job.Second || tally.Redundant != 2*job.Second {
			t.Errorf("useful %d, redundant %d", tally.Useful, tally.Redundant)
		}
		if tally.Lateness.Counts[0] != 1 || tally.Detection.Sum != int64(gridpart.EngineLostAfter) {
			t.Errorf("lateness %+v, detection %+v", tally.Lateness, tally.Detection)
		}
		if now.Sessions != 1 || now.Engines[job.HealthWell] != 2 {
			t.Errorf("%+v", now)
		}
	})
}

func TestCopiesAreCountedByTheStrategyThatAskedForThem(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", redundant())
		slow, idle := g.sample()
		g.beating(8*job.Second+1, slow, idle)
		idle.Gets("t9")
		idle.OK("t9")
		slow.Gets("t9: supersede")
		tally, _, _ := g.Part.Grid.Measure(g.Context())
		want := [job.RedundancyStrategies]uint64{job.RedundantMedian: 1}
		if tally.Started != want || tally.Won != want {
			t.Errorf("started %v, won %v", tally.Started, tally.Won)
		}
	})
}
