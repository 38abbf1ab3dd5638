package engine

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// names are the names of queues and their settings, as a transaction sees them.
type names struct {
	*Tx
	rows     map[string]*job.Queue
	last     *job.Queue      // mostly the next one asked for
	woken    map[string]bool // something may have become ready in them
	fresh    map[string]bool // not seen before
	dropped  map[string]bool // forgotten, and given back
	gaveBack job.Millis      // when names were given back last
}

// publish makes true what was staged.
func (r *names) publish() {
	c := r.c
	c.gaveBack = r.gaveBack
	for name := range r.dropped {
		delete(c.queues, name)
	}
	for name := range r.fresh {
		c.queues[name] = true
	}
}

// Queue returns the settings of a queue.
func (r *names) Queue(name string) (*job.Queue, error) {
	if r.last != nil && r.last.Name == name {
		return r.last, nil
	}
	q := r.rows[name]
	if q == nil {
		var err error
		if q, err = QueueOf(r.tx, name); err != nil {
			return nil, err
		}
		r.rows[name] = q
	}
	r.last = q
	return q, nil
}

// EditQueue returns a copy of the settings of a queue, to be written. A queue
// that nobody has used counts against max_queues.
func (r *names) EditQueue(name string) (*job.Queue, error) {
	if !r.c.queues[name] && !r.fresh[name] {
		if err := r.oneMoreQueue(0); err != nil {
			return nil, err
		}
	}
	old, err := r.Queue(name)
	if err != nil {
		return nil, err
	}
	r.ForgetQueue(name)
	return new(*old), nil
}

// ForgetQueue drops the settings remembered for this transaction.
func (r *names) ForgetQueue(name string) {
	delete(r.rows, name)
	r.last = nil
}

// SetQueue writes the settings of a queue, and tells parts.
func (r *names) SetQueue(q *job.Queue) error {
	r.ForgetQueue(q.Name)
	r.SeeQueue(q.Name)
	r.Wake(q.Name)
	r.tx.Durable()
	if err := r.tx.Set(q); err != nil {
		return err
	}
	return r.e.parts.settings(r.Tx, q)
}

// SeeQueue notes that a queue exists.
func (r *names) SeeQueue(name string) {
	if r.c.queues[name] && !r.dropped[name] {
		return
	}
	if r.fresh == nil {
		r.fresh = map[string]bool{}
	}
	r.fresh[name] = true
}

// oneMoreQueue refuses a queue above max_queues; coming are about to be made.
func (r *names) oneMoreQueue(coming int) error {
	free := func() bool { return len(r.c.queues)+len(r.fresh)-len(r.dropped)+coming < r.e.opts.QueuesMax }
	if free() || r.giveBackQueues() && free() {
		return nil
	}
	return &job.Error{
		Kind: job.OverLimit, Field: "queue",
		Text: fmt.Sprintf("there may be %d queues (max_queues), sessions and inboxes included; use an existing one, delete what is not needed, or raise max_queues", r.e.opts.QueuesMax),
	}
}

// How often names of queues are given back, and how many are looked at then.
const (
	giveBackEvery = 10 * job.Second
	giveBackLook  = 10_000
)

// giveBackQueues forgets names of queues that have no job and no settings, so
// that names which are used once do not fill max_queues. It reports whether it
// looked: it takes a while, and nobody waits for it again and again.
func (r *names) giveBackQueues() bool {
	if r.gaveBack != 0 && r.now < r.gaveBack+giveBackEvery {
		return false
	}
	r.gaveBack = r.now
	look := giveBackLook
	for name := range r.c.queues {
		if look--; look < 0 {
			break
		}
		if d := r.tx.Depth(name); d.States != (store.Depth{}).States || r.e.parts.keepsQueue(name) || r.fresh[name] {
			continue
		}
		if q, err := store.Row[*job.Queue](r.tx, name); q != nil || err != nil {
			continue
		}
		r.DropQueue(name)
	}
	return true
}

// DropQueue forgets that a queue exists.
func (r *names) DropQueue(name string) {
	if r.dropped == nil {
		r.dropped = map[string]bool{}
	}
	r.dropped[name] = true
}

// keptDone is how many finished jobs a queue keeps, and how many queues there are:
// too many, once half of those that may be are there, since a kept job keeps its queue.
func (r *names) keptDone(queue string) (jobs int64, queues int) {
	if queues = len(r.c.queues); queues > r.e.opts.QueuesMax/2 {
		queues = rule.RecentQueues + 1
	}
	return r.tx.Depth(queue).States[job.Done], queues
}
