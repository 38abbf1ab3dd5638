package engine_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Engines on which tasks fail, and tasks that fail everywhere (reference section
// 6, acceptance tests A26 to A29).

func excluding(x job.Exclusion) func(*job.Queue) {
	return func(q *job.Queue) { q.Grid.Exclusion, q.Retry.Limit = &x, job.LimitOf(20) }
}

// failing has an engine fail a task that it has, or gets now.
func (m *machine) failing(name string) {
	m.g.Helper()
	m.read()
	if d, has := m.held[name]; !has || m.g.job(name).LeaseOf(d.Lease.Token) < 0 {
		m.g.Fatalf("%s does not have %s", m.name, name)
	}
	m.fail(name)
}

func TestA26AnEngineIsExcludedAfterSoManyFailuresOfASession(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 3, EachFailure: true, MaxFraction: 1}))
		g.session("other")
		m := g.engine("w1", 1)
		g.tasks("s", "A", "B")
		m.failing("A")
		m.failing("A")
		m.gets("A")
		m.logoff() // this does not count
		m = g.engine("w1", 1)
		m.failing("B") // which stands before A now
		m.gets()
		if s := g.state("s"); !s.Stalled || len(s.Strikes) != 1 || !s.Strikes[0].Out {
			g.Errorf("%+v", s.Session)
		}
		g.tasks("other", "O")
		m.gets("O")
		m.ok("O")
		if _, err := g.ClearExclusions(g.Context(), "s", "w1", driver); err != nil {
			g.Fatal(err)
		}
		m.gets("B")
	})
}

func TestAnExclusionEndsByItself(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 1, TTL: job.Minute}))
		m := g.engine("w1", 1)
		g.tasks("s", "A")
		m.failing("A")
		g.beating(job.Minute-1, m)
		m.gets()
		g.restartGrid(m)
		m.gets()
		g.beating(2, m)
		m.gets("A")
	})
}

// restartGrid is a restart after which an engine logs in again.
func (g *gridRig) restartGrid(m *machine) {
	g.Helper()
	g.restart(0)
	m.epoch = g.login(m.name, 1).Machine.Epoch
	m.connect()
}

func TestA27NotMoreThanAPartOfTheEnginesIsExcluded(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 0.5, TTL: job.Hour}))
		x, y := g.engine("x", 1), g.engine("y", 1)
		g.tasks("s", "A", "B")
		x.gets("A")
		y.gets("B")
		x.fail("A")
		x.gets()
		y.fail("B")
		s := g.state("s")
		if !s.Stalled || s.Depth.Leases != 1 {
			g.Errorf("%+v, %+v", s.Session, s.Depth)
		}
	})
}

func TestA28ABlackHoleGetsNothingUntilAProbeSucceeds(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(50) })
		hole, well := g.engine("hole", 5), g.engine("well", 5)
		well.drain()
		names := []string{"t0", "t1", "t2", "t3", "t4"}
		g.tasks("s", names...)
		hole.gets(names...)
		hole.starts(names...)
		g.pass(100)
		for _, name := range names {
			hole.is(engine.MachineBusy)
			hole.fail(name)
			hole.read()
			if name != "t4" && hole.state().Health.State != job.HealthWell {
				g.Fatalf("suspected after %s", name)
			}
		}
		if s := hole.state(); s.Health.State != job.HealthSuspended {
			g.Fatalf("%+v", s.Health)
		}
		g.tasks("s", "more")
		hole.gets()
		well = g.engine("well", 5)
		well.read()
		for _, name := range names { // those that the hole did not get again
			if d, has := well.held[name]; has && g.job(name).LeaseOf(d.Lease.Token) >= 0 {
				well.ok(name)
			}
		}
		well.drain()
		g.beating(10*job.Second, hole, well)
		hole.beat()
		g.counters("more", counts{"live": 1}) // well has it, and is drained
		if s := hole.state(); s.State == engine.MachineBarred {
			g.Errorf("%+v", s.Health)
		}
	}, func(r *rig) { r.opts.BlackHoles = new(job.DefaultBlackHoles()) })
}

func TestA29ATaskThatFailsOnThreeHostsIsPoisonAndPardonsTheEngines(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 2, MaxFraction: 1}))
		var up []*machine
		for i := range 4 {
			up = append(up, g.engine(fmt.Sprint("w", i), 1))
			up[i].drain()
		}
		g.tasks("s", "A")
		for i := range 3 {
			up[i] = g.engine(up[i].name, 1)
			up[i].gets("A")
			up[i].drain()
			up[i].fail("A")
		}
		if j := g.expect("A", job.Dead); j.Reason != job.Exhausted {
			g.Errorf("%+v", j)
		}
		s := g.state("s")
		if s.Failed != 1 || s.Cancelled != 0 || len(s.Strikes) != 0 {
			g.Errorf("%+v", s.Session)
		}
	})
}
