package sim_test

import (
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
)

// Where a task runs next that failed, or that its engine did not begin (docs/grid.md,
// retry_elsewhere; A37; reference sections 2, S5, and 6), written without package
// rule: not where it was, if another engine that may run it has a free slot at the
// moment at which it is given out. That nothing waits for that, idleEngines says.

// How little a task should run on an engine.
const (
	willing   = iota
	sameHost  // another engine of the host failed it
	failed    // it did itself
	unstarted // it was the latest to have the task, and did not begin it
)

// shuns is how little a task should run on an engine, as its history says.
func (t *taskScene) shuns(holder, host string) (most int) {
	list := t.old.History()
	if n := len(list); n > 0 && list[n-1].Why == job.AttemptUndelivered && list[n-1].Holder == holder {
		return unstarted
	}
	for _, a := range list {
		counts := (a.Why == job.AttemptError || a.Why == job.AttemptTimeout) && t.q.Grid.RetryElsewhere
		switch {
		case counts && a.Holder == holder:
			return failed
		case counts && a.Host == host:
			most = sameHost
		}
	}
	return most
}

// elsewhere holds a run that an engine got against the others that could have had it.
func (t *taskScene) elsewhere(name string, l job.Lease, row *job.Holder) {
	mine := t.shuns(l.Holder, row.Engine.Host)
	if mine > willing {
		t.coverage.feature("a task where it was before: " + [...]string{"", "its host", "it failed", "not begun"}[mine])
	}
	went := false
	for _, h := range t.w.streams {
		m := t.couldRun(h, l.Holder)
		if m == nil {
			continue
		}
		theirs := t.shuns(h.name, m.Host)
		if theirs < mine {
			broken("docs/grid.md, retry_elsewhere; A37", "%s was given to %s (%d), where it was before, and %s (%d) has a free slot: %+v", name, l.Holder, mine, h.name, theirs, t.old.History())
		}
		went = went || theirs >= failed && mine < theirs
	}
	switch n := len(t.old.History()); {
	case went && t.old.History()[n-1].Why == job.AttemptUndelivered:
		t.coverage.feature("a task that was not begun and went elsewhere")
	case went:
		t.coverage.feature("a task that failed and went elsewhere")
	}
}

// couldRun is an engine, but one, that has a free slot and may run the task, as far
// as that is known for sure; nil = it has not, or must not.
func (t *taskScene) couldRun(h *holder, but string) *job.GridEngine {
	row, _ := t.book.rows[rowKey{job.Holders, h.name}].(*job.Holder)
	written := func(table job.Table, key string) bool { // in this commit: nobody can tell if before or after
		return slices.ContainsFunc(t.changes, func(c change) bool { return c.table == table && c.key == key })
	}
	if h.name == but || h.gone || h.closing || t.w.holders[h.name] != h || row == nil || written(job.Holders, h.name) {
		return nil
	}
	m := row.Engine
	held := 0
	for _, j := range t.book.jobs {
		if j.HeldBy(h.name) {
			held++
		}
	}
	out := m.Lost || m.Draining || len(m.Stopping) > 0 || m.Health.State != job.HealthWell || held >= min(m.Slots, h.prefetch)
	if out || t.old.HeldBy(h.name) || !t.q.Grid.AnyHost && t.old.RunsOn(m.Host) {
		return nil
	}
	s, a := t.session(t.old.Queue), t.old.Affinity()
	if a != nil && len(a.For) > 0 && !slices.Contains(a.For, h.name) {
		return nil
	}
	if t.q.Grid.Exclusion != nil && (written(job.Sessions, s.Name) || plan.Excluded(s.Strikes, strings.TrimPrefix(h.name, "e/"))) {
		return nil
	}
	return m
}
