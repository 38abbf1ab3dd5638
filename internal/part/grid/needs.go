package grid

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Tasks that depend on others (grid.md 9) are put aside under one that they wait
// for, and looked at again when that one is over. The rules are rule.Depends.

// needs is the room of tasks that wait for others.
type needs struct {
	*Grid
	known []job.ID // tasks that ended, whose dependents are not all told; replaced, never changed
	over  []job.ID // the same, as the transaction has it
}

// taskKey names a task by its session and the client's number of it.
type taskKey struct{ session, key string }

// check refuses tasks that depend on what nobody has submitted, before
// anything is written.
func (g *needs) check(tx *engine.Tx, list []engine.NewJob, out []engine.Added) error {
	var here map[taskKey]bool
	for i := range list {
		n := &list[i]
		for _, key := range n.Needs {
			if out[i].Duplicate || here[taskKey{n.Job.Queue, key}] {
				continue
			}
			id, err := g.needs.taskByKey(tx, n.Job.Queue, key)
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
func (g *needs) taskByKey(tx *engine.Tx, session, key string) (job.ID, error) {
	want := job.Receipt{Hash: engine.KeyOf(job.DoorGrid, session, key)}
	known, err := store.Row[*job.Receipt](tx.Store(), want.Key())
	if known != nil && known.Expires > tx.Now() {
		return known.Job, err
	}
	return job.ID{}, err
}

// prepare gives a task the ids of those that it depends on. What they are called
// was checked; those of the same call have their receipts by now.
func (g *needs) prepare(tx *engine.Tx, n *engine.NewJob) error {
	if len(n.Needs) == 0 {
		return nil
	}
	needs := &job.Needs{OnFail: n.OnDepFail}
	for _, key := range n.Needs {
		id, err := g.needs.taskByKey(tx, n.Job.Queue, key)
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
func (g *needs) depends(tx *engine.Tx, j *job.Job) error {
	var bad error
	needs := j.Needs()
	verdict, which := rule.Depends(needs.Tasks, needs.OnFail, func(id job.ID) job.State {
		other, err := tx.Store().Get(id)
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
		_, err := tx.Step(j, rule.GiveUp(rule.ByNeed, "task "+which.String()+" failed, which it depends on"))
		return err
	case rule.NeedsWait:
		return tx.Park(j, rule.NeedsPark(which))
	case rule.NeedsNothing:
		if j.Affinity() != nil && j.Deliveries == 0 {
			return g.tags.follow(tx, j)
		}
	}
	if j.Park == "" {
		return nil
	}
	tx.Wake(j.Queue)
	return tx.Park(j, "")
}

// dependentsMost bounds the tasks that one transaction tells that one of those
// which they need is over; the next one goes on, and others are served between.
const dependentsMost = 500

// tell looks again at the tasks that waited for those that are over
// now, and at those that waited for tasks which fail for that. Who was not told
// yet stays aside and is found again after a start (load).
func (g *needs) tell(tx *engine.Tx) error {
	for left := dependentsMost; len(g.needs.over) > 0 && left > 0; {
		id := g.needs.over[0]
		other, err := tx.Store().Get(id)
		if err != nil {
			return err
		}
		if other != nil && other.State.Open() { // it was brought back: they wait for it again
			g.needs.over = g.needs.over[1:]
			continue
		}
		ids, err := tx.Store().IDs(store.Parked(rule.NeedsPark(id)), left)
		if err != nil {
			return err
		}
		for _, waits := range ids {
			j, err := tx.Store().Get(waits)
			if err == nil {
				err = g.needs.depends(tx, j)
			}
			if err != nil {
				return err
			}
		}
		if left -= len(ids); left > 0 {
			g.needs.over = g.needs.over[1:]
		}
	}
	if len(g.needs.over) > 0 {
		tx.More()
	}
	return nil
}

// load finds the tasks of a session that are over and whose dependents were
// not all told when the server ended.
func (g *needs) load(v store.Reader, session string) error {
	seen := map[job.ID]bool{}
	waiting := store.Filter{Queues: []string{session}, States: []job.State{job.Scheduled, job.Ready}}
	for {
		list, err := v.List(waiting, engine.TickMax)
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
				g.needs.known = append(g.needs.known, id)
			}
		}
		if len(list) < engine.TickMax {
			return nil
		}
	}
}

// add takes in a task that depends on others; from then on its session
// looks at what ends.
func (g *needs) add(tx *engine.Tx, j *job.Job) error {
	known, err := g.sessions.find(tx, j.Queue)
	if err != nil {
		return err
	}
	if !known.Depends {
		s := *known
		s.Depends = true
		g.sessions.change(&s)
	}
	return g.needs.depends(tx, j)
}
