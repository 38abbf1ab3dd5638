package engine

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Tasks that depend on others (grid.md 9) are put aside under one that they wait
// for, and looked at again when that one is over. The rules are rule.Depends.

// taskKey names a task by its session and the client's number of it.
type taskKey struct{ session, key string }

// checkNeeds refuses tasks that depend on what nobody has submitted, before
// anything is written.
func (r *run) checkNeeds(list []NewJob, out []Added) error {
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
func (r *run) taskByKey(session, key string) (job.ID, error) {
	want := job.Receipt{Hash: keyOf(job.DoorGrid, session, key)}
	row, err := r.tx.Row(job.Receipts, want.Key())
	if known, ok := row.(*job.Receipt); ok && known.Expires > r.now {
		return known.Job, err
	}
	return job.ID{}, err
}

// needing gives a task the ids of those that it depends on. What they are called
// was checked; those of the same call have their receipts by now.
func (r *run) needing(n *NewJob) error {
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
func (r *run) depends(j *job.Job) error {
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
		_, err := r.step(j, rule.Command{Verb: rule.Cancel, Reason: job.Killed, Failure: job.Failure{
			Type: job.DependencyFailed, Message: "task " + which.String() + " failed, which it depends on",
		}})
		return err
	case rule.NeedsWait:
		return r.park(j, rule.NeedsPark(which))
	case rule.NeedsNothing:
	}
	if j.Park == "" {
		return nil
	}
	r.woken[j.Queue] = true
	return r.park(j, "")
}

// tellDependents looks again at the tasks that waited for those that are over
// now, and at those that waited for tasks which fail for that.
func (r *run) tellDependents() error {
	for len(r.over) > 0 {
		id := r.over[0]
		r.over = r.over[1:]
		for {
			ids, err := r.tx.Parked(rule.NeedsPark(id), sessionPage)
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
			if len(ids) < sessionPage {
				break
			}
		}
	}
	return nil
}

// dependent takes in a task that depends on others; from then on its session
// looks at what ends.
func (r *run) dependent(j *job.Job) error {
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
