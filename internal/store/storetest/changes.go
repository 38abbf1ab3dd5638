package storetest

import (
	"encoding/binary"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// patchOne edits an open job in one of the ways an operator can.
func (h *history) patchOne(tx store.Tx) error {
	j, err := h.pick(tx, job.Scheduled, job.Ready, job.Leased)
	if j == nil {
		return err
	}
	edits := []struct {
		name string
		edit func(j *job.Job)
	}{
		{"priority", func(j *job.Job) { j.Priority = job.PriorityDefault - uint16(h.rng.IntN(3)) }},
		{"time", func(j *job.Job) { j.ReadyAt = h.now + job.Millis(h.rng.IntN(20_000)) - 5000 }},
		{"expiry", func(j *job.Job) { j.ExpiresAt = h.now + job.Millis(h.rng.IntN(20_000)) }},
		{"park", func(j *job.Job) { j.Park = one(h, []string{"", "", "needs/x"}) }},
		{"requirement", func(j *job.Job) { j.Requires = []job.Requirement{{Property: "os", Op: "!=", Value: "beos"}} }},
		{"type", func(j *job.Job) { j.Type = one(h, typeNames) }},
		{"group", func(j *job.Job) { h.move(tx, j, j.Queue) }},
		{"queue", func(j *job.Job) { h.move(tx, j, one(h, queueNames)) }},
		{"payload", func(j *job.Job) {
			if err := h.givePayload(tx, j, h.payloadID()); err != nil {
				h.fail("%v", err)
			}
		}},
	}
	e := one(h, edits)
	h.say("patch %s: %s", j.ID, e.name)
	_, err = h.world.step(tx, j.ID, rule.Command{Verb: rule.Patch, Edit: e.edit})
	return err
}

// payloadID names a payload that is not named after its job.
func (h *history) payloadID() job.ID {
	id := h.id()
	h.ids = append(h.ids, id)
	return id
}

// move puts a job into another group, and the order that holds there.
func (h *history) move(tx store.Tx, j *job.Job, queue string) {
	q, err := queueOf(tx, queue)
	if err != nil {
		h.fail("%v", err)
	}
	j.Queue, j.Group, j.Order = queue, one(h, groupNames), job.OrderNone
	if j.Group != "" {
		j.Order = q.Order
	}
}

// named returns the settings that a queue's name promises.
func named(name string) *job.Queue {
	q := job.NewQueue(name)
	q.Order = map[string]job.Order{"start": job.OrderStart, "strict": job.OrderStrict}[name]
	q.Concurrency = map[string]int{"start": 2, "one": 1}[name]
	q.OnDead = map[string]job.OnDead{"start": job.DeadBlock, "strict": job.DeadPark, "one": job.DeadBlock}[name]
	return q
}

// setUp is how a history begins.
func setUp(tx store.Tx) error {
	for _, name := range queueNames {
		if err := tx.Set(named(name)); err != nil {
			return err
		}
	}
	return nil
}

// changeQueue changes settings of a queue, as far as rule.ChangeQueue allows.
func (h *history) changeQueue(tx store.Tx) error {
	q, err := queueOf(tx, one(h, queueNames))
	if err != nil {
		return err
	}
	changed := *q
	what := h.rng.IntN(20)
	switch what {
	case 0, 1, 2:
		changed = *named(q.Name)
	case 3:
		changed.Concurrency = h.rng.IntN(3)
	case 4:
		changed.OnDead = job.OnDead(h.rng.IntN(3))
	case 5:
		changed.FrontOrder = job.FrontOrder(h.rng.IntN(2))
	case 6:
		changed.Paused = !q.Paused
	case 7:
		changed.HoldUntil = h.now + job.Millis(h.rng.IntN(5_000))
	case 8:
		changed.LateOKNever, changed.RequireToken = h.sometimes(2), h.sometimes(3)
	case 9:
		changed.RetainDone, changed.RetainDead = h.retention(), h.retention()
		changed.Retry.Limit = job.LimitOf(uint32(h.rng.IntN(5)))
	case 10:
		changed = *job.NewQueue(q.Name)
	case 11, 12:
		changed.Protection.Fair = one(h, []*job.FairShare{nil, {}, {Weights: map[string]int{"a": 3, "": 2}}})
	case 13, 14, 15:
		changed.Grid = one(h, []*job.Grid{nil, {MaxCopies: 2, MaxReschedules: 1}, {
			MaxCopies: 3, MaxReschedules: 5, LossesCharged: true, EvictedPlace: job.PlaceBack, CopyPlace: job.PlaceFront,
			OnTimeout: job.TimeoutReschedule, PollPeriod: 7 * job.Second,
		}})
	}
	switch what {
	case 16, 17:
		h.toggleTurns(&changed)
	case 18, 19:
		changed.Outlet = !q.Outlet
	}
	same := changed
	same.Grid = q.Grid // a store does not mind
	if err := rule.ChangeQueue(q, &same, int(tx.Depth(q.Name).Grouped)); err != nil {
		return err
	}
	h.say("queue %+v", changed)
	h.keys = append(h.keys, q.Name)
	if what == 10 {
		return tx.Unset(job.Queues, q.Name)
	}
	if err := tx.Set(&changed); err != nil {
		return err
	}
	return h.wakeQueues(tx)
}

// wakeQueues ends the holds of queues and gates that are over.
func (h *history) wakeQueues(tx store.Tx) error {
	list, err := tx.DueRows(job.Queues, h.now, pageMax)
	if err != nil {
		return err
	}
	for _, row := range list {
		q, err := rule.WakeQueue(row.(*job.Queue), h.now)
		if err != nil {
			return broken("DueRows names a queue that is not due: %v", err)
		}
		h.say("wake queue %s", q.Name)
		if err := tx.Set(q); err != nil {
			return err
		}
	}
	if list, err = tx.DueRows(job.Gates, h.now, pageMax); err != nil {
		return err
	}
	for _, row := range list {
		g, err := rule.WakeGate(row.(*job.Gate), h.now)
		if err != nil {
			return broken("DueRows names a gate that is not due: %v", err)
		}
		h.say("wake gate %q", g.Key())
		if err := setGate(tx, g); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) changeGate(tx store.Tx) error {
	g, err := gateOf(tx, one(h, queueNames), one(h, groupNames))
	if err != nil {
		return err
	}
	changed := *g
	switch h.rng.IntN(5) {
	case 4:
		changed.Place = h.nextSeq()
	case 0:
		changed = *rule.HoldGate(g, h.now+job.Millis(h.rng.IntN(5_000)))
	case 1:
		changed.Park = "breaker"
	case 2:
		changed.Park = ""
	case 3:
		return h.wakeQueues(tx)
	}
	h.say("gate %+v", changed)
	h.keys = append(h.keys, g.Key())
	return setGate(tx, &changed)
}

// changeThrottle slows a queue or a group down, or lets it go.
func (h *history) changeThrottle(tx store.Tx) error {
	t := job.Throttle{Queue: one(h, queueNames), Group: one(h, groupNames), State: job.BreakerState(h.rng.IntN(4))}
	t.Allowed, t.Out = h.rng.IntN(3), h.rng.IntN(3)
	if h.sometimes(3) {
		t.Slow = h.now + job.Millis(h.rng.IntN(5_000))
	}
	if h.sometimes(2) {
		t.Until = h.now + job.Millis(h.rng.IntN(5_000))
	}
	h.keys = append(h.keys, t.Key())
	if h.sometimes(2) {
		h.say("let go %q", t.Key())
		return tx.Unset(job.Throttles, t.Key())
	}
	h.say("throttle %+v", t)
	return tx.Set(&t)
}

// changeRow sets or unsets a row that moves no job.
func (h *history) changeRow(tx store.Tx) error {
	var hash [16]byte
	binary.LittleEndian.PutUint32(hash[:], uint32(h.rng.IntN(40)))
	due := h.now + job.Millis(h.rng.IntN(60_000))
	row := one(h, []job.Row{
		&job.Holder{Name: one(h, holderNames), Kind: job.Named, Until: 0},
		&job.Holder{Name: one(h, holderNames), Kind: job.Unary, Until: due, Properties: map[string]string{"os": "linux"}},
		&job.Receipt{Hash: hash, Content: [16]byte{1}, Job: h.id(), Expires: due},
		&job.Receipt{Hash: hash, Expires: due},
		&job.Reserve{Name: one(h, typeNames), Next: h.rng.Int64()},
	})
	h.keys = append(h.keys, row.Key())
	if h.sometimes(3) {
		h.say("unset row %q of table %d", row.Key(), row.Table())
		return tx.Unset(row.Table(), row.Key())
	}
	h.say("set row %q of table %d", row.Key(), row.Table())
	return tx.Set(row)
}
