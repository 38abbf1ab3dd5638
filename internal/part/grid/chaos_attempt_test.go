package grid_test

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/model/account"
)

// What random histories of the grid (A42) hold attempts, the word to commit and
// fences to.

// commit asks for a run whether its effects count.
func (c *chaos) commit(g given) {
	name := c.called(g)
	before := c.Job(name)
	if before == nil {
		return
	}
	live := before.LeaseOf(g.d.Lease.Token) >= 0
	yes, _, err := c.Part.Grid.TryCommit(c.Context(), before.Queue, before.ID, g.d.Lease.Token)
	if err != nil || yes != live {
		c.Errorf("a run of %s that is live: %t was answered %t, %v", name, live, yes, err)
	}
	if yes && len(before.Leases) > 1 {
		c.seen["one of two commits"]++
	}
}

// unconfirmed are the ends of which the engine has not said that it stopped.
var unconfirmed = []job.AttemptEnd{
	job.AttemptLost, job.AttemptTimeout, job.AttemptEvicted, job.AttemptPreempted, job.AttemptWithdrawn, job.AttemptUndelivered, job.AttemptRestarted,
}

// checkAttempts holds the history of a task against its counters and its leases.
func (c *chaos) checkAttempts(q *job.Queue, j *job.Job) {
	name, all := c.Names[j.ID], j.History()
	commits, charged := 0, map[job.Charge]uint32{}
	for _, l := range j.Leases {
		commits += oneOf(l.Commits)
	}
	if commits > 0 && (len(j.Leases) > 1 || j.CopiesWanted > 1) {
		c.Errorf("A19: %s has a run that commits, and another one: %+v", name, j.Leases)
	}
	if q.NonIdempotent && len(j.Leases) > 1 {
		c.Errorf("A18: %s runs %d times at once", name, len(j.Leases))
	}
	whole := true // else a crash forgot one, or very many ended
	for i := range all {
		a := &all[i]
		charged[a.Charged]++
		whole = whole && a.Number > 0
		if a.Number > 0 && slices.ContainsFunc(all[:i], func(b job.Attempt) bool { return b.Number == a.Number }) {
			c.Errorf("%s has two attempts with the number %d: %+v", name, a.Number, all)
		}
		for n, since := range c.laterStarts(j, a.Number) {
			if fence := a.Ended.Add(q.Grid.FenceWait); q.NonIdempotent && a.Number > 0 && since < fence && slices.Contains(unconfirmed, a.Why) {
				c.Errorf("A18: attempt %d at %s began %s before the fence of attempt %d", n, name, fence-since, a.Number)
			}
		}
	}
	if len(all)+len(j.Leases) != int(j.Deliveries) || !whole {
		return
	}
	if j.Attempts != charged[job.ChargedRetry] || j.Evictions != charged[job.ChargedEviction] {
		c.Errorf("%s has %d retries and %d evictions, its history %+v", name, j.Attempts, j.Evictions, all)
	}
	if died := slices.ContainsFunc(all, func(a job.Attempt) bool { return a.Why == job.AttemptError }) && j.Reason == job.Killed; !died && j.Overrides == 0 {
		c.checkReplay(q, j)
	}
	if won := slices.ContainsFunc(all, func(a job.Attempt) bool { return a.Why == job.AttemptOK || a.Why == job.AttemptLate }); won != (j.State == job.Done) {
		c.Errorf("I1: %s is %s, its history %+v", name, j.State, all)
	}
}

// checkReplay holds a task against the second account of it: what is said here is
// I5, that nothing but a charge changes a counter.
func (c *chaos) checkReplay(q *job.Queue, j *job.Job) {
	want, err := replayed(j, q)
	if want.State == job.Ready && j.State == job.Scheduled {
		want.State = job.Scheduled // behind a fence
	}
	if want.Reschedules < j.Reschedules {
		want.Reschedules = j.Reschedules // a copy that did not run left no attempt
	}
	want.InLine, want.Asked = false, 0
	got := account.Tally{
		State: j.State, Reason: j.Reason, Live: len(j.Leases), Retries: j.Attempts, Reschedules: j.Reschedules,
		Evictions: j.Evictions, Losses: j.Losses, Runs: j.Deliveries, Results: want.Results,
	}
	if c.seen["replayed"]++; err != nil || got != want {
		c.Errorf("%s is %+v, its attempts make it %+v: %v\n%+v\n%+v", c.Names[j.ID], got, want, err, j.History(), j.Leases)
	}
}

// laterStarts is when the attempts behind a number were given out.
func (c *chaos) laterStarts(j *job.Job, number uint32) map[uint32]job.Millis {
	out := map[uint32]job.Millis{}
	for _, a := range j.History() {
		if a.Number > number {
			out[a.Number] = a.Since
		}
	}
	for _, l := range j.Leases {
		if l.Number > number {
			out[l.Number] = l.Since
		}
	}
	return out
}
