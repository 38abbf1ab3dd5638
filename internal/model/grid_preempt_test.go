package model

import (
	"cmp"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Pre-emption: an urgent session that is below its share takes slots of others
// (grid.md 9, reference section 6).

const (
	protected   = 30 * job.Second // a run at its beginning
	preemptions = 5               // a task that was returned so often is left alone
)

// hurry fills the engines with what other sessions have, and has a session become
// urgent when that runs for as long as it is protected, or sooner.
func (w *gridWorld) hurry(t *rapid.T) {
	s := w.session(t)
	if s.state != job.SessionOpen {
		t.SkipNow()
	}
	for range 2 {
		w.submit(t)
		w.settle()
	}
	at := one(t, "after so many times ten seconds", 3, 3, 0)
	for i := range 4 {
		if i == at && s.state == job.SessionOpen {
			urgent := func(q *job.Queue) error { q.Grid.Urgent, q.Grid.Suspended = true, false; return nil }
			_, err := w.Grid.ChangeSession(w.Context(), s.name, urgent, driver)
			w.must(err)
			_ = urgent(s.set)
			w.settle()
			w.submitTo(t, s)
			w.settle()
		}
		for _, h := range w.given { // what does not begin is given out again and again
			if r := h.task.live(h.token); r != nil && r.started == 0 {
				_, err := w.Extend(w.Context(), []engine.Extension{{ID: h.task.id, Token: h.token, Started: true}})
				w.must(err)
				w.grid.begin(h.task, r)
			}
		}
		if i < 3 {
			w.live()
			w.wait(10 * job.Second)
		}
	}
}

// suits is the task of an urgent session below its share that a machine would be
// given which waits for tasks, or asks for them call by call; but none of those that
// have a place. nil = there is none.
func (w *gridWorld) suits(m *machine, claims []*claim, placed map[*task]bool) *task {
	conn := w.conns[m.name]
	if g := w.grid; !m.able() || conn == nil && !m.polls || g.room(m) < 0 { // the end of a run frees no slot of one that has too many
		return nil
	}
	for _, c := range claims {
		all := w.grid.ofSession(c.session)
		gets := c.running
		for _, t := range all {
			gets += oneOf(placed[t])
		}
		if !c.set.Grid.Urgent || gets >= c.target || c.excludes(m) {
			continue
		}
		if !w.serves(m.name, c.name) {
			continue
		}
		line := slices.DeleteFunc(all, func(t *task) bool { return !t.inLine() || !t.fits(m) || placed[t] })
		if len(line) > 0 {
			return slices.MinFunc(line, foremost)
		}
	}
	return nil
}

func oneOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// preempt ends as many runs as urgent sessions lack slots, less those that are free,
// where their tasks may run: of sessions above their share, which keep that, the
// lowest weight first, the newest run first.
func (w *gridWorld) preempt() (some bool) {
	g, claims := w.grid, w.grid.claims()
	lack := 0
	for _, c := range claims {
		if limit := c.set.Grid.MaxEngines; c.set.Grid.Urgent && c.weight > 0 && (limit == 0 || c.running < limit) {
			lack += max(0, min(c.target-c.running, c.waiting))
		}
	}
	if lack == 0 {
		return false
	}
	suits := map[string]bool{}
	for name, m := range g.machines {
		suits[name] = w.suits(m, claims, nil) != nil
	}
	placed := map[*task]bool{} // there is a slot for it, or will be
	place := func(m *machine) bool {
		t := w.suits(m, claims, placed)
		placed[t] = t != nil
		return t != nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.machines)) {
		m := g.machines[name]
		for n := g.room(m); suits[name] && n > 0 && place(m); n-- {
			lack--
		}
	}
	type victim struct {
		*claim
		t *task
		r *attempt
	}
	var list []victim
	for _, c := range claims {
		for _, t := range g.ofSession(c.session) {
			for _, r := range t.runs {
				if !c.set.Grid.Urgent && suits[r.machine] && t.evictions < preemptions && r.since+protected <= g.now {
					list = append(list, victim{c, t, r})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b victim) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(b.r.since, a.r.since))
	})
	for _, v := range list {
		if lack <= 0 || v.running <= v.target || !place(g.machines[v.r.machine]) {
			continue
		}
		lack--
		v.running--
		g.finish(v.t, v.r, job.ByPreempt, job.AttemptPreempted)
		v.t.evict(v.r)
		g.back(v.t, v.t.session.set.Grid.EvictedPlace)
		g.fence(v.t)
		some = true
	}
	if some {
		g.settled()
		for range 2 { // it may be the end of a task, and of its session
			g.tick()
		}
		w.tell()
	}
	return some
}
