package rule

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// There are three kinds of queues: plain ones, sessions (Grid) and inboxes
// (Turns). A task belongs to its session, and a session has nothing but tasks.

// Misplaced reports whether a job is in a queue that its door's rules do not
// hold for: a task outside a session, or another job in one.
func Misplaced(j *job.Job, q *job.Queue) bool { return (j.Door == job.DoorGrid) != (q.Grid != nil) }

// MayMove refuses what a move of an open job to another queue would break.
// counted is whether the queue it leaves counts what runs.
func MayMove(j *job.Job, from, to *job.Queue, counted bool) error {
	refuse := func(format string, args ...any) error {
		return &job.Error{Kind: job.WrongState, Field: "queue", Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case j.Door == job.DoorGrid:
		return refuse("job %s is a task of session %q and cannot be moved to another queue; submit it to another session instead", j.ID, from.Name)
	case to.Grid != nil:
		return refuse("queue %q is a session, to which no job can be moved; submit a task to it instead", to.Name)
	case from.Outlet != to.Outlet:
		output := from.Name
		if to.Outlet {
			output = to.Name
		}
		return refuse("queue %q is that of an output of a pipeline; a job cannot be moved into it or out of it", output)
	case from.Turns != to.Turns:
		inbox := from.Name
		if to.Turns {
			inbox = to.Name
		}
		return refuse("queue %q is an inbox; a job cannot be moved into an inbox or out of one, put it there instead", inbox)
	case j.Order == job.OrderStrict:
		return refuse("job %s belongs to the strictly ordered group %q, which it cannot leave", j.ID, j.Group)
	case j.Group != "" && to.Order == job.OrderStrict:
		return refuse("job %s has the group %q, and groups of queue %q are strictly ordered; it cannot join one", j.ID, j.Group, to.Name)
	case j.State == job.Leased && (j.Group != "" || counted):
		return refuse("job %s is in flight, and its queue or group counts what runs; move it when it is back", j.ID)
	}
	return nil
}

// SetAside is an open job that cannot be applied, or whose handling failed for a
// fault of the server: it is dead, with the reason rejected, and stays until an
// operator deletes or replays it. Nothing but the job is looked at, because
// nothing else about it can be trusted.
func SetAside(old *job.Job, now job.Millis, seq func() int64, message string) Effect {
	j, e := old.Clone(), Effect{}
	endAll(j, job.ByCancel, &e, true)
	v := View{Now: now, Job: old, Queue: &job.Queue{}, Seq: seq}
	if j.Door == job.DoorGrid {
		v.Queue.Grid = &job.Grid{} // it gets a number among the finished
	}
	note(v, j, job.Failure{Type: "SetAside", Message: message}, &e)
	leaveBudget(j)
	lay(v, j, job.Rejected)
	j.HoldsKey, j.PurgeAt, e.Job = false, 0, j
	return e
}
