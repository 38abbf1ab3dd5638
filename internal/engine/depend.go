package engine

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Tasks that depend on others (grid.md 9) are put aside under one that they wait
// for, and looked at again when that one is over. The rules are rule.Depends.

// taskKey names a task by its session and the client's number of it.
type taskKey struct{ session, key string }

// checkNeeds refuses tasks that depend on what nobody has submitted, before
// anything is written.
func (r *Tx) checkNeeds(list []NewJob, out []Added) error {
	var here map[taskKey]bool
	for i := range list {
		n := &list[i]
		for _, key := range n.Needs {
			if out[i].Duplicate || here[taskKey{n.Job.Queue, key}] {
				continue
			}
			id, err := r.taskByKey(n.Job.Queue, key)
			if err != nil {
				return err
			}
			if id.IsZero() {
				return &job.Error{
					Kind: job.Invalid, Field: "needs",
					Text: fmt.Sprintf("task %s needs task %s, which was not submitted; submit it before, or together with it", n.Key, key),
				}
			}
		}
		if n.Job.Door == job.DoorGrid && n.Key != "" {
			if here == nil {
				here = map[taskKey]bool{}
			}
			here[taskKey{n.Job.Queue, n.Key}] = true
		}
	}
	return nil
}

// taskByKey finds a task by its receipt; zero = there is none.
func (r *Tx) taskByKey(session, key string) (job.ID, error) {
	want := job.Receipt{Hash: keyOf(job.DoorGrid, session, key)}
	row, err := r.tx.Row(job.Receipts, want.Key())
	if known, ok := row.(*job.Receipt); ok && known.Expires > r.now {
		return known.Job, err
	}
	return job.ID{}, err
}

// needing gives a task the ids of those that it depends on. What they are called
// was checked; those of the same call have their receipts by now.
func (r *Tx) needing(n *NewJob) error {
	needs := &job.Needs{OnFail: n.OnDepFail}
	for _, key := range n.Needs {
		id, err := r.taskByKey(n.Job.Queue, key)
		if err != nil {
			return err
		}
		needs.Tasks = append(needs.Tasks, id)
	}
	x := job.Extras{}
	if n.Job.Extras != nil {
		x = *n.Job.Extras
	}
	x.Needs, n.Job.Extras = needs, &x
	return nil
}

// depends puts a task where it belongs: aside, into its line, or among the
// failed.
func (r *Tx) depends(j *job.Job) error {
	var bad error
	needs := j.Needs()
	verdict, which := rule.Depends(needs.Tasks, needs.OnFail, func(id job.ID) job.State {
		other, err := r.tx.Get(id)
		if other == nil || err != nil {
			bad = err
			return job.None
		}
		return other.State
	})
	if bad != nil {
		return bad
	}
	switch verdict {
	case rule.NeedsFail:
		_, err := r.Step(j, rule.Command{Verb: rule.Cancel, Reason: job.Killed, Failure: job.Failure{
			Type: job.DependencyFailed, Message: "task " + which.String() + " failed, which it depends on",
		}})
		return err
	case rule.NeedsWait:
		return r.Park(j, rule.NeedsPark(which))
	case rule.NeedsNothing:
		if j.Affinity() != nil && j.Deliveries == 0 {
			return r.follow(j)
		}
	}
	if j.Park == "" {
		return nil
	}
	r.woken[j.Queue] = true
	return r.Park(j, "")
}

// dependentsMost bounds the tasks that one transaction tells that one of those
// which they need is over; the next one goes on, and others are served between.
const dependentsMost = 500

// tellDependents looks again at the tasks that waited for those that are over
// now, and at those that waited for tasks which fail for that. Who was not told
// yet stays aside and is found again after a start (loadOver).
func (r *Tx) tellDependents() error {
	for left := dependentsMost; len(r.over) > 0 && left > 0; {
		id := r.over[0]
		other, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if other != nil && other.State.Open() { // it was brought back: they wait for it again
			r.over = r.over[1:]
			continue
		}
		ids, err := r.tx.Parked(rule.NeedsPark(id), left)
		if err != nil {
			return err
		}
		for _, waits := range ids {
			j, err := r.tx.Get(waits)
			if err == nil {
				err = r.depends(j)
			}
			if err != nil {
				return err
			}
		}
		if left -= len(ids); left > 0 {
			r.over = r.over[1:]
		}
	}
	r.ticked = r.ticked || len(r.over) > 0
	return nil
}

// loadOverOf finds the tasks of a session that are over and whose dependents were
// not all told when the server ended.
func (c *committer) loadOverOf(v store.Reader, session string) error {
	seen := map[job.ID]bool{}
	waiting := store.Filter{Queues: []string{session}, States: []job.State{job.Scheduled, job.Ready}}
	for {
		list, err := v.List(waiting, tickMax)
		if err != nil {
			return err
		}
		for _, j := range list {
			waiting.From = j.ID
			id, aside := rule.NeededBy(j.Park)
			if !aside || seen[id] {
				continue
			}
			seen[id] = true
			other, err := v.Get(id)
			if err != nil {
				return err
			}
			if other == nil || other.State.Terminal() {
				c.over = append(c.over, id)
			}
		}
		if len(list) < tickMax {
			return nil
		}
	}
}

// dependent takes in a task that depends on others; from then on its session
// looks at what ends.
func (r *Tx) dependent(j *job.Job) error {
	known, err := r.aSession(j.Queue)
	if err != nil {
		return err
	}
	if !known.Depends {
		s := *known
		s.Depends = true
		r.changeSession(&s)
	}
	return r.depends(j)
}
