package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Patch is what shall change about an open job.
type Patch struct {
	Queue string // where it moves to; "" = it stays
	// Edit changes ReadyAt, Priority, Retry, retention, ExpiresAt and timeouts of
	// the copy it is given, whose old state it may look at. It may run twice.
	Edit func(j *job.Job, now job.Millis)

	Payload []byte // a new one, of a job that does not run; nil = it stays
}

// Patch changes one open job. A finished one is refused with WrongState, and
// so is a move to another queue that rule.MayMove refuses. A queue without room
// refuses the move with OverLimit.
func (e *Engine) Patch(ctx context.Context, by job.Actor, id job.ID, p Patch) (Verdict, error) {
	var out Verdict
	err := e.Do(ctx, len(p.Payload), func(r *Tx) error {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if j == nil || !Visible(r.tx, j) {
			return NoJob(id)
		}
		eff, err := r.patch(j, p)
		if err != nil {
			return err
		}
		if out, err = VerdictOf(eff, nil); err != nil {
			return err
		}
		return r.Audit(by, "patch", id.String(), 1)
	})
	return Answered(&out, err)
}

func (r *Tx) patch(j *job.Job, p Patch) (rule.Effect, error) {
	if !j.State.Open() {
		status := "dead"
		if j.State == job.Done {
			status = "completed"
		}
		return rule.Effect{}, job.Errorf(job.WrongState, "cannot patch job %s in %s status", j.ID, status)
	}
	queue := j.Queue
	if p.Queue != "" && p.Queue != queue {
		if err := r.mayMove(j, p.Queue); err != nil {
			return rule.Effect{}, err
		}
		queue = p.Queue
	}
	ref, err := r.newPayload(j, p.Payload)
	if err != nil {
		return rule.Effect{}, err
	}
	v, err := r.view(j, queue, j.Group)
	if err != nil {
		return rule.Effect{}, err
	}
	eff, err := rule.Step(v, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) {
		if rule.WaitsFor(n) != "" { // it may stand elsewhere now
			n.Park = ""
		}
		if n.Queue = queue; p.Edit != nil {
			p.Edit(n, r.now)
		}
		if p.Payload != nil {
			n.Payload, n.PayloadSize = ref, uint32(len(p.Payload))
		}
	}})
	if err == nil {
		err = r.write(j, eff)
	}
	if err == nil && p.Payload != nil {
		err = r.tx.PutPayload(ref, p.Payload)
	}
	if err != nil || queue == j.Queue {
		return eff, err
	}
	r.SeeQueue(queue)
	r.woken[j.Queue] = true // there may be room for another one
	if j.Group != "" {
		err = r.sweepGate(j.Queue, j.Group)
	}
	return eff, err
}

// newPayload draws the reference of a payload that takes the place of a job's.
func (r *Tx) newPayload(j *job.Job, body []byte) (ref job.ID, err error) {
	switch {
	case body == nil:
		return ref, nil
	case j.State == job.Leased:
		return ref, job.Errorf(job.WrongState, "job %s is in flight with the payload it has; edit it when it is back", j.ID)
	case r.disk.low:
		return ref, ErrDiskLow
	}
	return r.ids.Next(r.now), nil
}

// mayMove refuses what a move to another queue would break, and makes room.
func (r *Tx) mayMove(j *job.Job, queue string) error {
	from, err := r.Queue(j.Queue)
	if err != nil {
		return err
	}
	q, err := r.Queue(queue)
	if err != nil {
		return err
	}
	if err := rule.MayMove(j, from, q, r.e.parts.limited(r, j.Queue)); err != nil {
		return err
	}
	if !r.c.queues[queue] && !r.fresh[queue] {
		if err := r.oneMoreQueue(0); err != nil {
			return err
		}
	}
	if q.MaxJobs == 0 && q.MaxBytes == 0 {
		return nil
	}
	d, size := r.tx.Depth(queue), int64(j.PayloadSize)
	a := admission{queue: q, jobs: d.Open(), bytes: d.Bytes}
	if a.full, err = rule.Admit(q, a.jobs, a.bytes, size); err != nil {
		return err
	}
	a.jobs, a.bytes = a.jobs+1, a.bytes+size
	leaving, err := r.oldest(map[string]*admission{queue: &a})
	if err != nil {
		return err
	}
	return r.evict(leaving)
}
