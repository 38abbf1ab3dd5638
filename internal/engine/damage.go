package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// What cannot be read from the disk any more costs the jobs whose it is, and no
// others: they are dead with the reason rejected, and their failures say where.

// damagedQueue has the jobs of which nothing is known but that they were there.
const damagedQueue = "damaged"

// Unread is what is told of a job whose payload cannot be read to who only looks: one
// that waits is given up at once, with a failure that says where. What a worker has
// already it may finish.
func (e *Engine) Unread(ctx context.Context, j *job.Job) (*job.Job, error) {
	why := e.bodies.damaged(j)
	if why == nil || !j.State.Open() || j.State == job.Leased {
		return j, why
	}
	if err := e.RejectUnread(ctx, j, why); err != nil {
		return j, err
	}
	err := e.View(ctx, func(v store.Reader) error {
		now, err := v.Get(j.ID)
		if now != nil {
			j = now
		}
		return err
	})
	return j, err
}

// rejectOpen rejects a job that is not over.
func (r *mending) rejectOpen(id job.ID, why string) error {
	j, err := r.tx.Get(id)
	if err != nil || j == nil || !j.State.Open() {
		return err
	}
	return r.Reject(j, why)
}

// rejectUnreadable makes the jobs dead that the store keeps and cannot read.
func (r *mending) rejectUnreadable() error {
	for _, u := range r.tx.Unreadable() {
		stub := &job.Job{
			ID: u.ID, Payload: u.Payload, PayloadSize: u.Size, Queue: damagedQueue, Type: damagedQueue, State: job.Ready,
			Created: r.now, RetainDone: job.Unset, RetainDead: job.Unset, Copies: 1, CopiesWanted: 1,
		}
		eff := rule.SetAside(stub, r.now, r.hooks.seq, "corrupt: its row cannot be read, so its queue and settings are not known: "+u.Why)
		if err := r.write(nil, eff); err != nil {
			return err
		}
		r.stats.Died++
		r.rejected = append(r.rejected, u.ID)
		if err := r.e.parts.rejected(r.Tx, stub, &eff); err != nil {
			return err
		}
	}
	return nil
}

// RejectUnread gives up a job that is not over and cannot be read.
func (e *Engine) RejectUnread(ctx context.Context, j *job.Job, why error) error {
	return e.Do(ctx, 0, func(r *Tx) error { return r.rejectOpen(j.ID, unreadBecause(why)) })
}

// reject gives up a job that is not over; nobody waits for that.
func (e *Engine) reject(id job.ID, why string) {
	e.tell(func(r *Tx) error { return r.rejectOpen(id, why) })
}

func unreadBecause(why error) string { return "corrupt: its payload cannot be read: " + why.Error() }

// Bodies reads payloads for who only looks: one that cannot be read is nil.
func (e *Engine) Bodies(refs ...job.ID) ([][]byte, error) { return e.bodies.look(refs...) }

// Shown is the payload of a job as JSON, for people, searches and workers.
func (e *Engine) Shown(j *job.Job, payload []byte) []byte { return e.parts.show(j, payload) }

// Payload reads one payload, or says why it cannot be read.
func (e *Engine) Payload(ref job.ID) ([]byte, error) { return e.bodies.one(ref) }
