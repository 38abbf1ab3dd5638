package model

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/rule"
)

// What strategies, operators and owners of sessions do in a random history.

// task is one that was submitted, be it over or gone.
func (w *gridWorld) task(t *rapid.T) *task {
	if len(w.sent) == 0 {
		t.SkipNow()
	}
	list := slices.SortedFunc(maps.Values(w.grid.tasks), func(a, b *task) int { return a.id.Compare(b.id) })
	return list[rapid.IntRange(0, len(list)-1).Draw(t, "task")]
}

// offer wants a copy of a task.
func (w *gridWorld) offer(t *rapid.T) {
	running := w.grid.list(func(k *task) bool { return len(k.runs) > 0 })
	k := w.task(t)
	if len(running) > 0 && one(t, "one that runs", true, true, true, false) {
		k = running[rapid.IntRange(0, len(running)-1).Draw(t, "running")]
	}
	want := accepted
	switch {
	case k.gone:
		want = job.NotFound
	case k.state != job.Leased:
		want = job.WrongState
	case k.barred():
		want = job.OverLimit
	}
	_, err := enginetest.Operate(w.Context(), w.Engine.Engine, k.id, rule.Command{Verb: rule.Offer})
	if !w.refused("offer", err, want) {
		w.grid.oneMore(k)
	}
}

// tryCommit asks for a run whether its effects count.
func (w *gridWorld) tryCommit(t *rapid.T) {
	h := w.any(t)
	yes, state, err := w.Grid.TryCommit(w.Context(), h.task.session.name, h.task.id, h.token)
	if h.task.gone {
		w.refused("try commit", err, job.NotFound)
		return
	}
	w.must(err)
	if want := w.grid.commit(h.task, h.token); yes != want || state != h.task.state {
		w.Fatalf("a run of %s was answered %t, %s, want %t", w.call(h.task), yes, state, want)
	}
}

func (w *gridWorld) cancelTask(t *rapid.T) {
	k := w.task(t)
	want := accepted
	switch {
	case k.gone:
		want = job.NotFound
	case !k.state.Open():
		want = job.WrongState
	}
	_, err := w.Desk.Do(w.Context(), driver, desk.Cancel(driver, ""), k.id)
	if !w.refused("cancel", err, want) {
		w.grid.cancel(k)
	}
}

// drain lets a machine end what it runs and gives it nothing more.
func (w *gridWorld) drain(t *rapid.T) {
	m := w.machine(t)
	epoch, want := w.epoch(t, m)
	_, err := w.Grid.Drain(w.Context(), m.name, epoch, driver)
	if w.refused("drain", err, want) {
		return
	}
	w.grid.returns(m)
	m.draining = true
	m.until, m.awaited = w.grid.now+lostAfter, false // it spoke itself
}

// logoff takes a machine out: what it runs goes back without blame, and it is told.
func (w *gridWorld) logoff(t *rapid.T) {
	m := w.machine(t)
	epoch, want := w.epoch(t, m)
	if w.refused("log off", w.Grid.Logoff(w.Context(), m.name, epoch, driver), want) {
		return
	}
	w.grid.leaves(m, func(*attempt) job.Ending { return job.ByEvict })
	w.tell()
	delete(w.grid.machines, m.name)
	w.hear()
	w.drop()
}

// weigh changes the settings of a session that is not over.
func (w *gridWorld) weigh(t *rapid.T) {
	s, want := w.session(t), accepted
	if s.state >= job.SessionCancelling {
		want = job.WrongState
	}
	weight, most := one[uint8](t, "weight", 5, 1, 2, 9, 0), one(t, "max engines", 0, 0, 1, 3)
	suspended, urgent := one(t, "suspended", false, false, false, false, true), one(t, "urgent", false, false, true)
	edit := func(q *job.Queue) error {
		q.Grid.Weight, q.Grid.MaxEngines, q.Grid.Suspended, q.Grid.Urgent = weight, most, suspended, urgent
		return nil
	}
	_, err := w.Grid.ChangeSession(w.Context(), s.name, edit, driver)
	if !w.refused("change session", err, want) {
		_ = edit(s.set)
	}
}

// endSession closes a session or cancels it, which a session that is over ignores.
func (w *gridWorld) endSession(t *rapid.T) {
	s := w.session(t)
	if one(t, "cancel", false, false, false, true) {
		_, err := w.Grid.CancelSession(w.Context(), s.name, "", driver)
		w.must(err)
		if s.state < job.SessionCancelling {
			s.state = job.SessionCancelling
		}
		return
	}
	_, err := w.Grid.CloseSession(w.Context(), s.name, driver)
	w.must(err)
	if s.heard = w.grid.now; s.state == job.SessionOpen {
		s.state = job.SessionClosed
	}
}

func (w *gridWorld) deleteSession(t *rapid.T) {
	s, want := w.session(t), accepted
	if !s.state.Ended() {
		want = job.WrongState
	}
	if !w.refused("delete session", w.Grid.DeleteSession(w.Context(), s.name, driver), want) {
		s.dropped = true
	}
}

func (w *gridWorld) restart(t *rapid.T) {
	away := one[job.Millis](t, "away", 0, 1500, 12_000)
	w.end()
	<-time.After(time.Duration(away) * time.Millisecond)
	clear(w.conns)
	w.grid.restart(away)
	w.begin()
	w.settle()
	if one(t, "nobody comes back in time", false, false, true) {
		w.wait(reattach + 1)
	}
}
