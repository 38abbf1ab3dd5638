package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
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
		"a lease, later": func(m *machine) { m.g.pass(500); m.beat() },
	} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", timeLimit(4*job.Second))
				g.tasks("s", "task")
				m := g.engine("e", 1)
				m.gets("task")
				m.starts("task")
				g.pass(2500)
				g.restart(500)
				back(m)
				g.pass(900)
				g.expect("task", job.Leased)
				g.pass(200)
				if j := g.job("task"); len(j.Leases) > 0 && j.Deliveries == 1 {
					g.Errorf("4.1 s of 4 s: %+v", j)
				}
			})
		})
	}
}

// again logs in anew, with what it runs.
func (m *machine) again(names ...string) {
	m.g.Helper()
	in := m.g.login(m.name, 1, func(l *engine.Login) {
		for _, name := range names {
			l.Running = append(l.Running, engine.Running{ID: m.g.ids[name], Token: m.held[name].Lease.Token})
		}
	})
	m.epoch = in.Machine.Epoch
}

// What ended while the server was away is told within a second of the engine's
// return, even if its time is over by then.
func TestAResultThatWaitedForTheServerCounts(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", timeLimit(4*job.Second))
		g.tasks("s", "task")
		m := g.engine("e", 1)
		m.gets("task")
		m.starts("task")
		g.pass(3 * job.Second)
		d := m.held["task"]
		g.restart(5 * job.Second)
		m.connect()
		g.pass(900)
		g.settle(d, job.OK)
		g.expect("task", job.Done)
	})
}

// An engine that never says that a run began has its limit from the take, for as
// many as it has slots; what it prefetches waits there.
func TestAnEngineThatNeverSaysStartedIsTimed(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", timeLimit(4*job.Second))
		g.tasks("s", "mute", "waits")
		in := g.login("e", 1)
		s, err := g.MachineStream(g.Context(), "e", in.Machine.Epoch, 2, nil)
		if err != nil {
			g.Fatal(err)
		}
		m := &machine{g: g, name: "e", epoch: in.Machine.Epoch, stream: &stream{s, g.rig, map[string]engine.Delivery{}}}
		m.gets("mute", "waits")
		g.pass(3900)
		g.expect("mute", job.Leased)
		g.pass(200)
		if j := g.job("mute"); j.Attempts != 1 {
			g.Errorf("4.1 s of 4 s: %+v", j)
		}
		if j := g.expect("waits", job.Leased); j.Attempts != 0 {
			g.Errorf("%+v", j)
		}
	})
}
