package grid_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
)

// Engines on which tasks fail, and tasks that fail everywhere (reference section
// 6, acceptance tests A26 to A29).

func excluding(x job.Exclusion) func(*job.Queue) {
	return func(q *job.Queue) { q.Grid.Exclusion, q.Retry.Limit = &x, job.LimitOf(20) }
}

// failing has an engine fail a task that it has, or gets now.
func (m *machine) failing(name string) {
	m.g.Helper()
	m.Read()
	if d, has := m.Held[name]; !has || m.g.Job(name).LeaseOf(d.Lease.Token) < 0 {
		m.g.Fatalf("%s does not have %s", m.name, name)
	}
	m.Fails(name)
}

func TestA26AnEngineIsExcludedAfterSoManyFailuresOfASession(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 3, EachFailure: true, MaxFraction: 1}))
		g.session("other")
		m := g.engine("w1", 1)
		g.tasks("s", "A", "B")
		m.failing("A")
		m.failing("A")
		m.Gets("A")
		m.drain()
		m.release("A") // this does not count
		m.logoff()
		m = g.engine("w1", 1)
		m.Gets("B") // which stands before A now
		if s := g.state("s"); s.Stalled || s.Strikes[0].Out || s.Strikes[0].Count != 2 {
			g.Errorf("after two failures: %+v", s.Session)
		}
		m.Fails("B")
		m.Gets()
		if s := g.state("s"); !s.Stalled || len(s.Strikes) != 1 || !s.Strikes[0].Out {
			g.Errorf("%+v", s.Session)
		}
		g.tasks("other", "O")
		m.Gets("O")
		m.OK("O")
		if s, err := g.Part.Grid.ClearExclusions(g.Context(), "s", "w1", driver); err != nil || s.Stalled || len(s.Strikes) != 0 {
			g.Fatal(err, s)
		}
		m.Gets("B")
	})
}

// release gives a task back in good order.
func (m *machine) release(name string) {
	m.g.Helper()
	m.g.Settled(m.Held[name], job.Released)
}

func TestAnExclusionEndsByItself(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 1, TTL: job.Minute}))
		m := g.engine("w1", 1)
		g.tasks("s", "A")
		m.failing("A")
		g.beating(job.Minute-1, m)
		m.Gets()
		g.restartGrid(m)
		m.Gets()
		g.beating(2, m)
		m.Gets("A")
	})
}

// restartGrid is a restart after which an engine logs in again.
func (g *gridRig) restartGrid(m *machine) {
	g.Helper()
	g.Restart(0)
	m.epoch = g.login(m.name, 1).Engine.Epoch
	m.connect()
}

func TestA27WhereEveryEngineFailedTheBestHalfGoesOn(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 0.5}))
		up := map[string]*machine{}
		for _, name := range []string{"a", "b", "c", "d"} {
			up[name] = g.engine(name, 1)
			g.tasks("s", "t"+name)
			up[name].Gets("t" + name)
		}
		out := func(want string) {
			g.Helper()
			got := ""
			for _, k := range g.state("s").Strikes {
				if k.Out {
					got += k.Engine
				}
			}
			if got != want {
				g.Fatalf("excluded are %q, want %q", got, want)
			}
		}
		for _, step := range []struct{ fails, out string }{{"a", "a"}, {"b", "ab"}, {"c", "bc"}} { // of equal ones who failed last is the worst
			if up[step.fails].Fails("t" + step.fails); g.state("s").Stalled {
				g.Errorf("stalled after %s", step.fails)
			}
			g.Pass(1)
			out(step.out)
		}
		up["a"].Gets("ta") // it was spared, and got the foremost
		up["d"].Fails("td")
		if out("cd"); !g.state("s").Stalled {
			g.Error("every engine failed, and the session is not stalled")
		}
		up["b"].Gets("tb") // so was this one now
		up["a"].Fails("ta")
		up["a"].Gets() // it is the worst
		out("ad")
		up["c"].Gets("ta")
		up["c"].OK("ta")
		up["c"].Gets("tc")
		up["b"].OK("tb")
		up["b"].Gets("td")
	})
}

func TestA27TheFloorFollowsEnginesThatComeAndGo(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 0.5}))
		bad, well := g.engine("bad", 1), g.engine("well", 1)
		g.tasks("s", "A", "B")
		bad.Gets("A")
		well.Gets("B")
		bad.Fails("A")
		bad.Gets()
		well.OK("B")
		well.Gets("A")
		well.logoff() // now there is only the bad one, and half of one is none
		bad.Gets("A")
		if !g.state("s").Stalled {
			g.Error("the only engine failed, and the session is not stalled")
		}
		g.tasks("s", "C")
		well = g.engine("well", 1)
		well.Gets("C")
		if s := g.state("s"); s.Stalled || !s.Strikes[0].Out {
			g.Errorf("another engine came: %+v", s.Session)
		}
		g.PowerCut()
		bad.epoch, well.epoch = g.login("bad", 1).Engine.Epoch, g.login("well", 1).Engine.Epoch
		bad.connect()
		if well.connect(); !g.state("s").Strikes[0].Out {
			g.Error("the exclusion is gone with the server")
		}
		well.logoff()
		bad.Read()
		if s := g.state("s"); !s.Stalled || s.Strikes[0].Out || s.Depth.Leases != 1 {
			g.Errorf("%+v", s.Session)
		}
	})
}

func TestA27TheFloorCountsEnginesThatMayRunWhatFailed(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 0.5}))
		gpu := func(l *gridpart.Login) { l.Properties = map[string]string{"gpu": "1"} }
		first, second := g.engine("g1", 1, gpu), g.engine("g2", 1, gpu)
		for i := range 4 {
			g.engine(fmt.Sprint("w", i), 1)
		}
		needs := func(n *engine.NewJob) {
			task(n)
			n.Job.Requires = []job.Requirement{{Property: "gpu", Op: "=", Value: "1"}}
		}
		g.Add("s", "A", needs)
		g.Add("s", "B", needs)
		first.Gets("A")
		second.Gets("B")
		first.Fails("A")
		g.Pass(1)
		second.Fails("B")
		if s := g.state("s"); !s.Stalled || s.Strikes[0].Out || !s.Strikes[1].Out {
			g.Fatalf("%+v", s.Session)
		}
		first.Gets("A") // though six engines are there, and two are not half of them
	})
}

func TestASessionWhoseOnlyFitEngineIsExcludedIsStalled(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 1}))
		m := g.engine("w1", 1, func(l *gridpart.Login) { l.Properties = map[string]string{"gpu": "1"} })
		g.Add("s", "A", func(n *engine.NewJob) {
			task(n)
			n.Job.Requires = []job.Requirement{{Property: "gpu", Op: "=", Value: "1"}}
		})
		m.Gets("A")
		g.engine("w2", 1)
		if m.Fails("A"); !g.state("s").Stalled {
			g.Error("it is not stalled")
		}
	})
}

func TestA28ABlackHoleGetsNothingUntilAProbeSucceeds(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) {
			q.Retry.Limit, q.Retry.Curve = job.LimitOf(50), &job.Curve{Kind: job.CurveConstant, Delay: 2 * job.Second}
		})
		well := g.running() // which is busy
		hole := g.engine("hole", 5)
		names := []string{"t0", "t1", "t2", "t3", "t4"}
		g.tasks("s", names...)
		hole.Gets(names...)
		for _, name := range names {
			hole.is(gridpart.EngineBusy)
			g.Pass(390)
			hole.starts(name)
			g.Pass(10)
			hole.Fails(name)
		}
		// The first one is back by now, and it is suspected: it gets nothing.
		hole.Gets()
		if s := hole.state(); s.State != gridpart.EngineBarred || s.Health.State != job.HealthSuspended {
			g.Fatalf("it failed five in two seconds: %+v", s)
		}
		g.beating(2*job.Second, hole, well)
		well.OK("A")
		for i, name := range names { // they succeed elsewhere
			well.Gets(name)
			well.OK(name)
			want := job.HealthSuspended
			if i >= 2 { // half of them
				want = job.HealthQuarantined
			}
			if s := hole.state(); s.Health.State != want {
				g.Fatalf("after %d successes elsewhere: %+v", i+1, s.Health)
			}
		}
		well.drain()
		g.tasks("s", "B", "C")
		barred := func(span job.Millis) {
			g.Helper()
			g.beating(span-1, hole, well)
			hole.beat()
			hole.Gets()
			hole.is(gridpart.EngineBarred)
			g.beating(1, well)
			hole.beat()
		}
		barred(10 * job.Minute)
		hole.Gets("B") // and no more, though it has five slots
		hole.Fails("B")
		hole.Gets()
		barred(10 * job.Minute) // once more
		hole.Gets("B")
		hole.OK("B")
		hole.Gets("C") // it is released
		if s := hole.state(); s.Health.State != job.HealthWell || s.State != gridpart.EngineBusy {
			g.Errorf("%+v", s)
		}
	}, func(r *rig) { r.Grid.BlackHoles = new(job.DefaultBlackHoles()) })
}

func TestA28ABlackHoleThatCrashesAndComesBackIsOneYet(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(50) })
		m := g.running()
		g.engine("w2", 1).drain() // half of the engines may be out
		m.Fails("A")
		m.Gets()
		m.is(gridpart.EngineBarred)
		m = g.engine("w1", 1)
		m.Gets()
		m.is(gridpart.EngineBarred)
		m.logoff() // in good order: somebody has seen to it
		g.engine("w1", 1).Gets("A")
	}, func(r *rig) {
		r.Grid.BlackHoles = &job.BlackHoles{Failures: 1, Fast: job.Second, Elsewhere: 1, Suspended: job.Minute, Quarantined: job.Minute, MaxFraction: 0.5}
	})
}

func TestA29ATaskThatFailsOnThreeHostsIsPoisonAndPardonsTheEngines(t *testing.T) {
	for _, again := range []bool{false, true} { // or the failure that makes it poison is its last anyhow
		grid(t, func(g *gridRig) {
			x := job.Exclusion{Failures: 2, MaxFraction: 1}
			g.session("s", excluding(x), func(q *job.Queue) {
				if q.Grid.RetryElsewhere = true; !again {
					q.Retry.Limit = job.LimitOf(2)
				}
			})
			// Each engine has one failure of a task of its own, and with the poison it is one too many.
			var up []*machine
			for i := range 3 {
				name := fmt.Sprint("w", i)
				m := g.engine(name, 1, func(l *gridpart.Login) { l.Properties = map[string]string{"is": name} })
				own := g.Add("s", "own"+name, func(n *engine.NewJob) {
					task(n)
					n.Job.Requires = []job.Requirement{{Property: "is", Op: "=", Value: name}}
				})
				m.Gets("own" + name)
				m.Fails("own" + name)
				if _, err := enginetest.Operate(g.Context(), g.Engine, own, rule.Command{Verb: rule.Cancel}); err != nil {
					g.Fatal(err)
				}
				m.Read()
				up = append(up, m)
			}
			g.tasks("s", "A")
			for range up {
				for _, m := range up { // each time it is on another one
					if got := m.Read(); slices.Contains(got, "A") {
						m.Fails("A")
						break
					}
				}
			}
			if j := g.Expect("A", job.Dead); j.Reason != job.Exhausted || j.Attempts != 3 {
				g.Errorf("%+v", j)
			}
			s := g.state("s")
			if s.Failed != 1 || s.Stalled || len(s.Strikes) != 3 {
				g.Errorf("%+v", s.Session)
			}
			for i, m := range up {
				if k := s.Strikes[i]; k.Out || k.Count != 1 {
					g.Errorf("held against %s: %+v", m.name, k)
				}
				if h := m.state().Health; h.State != job.HealthWell || len(h.Row) != 1 {
					g.Errorf("%s: %+v", m.name, h)
				}
				g.tasks("s", "B"+m.name)
			}
			if s := g.state("s"); s.Depth.Leases != 3 {
				g.Errorf("%d run", s.Depth.Leases)
			}
		}, func(r *rig) {
			r.Grid.BlackHoles = &job.BlackHoles{Failures: 2, Fast: job.Second, Elsewhere: 1, Suspended: job.Minute, Quarantined: job.Minute, MaxFraction: 1}
		})
	}
}

// Two copies that take too long at the same moment may make their task poison: it
// is given up once.
func TestA29CopiesThatOverrunAtOnceMakeATaskPoisonOnce(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, MaxFraction: 1}), func(q *job.Queue) {
			q.RunTimeout, q.Grid.MaxCopies = 2*job.Second, 2
		})
		g.tasks("s", "A")
		m := g.engine("w0", 1)
		m.Gets("A")
		m.Fails("A")
		m.logoff()
		x := g.engine("w1", 1)
		x.Gets("A")
		y := g.engine("w2", 1)
		if _, err := enginetest.Operate(g.Context(), g.Engine, g.IDs["A"], rule.Command{Verb: rule.Offer}); err != nil {
			g.Fatal(err)
		}
		y.Gets("A")
		x.starts("A")
		y.starts("A")
		g.Pass(2 * job.Second)
		if j := g.Expect("A", job.Dead); j.Reason != job.Exhausted || j.Attempts != 3 {
			g.Errorf("%+v", j)
		}
		if s := g.state("s"); s.Failed != 1 || s.Open() != 0 || len(s.Strikes) != 0 {
			g.Errorf("%+v", s.Session)
		}
	})
}

func TestA27TheFloorFollowsEnginesThatComeBackAsOthers(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, EachFailure: true, MaxFraction: 0.5}))
		gpu := func(l *gridpart.Login) { l.Properties = map[string]string{"gpu": "1"} }
		bad := g.engine("bad", 1, gpu)
		g.Add("s", "A", func(n *engine.NewJob) {
			task(n)
			n.Job.Requires = []job.Requirement{{Property: "gpu", Op: "=", Value: "1"}}
		})
		bad.Gets("A")
		busy := g.engine("busy", 1, gpu)
		g.tasks("s", "B")
		busy.Gets("B")
		bad.Fails("A")
		bad.Gets()
		g.login("busy", 1) // its card is gone, and the bad one is the only one that has one
		bad.Gets("A")
		if s := g.state("s"); !s.Stalled || s.Strikes[0].Out {
			g.Errorf("%+v", s.Session)
		}
		g.login("busy", 1, gpu)
		if s := g.state("s"); s.Stalled || !s.Strikes[0].Out {
			g.Errorf("it came back: %+v", s.Session)
		}
	})
}

// Who tells of the failure that makes a task poison is told that it is dead.
func TestTheSettleThatMakesATaskPoisonIsToldSo(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", excluding(job.Exclusion{Failures: 1, MaxFraction: 1}))
		g.tasks("s", "A")
		var last engine.Verdict
		for i := range 3 {
			m := g.engine(fmt.Sprint("w", i), 1)
			m.Read()
			last = g.Settled(m.Held["A"], job.Retried)
		}
		if last.State != job.Dead || last.Job.State != job.Dead || last.Job.Reason != job.Exhausted {
			g.Errorf("told that it is %s, and shown as %s (%s)", last.State, last.Job.State, last.Job.Reason)
		}
	})
}
