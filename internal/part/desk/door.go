package desk

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// doorsMax bounds what doors may keep, each name of each door one.
const doorsMax = 10_000

// Doors returns what a door keeps, by name.
func (d *Desk) Doors(ctx context.Context, door job.Door) (list []*job.DoorSetting, err error) {
	err = d.engine.View(ctx, func(v store.Reader) error {
		list, err = store.Rows[*job.DoorSetting](v, "", doorsMax)
		list = slices.DeleteFunc(list, func(s *job.DoorSetting) bool { return s.Door != door })
		return err
	})
	return list, err
}

// SetDoor keeps what a door says about a name, and changes the settings of the
// queue of that name with it, in one transaction. edit may run twice. tell
// makes of a body what the audit log shows.
func (d *Desk) SetDoor(ctx context.Context, s job.DoorSetting, edit func(*job.Queue) error, tell func(body []byte) string, by job.Actor) error {
	return d.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		old, err := doorSetting(tx.Store(), s.Door, s.Name)
		if err != nil {
			return err
		}
		if old == nil {
			if err := oneMoreDoor(tx); err != nil {
				return err
			}
		}
		if q, err := tx.Queue(s.Name); err != nil {
			return err
		} else if s.Door == job.DoorInbox && !q.Turns && q.Grid == nil {
			if err := mayTurn(tx, s.Name); err != nil {
				return err
			}
		}
		if _, err := setQueue(tx, s.Name, edit, by); err != nil {
			return err
		}
		kept := s // a second run writes another row
		if err := tx.Store().Set(&kept); err != nil {
			return err
		}
		change := job.Change{Field: "settings", From: "null", To: tell(s.Body)}
		if old != nil {
			if bytes.Equal(old.Body, s.Body) {
				return nil
			}
			change.From = tell(old.Body)
		}
		return tx.Audit(by, "set "+s.Door.String(), s.Name, 0, change)
	})
}

// mayTurn refuses to make an inbox of a queue with other work in it, or to come.
func mayTurn(tx *engine.Tx, name string) error {
	if d := tx.Store().Depth(name); d.Open() > d.Grouped {
		return &job.Error{Kind: job.Exists, Field: "name", Text: fmt.Sprintf(
			"queue %q holds %d jobs without a group, which are no messages; let workers finish them, move or delete them, or take another name", name, d.Open()-d.Grouped)}
	}
	return tx.NoneInto(name)
}

// DropDoor forgets what a door keeps about a name, and gives the queue of that
// name, which must have no open job, the settings of one that nobody used.
func (d *Desk) DropDoor(ctx context.Context, door job.Door, name string, by job.Actor) error {
	return d.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		old, err := doorSetting(tx.Store(), door, name)
		if err == nil && old == nil {
			err = job.Errorf(job.NotFound, "there is no %s %q", door, name)
		}
		q, failed := tx.EditQueue(name)
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		if depth := tx.Store().Depth(name); q.Grid == nil && depth.Open() > 0 {
			return job.Errorf(job.WrongState, "%s %q has %d that are not finished; delete those, or let them finish", door, name, depth.Open())
		}
		if _, err := setQueue(tx, name, withoutDoor, by); err != nil {
			return err
		}
		if err := tx.Store().Unset(job.DoorSettings, old.Key()); err != nil {
			return err
		}
		return tx.Audit(by, "delete "+door.String(), name, 0)
	})
}

// withoutDoor gives a queue the settings of one that nobody used. A session, which an
// earlier version let an inbox take over, keeps its own.
func withoutDoor(q *job.Queue) error {
	if q.Grid == nil {
		*q = *job.NewQueue(q.Name)
		return nil
	}
	q.Turns, q.Order, q.Concurrency, q.OnDead, q.Protection = false, job.OrderNone, 0, job.DeadSkip, job.Protection{}
	q.AgeCap, q.GraceDelay = 0, 0
	return nil
}

func doorSetting(v store.Reader, door job.Door, name string) (*job.DoorSetting, error) {
	return store.Row[*job.DoorSetting](v, job.DoorKey(door, name))
}

// takes refuses a job for an inbox that is no message: it would have neither the group
// nor the place among its messages that the settings of the inbox give them. What has
// turns and is no inbox takes it.
func takes(tx *engine.Tx, q *job.Queue, j *job.Job) error {
	var text string
	switch {
	case j.Door == job.DoorInbox && !q.Turns:
		text = fmt.Sprintf("queue %q is no inbox; `problem` of GET /inboxes/%s says why, or make it one with PUT", q.Name, url.PathEscape(q.Name))
	case q.Outlet && j.Door != job.DoorPipeline:
		text = fmt.Sprintf("queue %q is that of an output of a pipeline; send records to an input of the pipeline, or take another queue", q.Name)
	case j.Door == job.DoorJobs && q.Turns:
		if s, err := doorSetting(tx.Store(), job.DoorInbox, q.Name); err != nil || s == nil {
			return err
		}
		text = fmt.Sprintf("queue %q is an inbox; send messages to it with POST /inboxes/%s/messages", q.Name, url.PathEscape(q.Name))
	default:
		return nil
	}
	return &job.Error{Kind: job.WrongState, Field: "queue", Text: text}
}

func oneMoreDoor(tx *engine.Tx) error {
	rows, err := tx.Store().Rows(job.DoorSettings, "", doorsMax)
	if err == nil && len(rows) == doorsMax {
		return job.Errorf(job.OverLimit, "the doors may keep %d names together; delete some", doorsMax)
	}
	return err
}
