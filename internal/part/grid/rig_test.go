package grid_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
)

// grid runs f with sessions and engines: section 2 of the reference has R = 2
// retries, L = 1 reschedule, and no wait.
func grid(t *testing.T, f func(g *gridRig), edits ...func(*rig)) {
	t.Helper()
	scenario(t, func(r *rig) { f(&gridRig{r}) }, append(edits, func(r *rig) { r.Opts.Server.RetainDone = job.Hour })...)
}

type gridRig struct{ *rig }

// documented are the settings of the vectors: as GridServer is documented.
func documented(q *job.Queue) {
	q.Retry = job.Retry{Limit: job.LimitOf(2), Place: job.PlaceFront, Curve: &job.Curve{Kind: job.CurveImmediate}, LossLimit: job.LimitOf(5)}
	q.RetainDone = job.MaxMillis
	q.Grid = &job.Grid{
		Profile: job.ProfileSeed, Weight: job.GridWeightDefault, LossesCharged: true,
		EvictedPlace: job.PlaceBack, CopyPlace: job.PlaceBack, MaxCopies: 2, MaxReschedules: 1,
	}
}

// session opens one, documented but for the edits.
func (g *gridRig) session(name string, edits ...func(*job.Queue)) gridpart.SessionState {
	g.Helper()
	n := gridpart.NewSession{Queue: *job.NewQueue(name)}
	documented(&n.Queue)
	for _, edit := range edits {
		edit(&n.Queue)
	}
	s, err := g.Part.Grid.OpenSession(g.Context(), n, job.Actor{Name: "driver"})
	if err != nil {
		g.Fatal(err)
	}
	return s
}

// state reads a session.
func (g *gridRig) state(name string) gridpart.SessionState {
	g.Helper()
	s, err := g.Part.Grid.Session(g.Context(), name)
	if err != nil {
		g.Fatal(err)
	}
	return s
}

// tasks submits tasks; the payload of each is its name.
func (g *gridRig) tasks(session string, names ...string) {
	g.Helper()
	for _, name := range names {
		g.Add(session, name, task)
	}
}

func task(n *engine.NewJob) { n.Job.Door = job.DoorGrid }

// machine is an engine: its login and its stream.
type machine struct {
	*stream
	g     *gridRig
	name  string
	epoch int64
}

// engine logs one in and connects it; each has a host of its own unless told.
func (g *gridRig) engine(name string, slots int, edits ...func(*gridpart.Login)) *machine {
	g.Helper()
	in := g.login(name, slots, edits...)
	m := &machine{g: g, name: name, epoch: in.Engine.Epoch}
	m.connect()
	return m
}

func (g *gridRig) login(name string, slots int, edits ...func(*gridpart.Login)) gridpart.LoggedIn {
	g.Helper()
	l := gridpart.Login{Name: name, Slots: slots}
	for _, edit := range edits {
		edit(&l)
	}
	in, err := g.Part.Grid.Login(g.Context(), l)
	if err != nil {
		g.Fatal(err)
	}
	return in
}

func (m *machine) connect() {
	m.g.Helper()
	s, err := m.g.Part.Grid.EngineStream(m.g.Context(), m.name, m.epoch, 0, nil)
	if err != nil {
		m.g.Fatal(err)
	}
	m.stream = m.g.Over(s)
}

// starts says that runs began.
func (m *machine) starts(names ...string) {
	m.g.Helper()
	for _, name := range names {
		list, err := m.g.Extend(m.g.Context(), []engine.Extension{{ID: m.g.IDs[name], Token: m.Held[name].Lease.Token, Started: true}})
		if err != nil || list[0].Err != nil {
			m.g.Fatal(err, list)
		}
	}
}

// beat is a heartbeat; it must be accepted.
func (m *machine) beat(stopped ...job.Token) gridpart.Heard {
	m.g.Helper()
	s, err := m.g.Part.Grid.Heartbeat(m.g.Context(), m.name, gridpart.Beat{Epoch: m.epoch, Stopped: stopped})
	if err != nil {
		m.g.Fatal(err)
	}
	return s
}

func (m *machine) drain() {
	m.g.Helper()
	if _, err := m.g.Part.Grid.Drain(m.g.Context(), m.name, 0, job.Actor{Name: "op"}); err != nil {
		m.g.Fatal(err)
	}
}

func (m *machine) logoff() {
	m.g.Helper()
	if err := m.g.Part.Grid.Logoff(m.g.Context(), m.name, 0, job.Actor{Name: "op"}); err != nil {
		m.g.Fatal(err)
	}
}

// beating passes time in which these engines live.
func (g *gridRig) beating(span job.Millis, list ...*machine) {
	g.Helper()
	for span > 0 {
		step := min(span, 5*job.Second)
		for _, m := range list {
			m.beat()
		}
		g.Pass(step)
		span -= step
	}
}

// line wants the tasks of a session that stand in line, front to back.
func (g *gridRig) line(session string, want ...string) {
	g.Helper()
	got := g.queued(session)
	if !slices.Equal(got, want) {
		g.Fatalf("in line [%s], want [%s]", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// counters of a task, those that are not zero.
func (g *gridRig) counters(name string, want map[string]int) *job.Job {
	g.Helper()
	j := g.Job(name)
	if j == nil {
		g.Fatalf("%s is gone", name)
	}
	got := map[string]int{
		"retries": int(j.Attempts), "reschedules": int(j.Reschedules), "evictions": int(j.Evictions), "losses": int(j.Losses), "live": len(j.Leases),
	}
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	if !maps.Equal(got, want) {
		g.Fatalf("%s: %v, want %v", name, got, want)
	}
	return j
}

type counts = map[string]int

// briefly is a call that does not wait.
func (g *gridRig) briefly() context.Context {
	ctx, cancel := context.WithTimeout(g.Context(), time.Millisecond/2)
	g.Cleanup(cancel)
	return ctx
}

// held wants a delivery to be one.
func (g *gridRig) held(d engine.Delivery) {
	g.Helper()
	if d.Job.LeaseOf(d.Lease.Token) < 0 || string(d.Payload) != g.Names[d.Job.ID] {
		g.Fatalf("%+v", d)
	}
}
