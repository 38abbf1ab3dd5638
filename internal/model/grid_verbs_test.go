package model

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
)

// What drivers and engines do in a random history.

var driver = job.Actor{Name: "driver"}

func (w *gridWorld) session(t *rapid.T) *session {
	var list []string
	over := one(t, "be it over", false, false, true)
	for name, s := range w.grid.sessions {
		if !s.state.Ended() || over {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	if len(list) == 0 {
		t.SkipNow()
	}
	return w.grid.sessions[one(t, "session", list...)]
}

func (w *gridWorld) machine(t *rapid.T) *machine {
	list := slices.Sorted(maps.Keys(w.grid.machines))
	if len(list) == 0 {
		t.SkipNow()
	}
	return w.grid.machines[one(t, "engine", list...)]
}

// open opens a session, each a moment later: their age decides between equals.
func (w *gridWorld) open(t *rapid.T) {
	alive := 0
	for _, s := range w.grid.sessions {
		if !s.state.Ended() {
			alive++
		}
	}
	if alive == 3 || len(w.grid.sessions) == 5 {
		t.SkipNow()
	}
	w.wait(1)
	name := fmt.Sprint(one(t, "first letter", "a", "b", "c"), len(w.names)) // not in the order of their age
	q := drawSession(t, name)
	got, err := w.Grid.OpenSession(w.Context(), gridpart.NewSession{Queue: *q}, driver)
	w.must(err)
	q.RetainDead = job.MaxMillis // with their session
	if got.Name != name || got.Created != w.grid.now {
		w.Fatalf("opened %+v", got.Session)
	}
	_, err = w.Grid.OpenSession(w.Context(), gridpart.NewSession{Queue: *q}, driver)
	w.refused("open again", err, job.Exists)
	w.names = append(w.names, name)
	w.grid.sessions[name] = &session{name: name, set: q, created: w.grid.now, heard: w.grid.now}
}

func (w *gridWorld) submit(t *rapid.T) { w.submitTo(t, w.session(t)) }

func (w *gridWorld) submitTo(t *rapid.T, s *session) {
	var list []engine.NewJob
	for range rapid.IntRange(1, 3).Draw(t, "tasks") {
		w.drawn++
		n := engine.NewJob{Key: fmt.Sprint(w.drawn), Payload: fmt.Appendf(nil, "task %d", w.drawn), Job: job.Job{
			Queue: s.name, Type: "task", Priority: 1, Door: job.DoorGrid, RetainDone: job.Unset, RetainDead: job.Unset,
		}}
		if one(t, "fast", false, false, false, true) {
			n.Job.Requires = []job.Requirement{{Property: "cpu", Op: ">", Value: "1"}}
		}
		if known := w.grid.ofSession(s); len(known) > 0 && one(t, "needs one", false, false, false, false, true) {
			n.Needs = append(n.Needs, known[rapid.IntRange(0, len(known)-1).Draw(t, "that")].key)
		}
		if len(list) > 0 && one(t, "needs the one before", false, false, false, false, true) {
			n.Needs = append(n.Needs, list[len(list)-1].Key)
		}
		n.OnDepFail = one(t, "on dep fail", job.DepFail, job.DepRun)
		list = append(list, n)
	}
	if one(t, "needs what nobody knows", false, false, false, false, false, false, false, true) {
		list[0].Needs = append(list[0].Needs, "nobody")
	}
	w.send(list)
}

// submitAgain repeats a submit, as a driver that heard no answer does; or claims
// its number for another task.
func (w *gridWorld) submitAgain(t *rapid.T) {
	if len(w.sent) == 0 {
		t.SkipNow()
	}
	n := rapid.SampledFrom(w.sent).Draw(t, "task")
	if one(t, "other", false, false, true) {
		n.Payload = []byte("another task")
	}
	w.send([]engine.NewJob{n})
}

func (w *gridWorld) send(list []engine.NewJob) {
	g := w.grid
	s, want := g.sessions[list[0].Job.Queue], accepted
	known := make([]*task, len(list))
	for i, n := range list {
		known[i] = g.byKey(n.Job.Queue, n.Key)
		switch {
		case known[i] != nil && known[i].body != string(n.Payload):
			want = job.Exists
		case known[i] != nil || want != accepted:
		case slices.Contains(n.Needs, "nobody"):
			want = job.Invalid
		}
	}
	if want == accepted && s != nil && s.state != job.SessionOpen && slices.Contains(known, nil) {
		want = job.WrongState
	}
	if s != nil {
		s.heard = g.now
	}
	added, err := w.Put(w.Context(), slices.Clone(list))
	if w.refused("submit", err, want) {
		return
	}
	for i, a := range added {
		if k := known[i]; k != nil {
			if !a.Duplicate || a.ID != k.id || (a.Job == nil) != k.gone {
				w.Fatalf("%s was submitted again: %+v", w.call(k), a)
			}
			continue
		}
		if a.Duplicate || g.tasks[a.ID] != nil {
			w.Fatalf("%s of %s is no new task: %+v", list[i].Key, s.name, a)
		}
		t := &task{
			id: a.ID, session: s, key: list[i].Key, body: string(list[i].Payload), fast: len(list[i].Job.Requires) > 0,
			state: job.Ready, place: g.draw(), due: g.now, want: 1,
		}
		for _, key := range list[i].Needs {
			t.needs = append(t.needs, g.byKey(s.name, key))
		}
		t.onFail = list[i].OnDepFail
		g.tasks[a.ID] = t
		g.depends(t)
		w.sent = append(w.sent, list[i])
	}
}

// byKey is the task of a session with the number of its driver, nil if there is none.
func (g *grid) byKey(session, key string) *task {
	for _, t := range g.tasks {
		if t.session.name == session && t.key == key {
			return t
		}
	}
	return nil
}

// login takes a machine in, which may have been here before: then it tells which
// of its runs it has yet.
func (w *gridWorld) login(t *rapid.T) {
	g := w.grid
	name := one(t, "engine", "x", "y", "z")
	if w.conns[name] != nil && !one(t, "anew", false, false, false, true) {
		t.SkipNow()
	}
	l := gridpart.Login{Name: name, Host: one(t, "host", "h", "i", "j"), Slots: one(t, "slots", 2, 1, 3)}
	m := &machine{name: l.Name, host: l.Host, slots: l.Slots, fast: rapid.Bool().Draw(t, "fast"), until: g.now + lostAfter}
	l.Properties = map[string]string{"cpu": "1"}
	if m.fast {
		l.Properties["cpu"] = "2"
	}
	var kept map[job.Token]bool
	var stop []gridpart.Running
	l.Running, stop, kept = w.tells(t, m)
	in, err := w.Grid.Login(w.Context(), l)
	w.must(err)
	if c := w.conns[m.name]; c != nil {
		c.Close()
		delete(w.conns, m.name)
	}
	old := g.machines[m.name]
	if m.epoch = in.Engine.Epoch; len(w.epochs[m.name]) > 0 && m.epoch <= slices.Max(w.epochs[m.name]) {
		w.Fatalf("the epoch of %s is %d after %v", m.name, m.epoch, w.epochs[m.name])
	}
	w.epochs[m.name] = append(w.epochs[m.name], m.epoch)
	if !slices.Equal(in.Stop, stop) {
		w.Fatalf("%s is to stop %v, want %v", m.name, in.Stop, stop)
	}
	unbegun := job.ByLapse // in a life before this one
	if len(l.Running) > 0 {
		unbegun = job.ByUndelivered
	}
	w.untold(m, old, kept, g.now, unbegun)
	g.returns(old)
	g.machines[m.name] = m
	w.settle() // a loss may have cancelled a session
	w.attach(t, m)
}

// tells is what a machine says that it has, be it over, what of that is over, and
// what goes on.
func (w *gridWorld) tells(t *rapid.T, m *machine) (running, stop []gridpart.Running, kept map[job.Token]bool) {
	running, kept = []gridpart.Running{}, map[job.Token]bool{}
	for _, h := range w.given {
		r := h.task.live(h.token)
		own := r != nil && r.machine == m.name
		if own && !one(t, "has it yet", true, true, true, false) || !own && !one(t, "has this one", false, false, false, true) {
			continue
		}
		run := gridpart.Running{ID: h.task.id, Token: h.token}
		running = append(running, run)
		if kept[h.token] = own; !own {
			stop = append(stop, run)
		}
	}
	return running, stop, kept
}

// untold ends the runs that a machine was given by a time and does not tell of, those
// that it had not begun so. old is what the machine was before.
func (w *gridWorld) untold(m, old *machine, kept map[job.Token]bool, by job.Millis, unbegun job.Ending) {
	w.grid.leaves(m, func(r *attempt) job.Ending {
		switch {
		case kept[r.token] || r.since > by:
			return job.ByOK // it goes on
		case old == nil || old.awaited: // it could not be told of
			return job.ByRestart
		case r.started == 0:
			return unbegun
		}
		return job.ByLapse
	})
}

// connect begins the stream of a machine, or ends it, or begins it anew.
func (w *gridWorld) connect(t *rapid.T) {
	m := w.machine(t)
	if w.conns[m.name] != nil && rapid.Bool().Draw(t, "break off") {
		w.conns[m.name].Close()
		delete(w.conns, m.name)
		return
	}
	w.attach(t, m)
}

func (w *gridWorld) attach(t *rapid.T, m *machine) {
	var serves []string
	if list := slices.Sorted(maps.Keys(w.grid.sessions)); len(list) > 0 && one(t, "serves one", false, false, false, false, false, true) {
		serves = list[:1]
	}
	epoch, want := w.epoch(t, m)
	s, err := w.Grid.EngineStream(w.Context(), m.name, epoch, 0, serves)
	if w.refused("connect", err, want) {
		return
	}
	w.grid.returns(m)
	c := &gridConn{Stream: s, serves: serves, told: map[job.Token]job.Ending{}, heard: map[job.Token]job.Ending{}, awaits: w.grid.running(m)}
	w.conns[m.name] = c
	w.hear()
}

// epoch is that of the login of a machine, or of an earlier one, which is refused.
func (w *gridWorld) epoch(t *rapid.T, m *machine) (int64, job.Kind) {
	epoch, want := m.epoch, accepted
	if one(t, "earlier epoch", false, false, false, false, true) {
		epoch = one(t, "epoch", w.epochs[m.name]...)
	}
	if m.lost || epoch != m.epoch {
		want = job.Superseded
	}
	return epoch, want
}

// takeSome is a machine that asks call by call, and has no stream: the room of one
// that does both is counted by its stream, which does not know of its calls.
func (w *gridWorld) takeSome(t *rapid.T) {
	w.takeBy(t, w.machine(t))
}

func (w *gridWorld) takeBy(t *rapid.T, m *machine) {
	epoch, want := w.epoch(t, m)
	most := rapid.IntRange(1, 3).Draw(t, "most")
	now, cancel := context.WithCancel(w.Context())
	cancel()
	list, err := w.Grid.EngineLease(now, m.name, epoch, most, nil)
	if w.refused("take", err, want) {
		return
	}
	m.polls = true
	var own []gift
	for _, d := range list {
		own = append(own, gift{d, m, nil, true})
	}
	if w.hear(own...) {
		return
	}
	if next := w.grid.pick(m, nil); next != nil && len(list) < most && w.grid.room(m) > 0 {
		w.Fatalf("%s was given %d tasks of %d, although %s is in line", m.name, len(list), most, w.call(next))
	}
}

// mute is an engine without a stream that lives, and of what it was given says
// nothing for a while: an answer may have been lost on its way.
func (w *gridWorld) mute(t *rapid.T) {
	m := w.machine(t)
	if c := w.conns[m.name]; c != nil {
		c.Close()
		delete(w.conns, m.name)
	}
	w.submit(t)
	w.settle()
	w.takeBy(t, m)
	for range one(t, "heartbeats", 3, 3, 2) {
		w.live()
		w.wait(5*job.Second + one[job.Millis](t, "more", 0, 1))
	}
	if w.grid.machines[m.name] == m {
		w.tellsAll(t, m)
	}
}

// heartbeat is the word of a machine that it lives, and that it stopped what it was
// told to.
func (w *gridWorld) heartbeat(t *rapid.T) {
	m := w.machine(t)
	epoch, want := w.epoch(t, m)
	b := gridpart.Beat{Epoch: epoch}
	if rapid.Bool().Draw(t, "stopped") {
		b.Stopped = m.stopping
	}
	w.beat(m, b, nil, nil, want)
}

// tellsAll is a heartbeat that names what the machine has.
func (w *gridWorld) tellsAll(t *rapid.T, m *machine) {
	epoch, want := w.epoch(t, m)
	running, stop, kept := w.tells(t, m)
	w.beat(m, gridpart.Beat{Epoch: epoch, Running: running}, stop, kept, want)
}

// beat is a heartbeat of a machine, which is told what of what it has is over.
func (w *gridWorld) beat(m *machine, b gridpart.Beat, stop []gridpart.Running, kept map[job.Token]bool, want job.Kind) {
	out, err := w.Grid.Heartbeat(w.Context(), m.name, b)
	if w.refused("heartbeat", err, want) {
		return
	}
	if !slices.Equal(out.Stop, stop) {
		w.Fatalf("%s is to stop %v, want %v", m.name, out.Stop, stop)
	}
	if b.Running != nil && w.conns[m.name] == nil { // over a stream it got all that it has
		w.untold(m, m, kept, w.grid.now-lostAfter, job.ByUndelivered)
	}
	w.grid.returns(m)
	if m.until, m.awaited = w.grid.now+lostAfter, false; b.Stopped != nil {
		m.stopping = nil
	}
	if b.Running != nil {
		w.settle()
	}
}

// begun is the word that a run began.
func (w *gridWorld) begun(t *rapid.T) {
	h := w.any(t)
	list, err := w.Extend(w.Context(), []engine.Extension{{ID: h.task.id, Token: h.token, Started: true}})
	w.must(err)
	r, want := h.task.live(h.token), accepted
	switch {
	case h.task.gone:
		want = job.NotFound
	case r == nil:
		want = job.Superseded
	}
	if !w.refused("started", list[0].Err, want) {
		w.grid.begin(h.task, r)
	}
}

// any is a run, be it over.
func (w *gridWorld) any(t *rapid.T) handed {
	if len(w.given) == 0 {
		t.SkipNow()
	}
	return w.given[rapid.IntRange(0, len(w.given)-1).Draw(t, "run")]
}

func (w *gridWorld) settleLive(t *rapid.T) {
	live := slices.DeleteFunc(slices.Clone(w.given), func(h handed) bool { return h.task.live(h.token) == nil })
	if len(live) == 0 {
		t.SkipNow()
	}
	w.say(t, live[rapid.IntRange(0, len(live)-1).Draw(t, "run")])
}

// settleAny settles a run that may be over, or under the token of another task, or
// none, or one that nobody has.
func (w *gridWorld) settleAny(t *rapid.T) {
	h := w.any(t)
	switch one(t, "token", "its own", "its own", "its own", "another", "none", "made up") {
	case "another":
		h.token = w.any(t).token
	case "none":
		h.token = job.Token{}
	case "made up":
		h.token = job.Token{1}
	}
	w.say(t, h)
}

func (w *gridWorld) say(t *rapid.T, h handed) {
	s := engine.Settle{ID: h.task.id, Token: h.token, Outcome: one(t, "outcome", job.OK, job.OK, job.OK, job.Retried, job.Retried, job.Released, job.Died)}
	switch s.Outcome {
	case job.OK:
		s.Result = one(t, "result", nil, []byte("1"), []byte(`{"made":2}`), bytes.Repeat([]byte("1"), 257))
	case job.Retried, job.Died:
		s.Failure = job.Failure{Type: one(t, "error", "E", "E", "E", job.LoadError), Message: "boom"}
		s.Failure.Timeout = one(t, "timeout", false, false, false, true)
	case job.Released:
	}
	list, err := w.Settle(w.Context(), []engine.Settle{s})
	w.must(err)
	repeat := h.task.state == job.Done
	state, kind := w.grid.settle(s)
	if w.refused("settle", list[0].Err, kind) {
		return
	}
	if list[0].State != state {
		w.Fatalf("%s was settled as %s, want %s", w.call(h.task), list[0].State, state)
	}
	if by, has := w.won[h.task.id]; s.Outcome == job.OK && has && (by != h.token || !repeat) { // I1
		w.Fatalf("%s has two accepted results", w.call(h.task))
	}
	if s.Outcome == job.OK {
		w.won[h.task.id] = h.token
	}
}

// collect reads results behind a cursor, and acknowledges some of them.
func (w *gridWorld) collect(t *rapid.T) {
	s := w.session(t)
	numbers := []int64{0, s.collected}
	for _, k := range w.grid.ofSession(s) {
		if k.number > 0 {
			numbers = append(numbers, k.number)
		}
	}
	slices.Sort(numbers)
	after, n := one(t, "after", numbers...), rapid.IntRange(1, 4).Draw(t, "at most")
	w.results(s, after, n)
	if rapid.Bool().Draw(t, "acknowledge") {
		upTo := one(t, "up to", numbers...)
		if w.shown(s) == nil {
			return
		}
		_, err := w.Grid.Collected(w.Context(), s.name, upTo)
		w.must(err)
		s.heard, s.collected = w.grid.now, max(s.collected, upTo)
	}
}
