package grid_test

import (
	"fmt"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// What random histories of the grid (A42) hold to invariants I6, I7 and I9:
// tasks that stand aside, the slots that are in use, and whose result counts.

// needsOf gives some tasks a key, by which those that come later in the session
// may depend on them; these draw nothing.
func (c *chaos) needsOf(session, name string) func(*engine.NewJob) {
	switch n := len(c.names); {
	case n%8 == 0:
		c.last[session] = name
		return needs(name, 0)
	case n%4 == 1 && c.last[session] != "":
		return needs("", job.OnDepFail(n/4%2), c.last[session])
	}
	return task
}

// checkAside is I6 of a task that waits for another: that one is open, and it is
// in no line and on no engine itself.
func (c *chaos) checkAside(v store.Reader, j *job.Job) error {
	if f := j.Needs(); f != nil && j.State == job.Dead && j.Deliveries == 0 {
		c.seen["failed for another"]++
	}
	id, aside := rule.NeededBy(j.Park)
	if !aside || !j.State.Open() {
		return nil
	}
	c.seen["aside for another"]++
	needed, err := v.Get(id)
	if needed == nil || !needed.State.Open() || len(j.Leases) > 0 {
		c.Errorf("I6: %s waits for %s with %d runs", c.Names[j.ID], c.Names[id], len(j.Leases))
	}
	return err
}

// checkSlots is I7: what runs for sessions is what engines say they run, and who
// is lost runs nothing.
func (c *chaos) checkSlots() {
	machines, err := c.Part.Grid.Engines(c.Context(), "", 1000)
	if err != nil {
		c.Error(err)
	}
	busy, running, alive, out, fit := 0, 0, 0, 0, 0
	for _, m := range machines {
		alive += oneOf(!m.Lost)
		out += oneOf(m.Health.State != job.HealthWell)
		fit += oneOf(!m.Lost && !m.Draining && len(m.Stopping) == 0 && plan.HealthAdmits(m.Health, 0) > 0)
		if busy += m.Running; m.Lost && m.Running > 0 {
			c.Errorf("I7: %s is lost and runs %d tasks", m.Name, m.Running)
		}
	}
	for _, name := range c.sessions {
		if _, d, err := c.Queue(c.Context(), name); err == nil {
			running += int(d.Leases)
		}
	}
	if a, o, f, known := c.Part.Grid.Fleet(c.Context()); known && (a != alive || o != out || f != fit) {
		c.Errorf("%d engines live, %d are barred and %d may be given tasks; known are %d, %d and %d", alive, out, fit, a, o, f)
	}
	if busy != running {
		c.Errorf("I7: %d slots are busy, and %d tasks run", busy, running)
	}
}

// wrongToken is an answer under a token that nobody was given: nothing counts.
func (c *chaos) wrongToken(g given) {
	forged := g.d.Lease.Token
	forged[len(forged)-1]++
	before := c.Job(c.called(g))
	if before == nil || len(c.given)%8 > 0 || forged.Start() != c.start { // an unknown one of an earlier start may be one that a crash forgot
		return
	}
	if v := c.Try(engine.Settle{ID: g.d.Job.ID, Token: forged, Outcome: job.OK}); v.Err == nil {
		c.Errorf("I9: %s was settled under a token that nobody has", c.called(g))
	}
}

// acceptedLate wants a run that counts after its end to have been given up for
// lost, or to be one that a crash forgot.
func (c *chaos) acceptedLate(before *job.Job, token job.Token) {
	if before == nil {
		return
	}
	i := slices.IndexFunc(before.History(), func(a job.Attempt) bool { return a.Token == token.Hash() })
	if i < 0 {
		return
	}
	a := before.History()[i]
	switch unknown := a.Charged == job.ChargedNothing; {
	case a.Why == job.AttemptUndelivered && unknown:
	case slices.Contains([]job.AttemptEnd{job.AttemptLost, job.AttemptRestarted, job.AttemptOK, job.AttemptLate}, a.Why):
	default:
		c.Errorf("I9: %s has the result of an attempt that was over: %s", c.Names[before.ID], fmt.Sprint(a))
	}
}

// refusedLate counts the results that were thrown away although their task is open.
func (c *chaos) refusedLate(before *job.Job, how job.Outcome) {
	if before != nil && before.State.Open() && how == job.OK {
		c.seen["late and refused"]++
	}
}
