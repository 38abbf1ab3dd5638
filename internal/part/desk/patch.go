package desk

import (
	"github.com/reprisehq/reprise/internal/engine"
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

// Verb changes a job. A finished one is refused with WrongState, and so is a move to
// another queue that rule.MayMove refuses. A queue without room refuses the move with
// OverLimit.
func (p Patch) Verb() Verb {
	return Verb{name: "patch", bytes: len(p.Payload), open: true, act: p.apply}
}

func (p Patch) apply(tx *engine.Tx, j *job.Job) (rule.Effect, error) {
	if !j.State.Open() {
		status := "dead"
		if j.State == job.Done {
			status = "completed"
		}
		return rule.Effect{}, job.Errorf(job.WrongState, "cannot patch job %s in %s status", j.ID, status)
	}
	queue := j.Queue
	if p.Queue != "" && p.Queue != queue {
		if err := mayMove(tx, j, p.Queue); err != nil {
			return rule.Effect{}, err
		}
		queue = p.Queue
	}
	ref, err := p.ref(tx, j)
	if err != nil {
		return rule.Effect{}, err
	}
	eff, err := tx.Edit(j, queue, func(n *job.Job) {
		if rule.WaitsFor(n) != "" { // it may stand elsewhere now
			n.Park = ""
		}
		if n.Queue = queue; p.Edit != nil {
			p.Edit(n, tx.Now())
		}
		if p.Payload != nil {
			n.Payload, n.PayloadSize = ref, uint32(len(p.Payload))
		}
	})
	if err == nil && p.Payload != nil {
		err = tx.Store().PutPayload(ref, p.Payload)
	}
	if err != nil || queue == j.Queue {
		return eff, err
	}
	tx.SeeQueue(queue)
	tx.Wake(j.Queue) // there may be room for another one
	if j.Group != "" {
		err = tx.SweepGate(j.Queue, j.Group)
	}
	return eff, err
}

// ref draws the reference of a payload that takes the place of a job's.
func (p Patch) ref(tx *engine.Tx, j *job.Job) (ref job.ID, err error) {
	switch {
	case p.Payload == nil:
		return ref, nil
	case j.State == job.Leased:
		return ref, job.Errorf(job.WrongState, "job %s is in flight with the payload it has; edit it when it is back", j.ID)
	case tx.DiskLow():
		return ref, engine.ErrDiskLow
	}
	return tx.NewID(), rule.NewPayload(j)
}

// mayMove refuses what a move to another queue would break, and makes room.
func mayMove(tx *engine.Tx, j *job.Job, queue string) error {
	from, err := tx.Queue(j.Queue)
	if err != nil {
		return err
	}
	to, err := tx.Queue(queue)
	if err != nil {
		return err
	}
	if err := rule.MayMove(j, from, to, tx.Limited(j.Queue)); err != nil {
		return err
	}
	return tx.MakeRoom(queue, int64(j.PayloadSize))
}
