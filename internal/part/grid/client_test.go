package grid_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// Clients of sessions that die (acceptance test A33).

const clientTimeout = job.Minute

func mortal(c job.Collection) func(*job.Queue) {
	return func(q *job.Queue) { q.Grid.ClientTimeout, q.Grid.Collection = clientTimeout, c }
}

func (g *gridRig) sessionIs(name string, want job.SessionState) {
	g.Helper()
	if s := g.state(name); s.State != want {
		g.Fatalf("session %s is %s, want %s", name, s.State, want)
	}
}

func (g *gridRig) heard(name string) {
	g.Helper()
	if within, err := g.Part.Grid.Heard(g.Context(), name); err != nil || within != clientTimeout {
		g.Fatal(within, err)
	}
}

func TestA33TheSessionsOfADeadClientEndUnlessTheyMayBeCollectedLater(t *testing.T) {
	for _, c := range []struct {
		name   string
		mode   job.Collection
		closes bool // all is submitted
		want   job.SessionState
	}{
		{"immediately", job.CollectImmediately, false, job.SessionCancelled},
		{"immediately, fully submitted", job.CollectImmediately, true, job.SessionCancelled},
		{"after submit, fully submitted", job.CollectAfterSubmit, true, job.SessionCancelled},
		{"later, half submitted", job.CollectLater, false, job.SessionCancelled},
		{"later, fully submitted", job.CollectLater, true, job.SessionClosed},
		{"never, half submitted", job.CollectNever, false, job.SessionCancelled},
		{"never, fully submitted", job.CollectNever, true, job.SessionClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", mortal(c.mode))
				g.session("immortal", func(q *job.Queue) { q.Grid.Collection = c.mode })
				g.tasks("s", "A")
				g.tasks("immortal", "B")
				if c.closes {
					if _, err := g.Part.Grid.CloseSession(g.Context(), "s", driver); err != nil {
						t.Fatal(err)
					}
				}
				until := g.state("s").ClientUntil
				if (until == 0) != (c.want == job.SessionClosed) || until > 0 && until != g.Clock.Wall()+clientTimeout {
					t.Errorf("until %d", until)
				}
				g.Pass(clientTimeout - 1)
				if s := g.state("s"); s.State > job.SessionClosed {
					t.Fatalf("it is %s too early", s.State)
				}
				g.Pass(1)
				g.sessionIs("s", c.want)
				if s := g.state("s"); c.want == job.SessionCancelled && !strings.Contains(s.Why, "not heard of for 1m (client_timeout)") || s.ClientUntil != 0 {
					t.Errorf("%q, until %d", s.Why, s.ClientUntil)
				}
				g.Pass(clientTimeout)
				g.sessionIs("immortal", job.SessionOpen)
			})
		})
	}
}

func TestA33AClientThatComesBackInTimeGoesOn(t *testing.T) {
	signs := map[string]func(g *gridRig){
		"it opens the session again, or waits for results": func(g *gridRig) { g.heard("s") },
		"it submits": func(g *gridRig) { g.tasks("s", "B") },
		"it acknowledges results": func(g *gridRig) {
			if _, err := g.Part.Grid.Collected(g.Context(), "s", 0); err != nil {
				g.Fatal(err)
			}
		},
		"it closes": func(g *gridRig) {
			if _, err := g.Part.Grid.CloseSession(g.Context(), "s", driver); err != nil {
				g.Fatal(err)
			}
		},
		"it gets a new timeout": func(g *gridRig) {
			for _, span := range []job.Millis{0, clientTimeout} {
				if _, err := g.Part.Grid.ChangeSession(g.Context(), "s", func(q *job.Queue) error { q.Grid.ClientTimeout = span; return nil }, driver); err != nil {
					g.Fatal(err)
				}
			}
		},
		"the server restarts": func(g *gridRig) { g.Restart(job.Hour) },
	}
	for name, sign := range signs {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s", mortal(job.CollectImmediately))
				g.tasks("s", "A")
				g.Pass(clientTimeout - 1)
				sign(g)
				g.Pass(clientTimeout - 1)
				if s := g.state("s"); s.State > job.SessionClosed {
					t.Fatalf("it is %s (%s)", s.State, s.Why)
				}
				g.Pass(1)
				g.sessionIs("s", job.SessionCancelled)
			})
		})
	}
}

func TestLookingAtASessionIsNoSignOfItsClient(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", mortal(job.CollectImmediately))
		m := g.engine("w1", 1)
		g.tasks("s", "A")
		m.Gets("A")
		g.beating(clientTimeout-1, m)
		g.state("s")
		g.Pass(1)
		m.Gets("A: cancel") // its engine is told
		g.sessionIs("s", job.SessionCancelled)
		g.attempts("A", "1 w1 cancelled")
	})
}

func TestASessionThatIsOverNeedsNoClient(t *testing.T) {
	grid(t, func(g *gridRig) {
		g.session("s", mortal(job.CollectImmediately))
		m := g.running()
		m.OK("A")
		if _, err := g.Part.Grid.CloseSession(g.Context(), "s", driver); err != nil {
			t.Fatal(err)
		}
		g.Pass(2 * clientTimeout)
		g.sessionIs("s", job.SessionDone)
	})
}

func TestAStepOfTheDateEndsNoSession(t *testing.T) { // A40
	for _, step := range []int64{3_600_000, -3_600_000} {
		grid(t, func(g *gridRig) {
			g.session("s", mortal(job.CollectImmediately))
			g.tasks("s", "A")
			g.Pass(clientTimeout / 2)
			g.Clock.Step.Add(step)
			g.Pass(clientTimeout/2 - 1)
			g.sessionIs("s", job.SessionOpen)
			g.Pass(clientTimeout) // holders get extra time, and so do clients
			g.sessionIs("s", job.SessionCancelled)
		})
	}
}
