package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/store"
)

// gridWorld is an engine and the model of the grid, to which the same happens.
type gridWorld struct {
	*world
	grid   *grid
	conns  map[string]*gridConn // of machines
	epochs map[string][]int64   // of all logins, by machine
	names  []string             // of sessions, also of those that are gone
	sent   []engine.NewJob      // all submits
	given  []handed             // all runs there ever were
	won    map[job.ID]job.Token // the run whose result was accepted
}

// gridConn is the stream of a machine.
type gridConn struct {
	*engine.Stream
	serves []string
	awaits int                      // runs to be handed back
	told   map[job.Token]job.Ending // what it is to be told
	heard  map[job.Token]job.Ending // what it was told
}

type handed struct {
	task  *task
	token job.Token
}

func newGridWorld(t *rapid.T, open func() (store.Store, error)) *gridWorld {
	w := &gridWorld{
		world: &world{T: t, open: open}, grid: newGrid(bubble{}.Wall()),
		conns: map[string]*gridConn{}, epochs: map[string][]int64{}, won: map[job.ID]job.Token{},
	}
	w.begin()
	return w
}

// gift is a task on its way to a machine; poll is whether it asked by a call.
type gift struct {
	engine.Delivery
	to     *machine
	serves []string
	poll   bool
}

// hear reads what machines were told and given once nothing is on its way any more,
// and holds it against the model. It reports whether runs ended for urgent sessions
// after what was given.
func (w *gridWorld) hear(others ...gift) (freed bool) {
	synctest.Wait()
	w.grid.judged()
	list := others
	for _, name := range slices.Sorted(maps.Keys(w.conns)) {
		list = append(list, w.read(name)...)
	}
	slices.SortFunc(list, func(a, b gift) int { return bytes.Compare(a.Lease.Token[:], b.Lease.Token[:]) })
	for _, d := range list {
		w.granted(d)
	}
	for w.preempt() { // where nobody has asked yet
		freed = true
	}
	for name, c := range w.conns {
		if c.awaits > 0 || !maps.Equal(c.heard, c.told) {
			w.Fatalf("%s was not handed %d runs back, and told of the end of %v, want %v", name, c.awaits, c.heard, c.told)
		}
		clear(c.heard)
		clear(c.told)
	}
	return freed
}

// read is what a machine was given since the last time.
func (w *gridWorld) read(name string) (fresh []gift) {
	now, cancel := context.WithCancel(w.Context())
	cancel()
	c, m := w.conns[name], w.grid.machines[name]
	list, err := c.Next(now)
	if err != nil && !errors.Is(err, context.Canceled) {
		w.Fatalf("stream of %s: %v", name, err)
	}
	for _, d := range list {
		t := w.grid.tasks[d.Job.ID]
		switch {
		case d.Voided:
			if _, twice := c.heard[d.Lease.Token]; twice {
				w.Fatalf("%s was told twice that its run of %s ended", name, w.call(t))
			}
			c.heard[d.Lease.Token] = d.Ending
		case d.Held:
			if c.awaits--; t == nil || t.live(d.Lease.Token) == nil || c.awaits < 0 {
				w.Fatalf("%s was handed back %s", name, w.call(t))
			}
		default:
			fresh = append(fresh, gift{d, m, c.serves, false})
		}
	}
	return fresh
}

// granted holds a delivery against who should be next. Of the machines with room
// any may have asked; a task may be handed on to one that it prefers.
func (w *gridWorld) granted(d gift) {
	g, t := w.grid, w.grid.tasks[d.Job.ID]
	if t == nil || d.to == nil {
		w.Fatalf("a task was given to nobody, or an unknown one")
	}
	asked, fits := w.asked(d, t)
	for !fits && w.preempt() { // its slot was taken from another one
		asked, fits = w.asked(d, t)
	}
	if !fits || t.spent() { // I2
		for name, t := range asked {
			w.Logf("%s: %s", name, w.call(t))
		}
		for _, c := range g.claims() {
			w.Logf("session %s: weight %d, %d wait, %d run, share %d", c.name, c.weight, c.waiting, c.running, c.target)
		}
		w.Fatalf("%s was given %s", d.to.name, w.call(t))
	}
	if slices.ContainsFunc(w.given, func(h handed) bool { return h.token == d.Lease.Token }) {
		w.Fatalf("the token of %s was issued before", w.call(t))
	}
	if string(d.Payload) != t.body {
		w.Fatalf("the payload of %s is %q", w.call(t), d.Payload)
	}
	stop := job.Millis(0)
	if q := t.session.set; q.Grid.OnTimeout == job.TimeoutRetry && q.Grid.PollPeriod == 0 {
		stop = q.RunTimeout
	}
	if d.StopAfter != stop {
		w.Fatalf("the engine of %s is to stop it after %s, want %s", w.call(t), d.StopAfter, stop)
	}
	g.take(t, d.to, d.Lease.Token)
	w.given = append(w.given, handed{t, d.Lease.Token})
}

// asked is what each machine with room would be given, and whether one of them
// explains a delivery.
func (w *gridWorld) asked(d gift, t *task) (asked map[string]*task, fits bool) {
	asked = map[string]*task{}
	for name, m := range w.grid.machines {
		if serves, waits := w.waits(d, m); waits && w.grid.room(m) > 0 {
			asked[name] = w.grid.pick(m, serves)
			fits = fits || asked[name] == t && (m == d.to || w.prefers(d, t, m))
		}
	}
	return asked, fits
}

// waits reports whether a machine waits for tasks, and of which sessions.
func (w *gridWorld) waits(d gift, m *machine) (serves []string, is bool) {
	if d.poll {
		return d.serves, m == d.to
	}
	c := w.conns[m.name]
	if c == nil {
		return nil, false
	}
	return c.serves, true
}

// prefers reports whether a task that came to m may be handed on to the machine
// that it was given to: it failed, or was not begun, and is free to go elsewhere.
func (w *gridWorld) prefers(d gift, t *task, m *machine) bool {
	elsewhere := t.undelivered() || t.retries > 0 && t.session.set.Grid.RetryElsewhere
	return elsewhere && w.grid.room(d.to) > 0 && t.fits(d.to) && !t.session.excludes(d.to) && t.reluctance(d.to) < t.reluctance(m)
}

// settle lets engine and model do what is due now: one thing leads to another, at
// most twice.
func (w *gridWorld) settle() {
	w.grid.settled()
	for range 3 {
		_, err := enginetest.Stats(w.Context(), w.Engine) // a command wakes the clock too
		w.must(err)
		w.grid.tick()
	}
	w.drop()
	w.tell()
	w.hear()
}

// tell notes what streams must be told: of every run that ended now, and not by
// the word of its machine.
func (w *gridWorld) tell() {
	for _, h := range w.given {
		i := slices.IndexFunc(h.task.past, func(r *attempt) bool { return r.token == h.token })
		if i < 0 {
			continue
		}
		r := h.task.past[i]
		own := r.how == job.ByOK || r.how == job.ByRetry || r.how == job.ByDead || r.why == job.AttemptReleased
		if c := w.conns[r.machine]; c != nil && !own && !r.heard {
			c.told[r.token] = r.how
		}
		r.heard = true
	}
}

// drop forgets the streams of machines that are lost: the server ended them.
func (w *gridWorld) drop() {
	for name, c := range w.conns {
		if m := w.grid.machines[name]; m == nil || m.lost {
			c.Close()
			delete(w.conns, name)
		}
	}
}

// pass lets time go by, to each moment at which something is due.
func (w *gridWorld) pass(t *rapid.T) {
	if one(t, "engines live", true, true, false) {
		w.live()
	}
	w.wait(one[job.Millis](t, "span", 1, 250, 1000, 2600, 9000, 16_000))
}

// live is a heartbeat of every machine.
func (w *gridWorld) live() {
	for _, name := range slices.Sorted(maps.Keys(w.grid.machines)) {
		if m := w.grid.machines[name]; !m.lost {
			w.beat(m, gridpart.Beat{Epoch: m.epoch}, nil, nil, accepted)
		}
	}
}

func (w *gridWorld) wait(span job.Millis) {
	g, end := w.grid, w.grid.now+span
	for g.now < end {
		next := g.nextTime()
		if next == 0 {
			next = end
		}
		next = min(max(next, g.now+1), end)
		<-time.After(time.Duration(next-g.now) * time.Millisecond)
		g.now = next
		w.settle()
	}
}

// call names a task by its session and key.
func (w *gridWorld) call(t *task) string {
	if t == nil {
		return "nothing"
	}
	return fmt.Sprintf("task %s of %s", t.key, t.session.name)
}
