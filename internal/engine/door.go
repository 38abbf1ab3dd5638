package engine

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// DoorSettingsMax bounds what doors may keep, each name of each door one.
const DoorSettingsMax = 10_000

// inboxWindow is how long the receipt of a message of an inbox outlives its
// job at least (core.md section 7).
const inboxWindow = job.Day

// taskWindow is how long the number of a task is known: a driver that comes back
// may send again what it does not know to be here.
const taskWindow = 30 * job.Day

// window is how long a receipt of work outlives its job.
func (e *Engine) window(d job.Door) job.Millis {
	switch d {
	case job.DoorInbox:
		return max(e.opts.Idempotency, inboxWindow)
	case job.DoorGrid:
		return max(e.opts.Idempotency, taskWindow)
	default:
		return e.opts.Idempotency
	}
}

// DoorSettings returns what a door keeps, by name.
func (e *Engine) DoorSettings(ctx context.Context, d job.Door) (list []*job.DoorSetting, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		rows, err := v.Rows(job.DoorSettings, "", DoorSettingsMax)
		for _, row := range rows {
			if s := row.(*job.DoorSetting); s.Door == d {
				list = append(list, s)
			}
		}
		return err
	})
	return list, err
}

// SetDoor keeps what a door says about a name, and changes the settings of the
// queue of that name with it, in one transaction. edit may run twice. tell
// makes of a body what the audit log shows.
func (e *Engine) SetDoor(ctx context.Context, s job.DoorSetting, edit func(*job.Queue) error, tell func(body []byte) string, by job.Actor) error {
	return e.Do(ctx, 0, func(r *Tx) error {
		old, err := r.doorSetting(s.Door, s.Name)
		if err != nil {
			return err
		}
		if old == nil {
			if err := r.oneMoreDoor(); err != nil {
				return err
			}
		}
		if q, err := r.Queue(s.Name); err != nil {
			return err
		} else if s.Door == job.DoorInbox && !q.Turns && q.Grid == nil {
			if err := r.mayTurn(s.Name); err != nil {
				return err
			}
		}
		if _, err := r.setQueue(s.Name, edit, by); err != nil {
			return err
		}
		kept := s // a second run writes another row
		if err := r.tx.Set(&kept); err != nil {
			return err
		}
		change := job.Change{Field: "settings", From: "null", To: tell(s.Body)}
		if old != nil {
			if bytes.Equal(old.Body, s.Body) {
				return nil
			}
			change.From = tell(old.Body)
		}
		return r.Audit(by, "set "+s.Door.String(), s.Name, 0, change)
	})
}

// mayTurn refuses to make an inbox of a queue with other work in it, or to come.
func (r *Tx) mayTurn(name string) error {
	if d := r.tx.Depth(name); d.Open() > d.Grouped {
		return &job.Error{Kind: job.Exists, Field: "name", Text: fmt.Sprintf(
			"queue %q holds %d jobs without a group, which are no messages; let workers finish them, move or delete them, or take another name", name, d.Open()-d.Grouped)}
	}
	return r.NoneInto(name)
}

// DropDoor forgets what a door keeps about a name, and gives the queue of that
// name, which must have no open job, the settings of one that nobody used.
func (e *Engine) DropDoor(ctx context.Context, d job.Door, name string, by job.Actor) error {
	return e.Do(ctx, 0, func(r *Tx) error {
		old, err := r.doorSetting(d, name)
		if err == nil && old == nil {
			err = job.Errorf(job.NotFound, "there is no %s %q", d, name)
		}
		q, failed := r.EditQueue(name)
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		if depth := r.tx.Depth(name); q.Grid == nil && depth.Open() > 0 {
			return job.Errorf(job.WrongState, "%s %q has %d that are not finished; delete those, or let them finish", d, name, depth.Open())
		}
		if _, err := r.setQueue(name, withoutDoor, by); err != nil {
			return err
		}
		if err := r.tx.Unset(job.DoorSettings, old.Key()); err != nil {
			return err
		}
		return r.Audit(by, "delete "+d.String(), name, 0)
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

func (r *Tx) doorSetting(d job.Door, name string) (*job.DoorSetting, error) {
	row, err := r.tx.Row(job.DoorSettings, job.DoorKey(d, name))
	s, _ := row.(*job.DoorSetting)
	return s, err
}

// notInbox refuses a job for an inbox: it would have neither the group nor the
// place among its messages that the settings of the inbox give them.
func (r *Tx) notInbox(q *job.Queue) error {
	s, err := r.doorSetting(job.DoorInbox, q.Name)
	if err != nil || s == nil {
		return err
	}
	return &job.Error{
		Kind: job.WrongState, Field: "queue",
		Text: fmt.Sprintf("queue %q is an inbox; send messages to it with POST /inboxes/%s/messages", q.Name, url.PathEscape(q.Name)),
	}
}

func (r *Tx) oneMoreDoor() error {
	rows, err := r.tx.Rows(job.DoorSettings, "", DoorSettingsMax)
	if err == nil && len(rows) == DoorSettingsMax {
		return job.Errorf(job.OverLimit, "the doors may keep %d names together; delete some", DoorSettingsMax)
	}
	return err
}

// Recall finds the job that came with an idempotency key, by its receipt. It is
// zero where there is none, or not any more.
func (e *Engine) Recall(ctx context.Context, d job.Door, queue, key string) (id job.ID, err error) {
	receipt := job.Receipt{Hash: KeyOf(d, queue, key)}
	err = e.View(ctx, func(v store.Reader) error {
		row, err := v.Row(job.Receipts, receipt.Key())
		if known, ok := row.(*job.Receipt); ok && known.Expires > v.Now() {
			id = known.Job
		}
		return err
	})
	return id, err
}
