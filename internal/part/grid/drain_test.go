package grid_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// A4: engines leave in good order all the time. Nothing is charged, and all tasks
// are completed.

// leaving is a session whose engines are drained or logged off at random: tasks so
// many, on so many engines with two slots each.
type leaving struct {
	*gridRig
	names []string
	up    []*machine
	given int // runs that were given back in good order
}

func newLeaving(g *gridRig, tasks, engines int) *leaving {
	g.Helper()
	d := &leaving{gridRig: g}
	g.session("s")
	list := make([]engine.NewJob, tasks)
	for i := range list {
		d.names = append(d.names, fmt.Sprint("t", i))
		list[i] = newNamed("s", d.names[i], task)
	}
	added, err := g.Put(g.Context(), list)
	if err != nil {
		g.Fatal(err)
	}
	for i, a := range added {
		g.Call(a.ID, d.names[i])
	}
	for i := range engines {
		d.up = append(d.up, g.engine(fmt.Sprint("w", i), 2))
	}
	return d
}

// runs begins what an engine has, and returns it.
func (d *leaving) runs(m *machine) (list []engine.Delivery) {
	d.Helper()
	m.Read()
	for name, has := range m.Held {
		if j := d.Job(name); j.LeaseOf(has.Lease.Token) < 0 {
			delete(m.Held, name)
			continue
		}
		list = append(list, has)
		m.starts(name)
	}
	return list
}

// leave has one engine go in good order, with all it runs, and come back.
func (d *leaving) leave(i int, gives bool) {
	d.Helper()
	m := d.up[i]
	list := d.runs(m)
	d.given += len(list)
	if gives { // it gives back what it has; else the server does
		m.drain()
		for _, has := range list {
			d.Settled(has, job.Released)
		}
	}
	m.logoff()
	d.up[i] = d.engine(m.name, 2)
}

// cut lets the power fail. Engines come back with what they run.
func (d *leaving) cut() {
	d.Helper()
	running := make([][]gridpart.Running, len(d.up))
	held := make([]map[string]engine.Delivery, len(d.up))
	for i, m := range d.up {
		for _, has := range d.runs(m) {
			running[i] = append(running[i], gridpart.Running{ID: has.Job.ID, Token: has.Lease.Token})
		}
		held[i] = m.Held
	}
	if err := d.Mem.Sync(); err != nil {
		d.Fatal(err)
	}
	d.PowerCut()
	for i, m := range d.up {
		m.epoch = d.login(m.name, 2, func(l *gridpart.Login) { l.Running = running[i] }).Engine.Epoch
		m.connect()
		m.Held = held[i]
	}
}

// finish completes all tasks, and judges them.
func (d *leaving) finish() {
	d.Helper()
	for d.state("s").Open() > 0 {
		for _, m := range d.up {
			m.Read()
			for name, has := range m.Held {
				if delete(m.Held, name); d.Job(name).LeaseOf(has.Lease.Token) >= 0 {
					d.Settled(has, job.OK)
				}
			}
		}
	}
	evicted := 0
	for _, name := range d.names {
		j := d.Expect(name, job.Done)
		if j.Attempts != 0 || j.Reschedules != 0 || j.Losses != 0 {
			d.Errorf("%s: %+v", name, j)
		}
		evicted += int(j.Evictions)
	}
	if evicted != d.given {
		d.Errorf("%d runs were given back, and %d evictions counted", d.given, evicted)
	}
}

func TestA4LogoffsChargeNothing(t *testing.T) {
	grid(t, func(g *gridRig) {
		d, rng := newLeaving(g, 12, 3), dice(4)
		for n := range 30 {
			if d.leave(rng.IntN(len(d.up)), rng.IntN(2) == 0); n%10 == 9 {
				d.cut()
			}
		}
		d.finish()
	}, func(r *rig) { r.Twice = false })
}

// drains are as many as the test has; GRID_DRAINS says more, A4 has 10,000.
const drains = 20

func TestA4AThousandTasksWhoseEnginesAreDrainedAtRandom(t *testing.T) {
	n := drains
	if more, err := strconv.Atoi(os.Getenv("GRID_DRAINS")); err == nil {
		n = more
	}
	disk := vfs.NewMem()
	grid(t, func(g *gridRig) {
		d, rng := newLeaving(g, 1000, 20), dice(4)
		for range n {
			d.leave(rng.IntN(len(d.up)), rng.IntN(2) == 0)
		}
		d.finish()
		t.Logf("%d tasks, %d drains, %d evictions", len(d.names), n, d.given)
	}, func(r *rig) {
		r.Twice = false
		r.Around = func(store.Store) store.Store {
			s, err := embedded.Open(embedded.Options{Dir: "data", FS: disk, Now: r.Clock.Wall, Cache: 1 << 20})
			if err != nil {
				r.Fatal(err)
			}
			r.Cleanup(func() { _ = s.Close() })
			return s
		}
	})
}
