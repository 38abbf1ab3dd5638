package grid_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
)

func timeLimit(limit job.Millis) func(*job.Queue) {
	return func(q *job.Queue) { q.RunTimeout = limit }
}

// The clock of a run goes on over a restart of the server: its limit does not
// begin anew once its engine is heard.
func TestTheClockOfARunGoesOnOverARestart(t *testing.T) {
	for name, back := range map[string]func(m *machine){
		"connecting":     func(m *machine) { m.connect() },
		"a heartbeat":    func(m *machine) { m.beat() },
		"a login":        func(m *machine) { m.again("task") },
		"a lease, later": func(m *machine) { m.g.Pass(500); m.beat() },
	} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", timeLimit(4*job.Second))
				g.tasks("s", "task")
				m := g.engine("e", 1)
				m.Gets("task")
				m.starts("task")
				g.Pass(2500)
				g.Restart(500)
				back(m)
				g.Pass(900)
				g.Expect("task", job.Leased)
				g.Pass(200)
				if j := g.Job("task"); len(j.Leases) > 0 && j.Deliveries == 1 {
					g.Errorf("4.1 s of 4 s: %+v", j)
				}
			})
		})
	}
}

// again logs in anew, with what it runs.
func (m *machine) again(names ...string) {
	m.g.Helper()
	in := m.g.login(m.name, 1, func(l *gridpart.Login) {
		for _, name := range names {
			l.Running = append(l.Running, gridpart.Running{ID: m.g.IDs[name], Token: m.Held[name].Lease.Token})
		}
	})
	m.epoch = in.Engine.Epoch
}

// What ended while the server was away is told within a second of the engine's
// return, even if its time is over by then.
func TestAResultThatWaitedForTheServerCounts(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", timeLimit(4*job.Second))
		g.tasks("s", "task")
		m := g.engine("e", 1)
		m.Gets("task")
		m.starts("task")
		g.Pass(3 * job.Second)
		d := m.Held["task"]
		g.Restart(5 * job.Second)
		m.connect()
		g.Pass(900)
		g.Settled(d, job.OK)
		g.Expect("task", job.Done)
	})
}

// An engine that never says that a run began has its limit from the take, for as
// many as it has slots; for what it fetched ahead, from when those are over that
// come before it.
func TestWhatAMuteEngineFetchedAheadIsTimed(t *testing.T) {
	for name, away := range map[string]job.Millis{"": 0, "over a restart": 500} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", timeLimit(4*job.Second))
				g.tasks("s", "1", "2", "3", "4", "5")
				in := g.login("e", 2)
				s, err := g.Part.Grid.EngineStream(g.Context(), "e", in.Engine.Epoch, 5, nil)
				if err != nil {
					g.Fatal(err)
				}
				m := &machine{g: g, name: "e", epoch: in.Engine.Epoch, stream: g.Over(s)}
				m.Gets("1", "2", "3", "4", "5")
				if g.Pass(1000 - away); away > 0 {
					g.Restart(away)
					m.connect()
				}
				g.beating(3*job.Second-1, m)
				for i, over := range []string{"", "1 2", "1 2 3 4", "1 2 3 4 5"} {
					for _, name := range []string{"1", "2", "3", "4", "5"} {
						if j, was := g.Job(name), strings.Contains(over, name); (j.Attempts > 0) != was {
							g.Errorf("1 ms before %d s: %s was charged %d times", 4*(i+1), name, j.Attempts)
						}
					}
					g.beating(4*job.Second, m)
				}
			})
		})
	}
}

// One that was fetched ahead and begins has its limit from then, and where what is
// before it may take for ever, nothing is known of it.
func TestWhatIsFetchedAheadHasItsLimitFromItsStart(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", timeLimit(4*job.Second))
		g.session("long")
		g.tasks("s", "1", "2")
		in := g.login("e", 1)
		s, err := g.Part.Grid.EngineStream(g.Context(), "e", in.Engine.Epoch, 4, nil)
		if err != nil {
			g.Fatal(err)
		}
		m := &machine{g: g, name: "e", epoch: in.Engine.Epoch, stream: g.Over(s)}
		m.Gets("1", "2")
		g.tasks("long", "3")
		m.Gets("3")
		g.tasks("s", "4")
		m.Gets("4")
		if end := g.Job("4").Leases[0].RunEnd; end != 0 {
			g.Errorf("what is before it may take for ever, and it has until %s", end)
		}
		m.OK("1")
		m.starts("2")
		g.Pass(4*job.Second - 1)
		g.Expect("2", job.Leased)
		g.Pass(1)
		if j := g.Job("2"); j.Attempts != 1 {
			g.Errorf("%+v", j)
		}
	})
}
