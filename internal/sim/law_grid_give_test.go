package sim_test

import (
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
)

// To whom a task may be given: not twice where it must not run twice, not to an
// engine that its session excludes or the grid suspects, and by its tag.

// givenBy holds a run that an engine got to that.
func (t *taskScene) givenBy(name string, l job.Lease, row *job.Holder) {
	written := func(table job.Table, key string) bool { // in this commit: nobody can tell if before or after
		return slices.ContainsFunc(t.changes, func(c change) bool { return c.table == table && c.key == key })
	}
	s, engine := t.session(t.old.Queue), strings.TrimPrefix(l.Holder, "e/")
	switch a := t.old.Affinity(); {
	case t.q.NonIdempotent && len(t.new.Leases) > 1:
		broken("A18", "%s must not run twice, and does", name)
	case t.old.Committed():
		broken("A19", "%s was given to %s, and another run commits", name, l.Holder)
	case t.q.Grid.Exclusion != nil && plan.Excluded(s.Strikes, engine) && !written(job.Sessions, s.Name):
		broken("A26", "%s was given to %s, which its session excludes: %+v", name, l.Holder, s.Strikes)
	case barred(row.Engine) && !written(job.Holders, l.Holder):
		broken("A28", "%s was given to %s, which is %s", name, l.Holder, row.Engine.Health.State)
	case a != nil && len(a.For) > 0 && t.old.Deliveries == 0 && !slices.Contains(a.For, l.Holder):
		broken("A24", "%s was given to %s and is kept for %v", name, l.Holder, a.For)
	case a != nil && len(a.For) > 0 && t.old.Deliveries == 0:
		t.coverage.feature("a task for which an engine of its tag was kept")
	}
}

func barred(m *job.GridEngine) bool {
	return m.Health.State == job.HealthSuspended || m.Health.State == job.HealthQuarantined
}

// mayRun reports whether nothing but its place keeps a task from a free engine,
// as far as that is known for sure.
func (w *world) mayRun(j *job.Job, q *job.Queue, m *job.GridEngine) bool {
	a := j.Affinity()
	return q.Grid.Exclusion == nil && m.Health.State == job.HealthWell && (a == nil || len(a.For) == 0)
}

// strikes notes what a session holds against engines, and that its client is gone.
func (x *judge) strikes(s *job.Session) {
	if slices.ContainsFunc(s.Strikes, func(s job.Strike) bool { return s.Out }) {
		x.coverage.feature("an engine excluded")
	}
	if s.State >= job.SessionCancelling && strings.Contains(s.Why, "client_timeout") {
		x.coverage.feature("a client given up")
	}
}

// notAlone reports whether the loss of an engine is no fault of the task: from half
// of the limit on it is delivered alone, and then only a run that was alone on its
// engine counts (core.md 5).
func (t *taskScene) notAlone(l *job.Lease) bool {
	if t.q.Grid.LossesCharged {
		return false
	}
	if half := (t.q.Retry.LossLimitValue() + 1) / 2; t.old.Losses+t.lost >= half && !l.Exclusive {
		t.coverage.feature("a loss that is no fault of its task")
		return true
	}
	t.lost++
	return false
}

// overForGood reports whether the history of a task says of a run that it was not
// lost: failed, given back, overrun or superseded, it never settles again.
func overForGood(j *job.Job, t job.Token) bool {
	return slices.ContainsFunc(j.History(), func(a job.Attempt) bool {
		given := a.Why == job.AttemptLost || a.Why == job.AttemptRestarted || a.Why == job.AttemptUndelivered && a.Charged == job.ChargedNothing
		return !t.IsZero() && a.Token == t.Hash() && !given
	})
}
