package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// bodies reads the payloads of jobs, outside of transactions.
type bodies struct {
	store  store.Store
	health *health
	lead   func([]Delivery) // Options.Lead
	show   func(j *job.Job, payload []byte) []byte
	reject func(id job.ID, why string) // gives up a job that is not over; nobody waits for that
}

// fill reads the payloads that were not in memory. A job that was settled
// meanwhile has none any more and is left out, and so is one that nobody could
// read: it is given up.
// raw: the holder reads payloads as they are kept. An error means that the caller holds leases without having the jobs: it must
// end its stream, or let them lapse.
func (b *bodies) fill(list []Delivery, raw bool) ([]Delivery, error) {
	if b.lead != nil {
		b.lead(list)
	}
	var refs []job.ID
	for i := range list {
		if list[i].unread() {
			refs = append(refs, list[i].Job.Payload)
		}
	}
	var read [][]byte
	damaged := false
	if refs != nil {
		var err error
		read, err = b.store.Payloads(refs...)
		if damaged = job.KindOf(err) == job.Corrupt; err != nil && !damaged {
			return nil, err
		}
	}
	kept := list[:0]
	for _, d := range list {
		if d.unread() {
			if d.Payload, read = read[0], read[1:]; d.Payload == nil {
				if damaged {
					b.rejectDamaged(d.Job)
				}
				continue
			}
		}
		if !raw {
			if d.Payload = b.show(d.Job, d.Payload); !b.readable(&d) {
				continue
			}
		}
		kept = append(kept, d)
	}
	return kept, nil
}

// readable gives up what clients cannot read: an earlier version took it in, and
// who gets it ends its stream, again and again.
func (b *bodies) readable(d *Delivery) bool {
	at, why := job.Unreadable(d.Payload)
	what := "payload"
	if x := d.Job.Extras; why == "" && x != nil && x.Progress != nil {
		at, why = job.Unreadable(x.Progress.Checkpoint)
		what = "checkpoint"
	}
	if why == "" || d.Voided {
		return true
	}
	b.reject(d.Job.ID, "unreadable: its "+what+at+" "+why)
	return false
}

// unread reports whether the payload is to be read yet.
func (d *Delivery) unread() bool { return d.Payload == nil && !d.Voided }

// rejectDamaged gives up a job whose payload may be unreadable, if it is so. Nobody
// waits for that.
func (b *bodies) rejectDamaged(j *job.Job) {
	if why := b.damaged(j); why != nil {
		b.reject(j.ID, unreadBecause(why))
	}
}

// damaged is why the payload of a job cannot be read; nil if it can, or left.
func (b *bodies) damaged(j *job.Job) error {
	if _, err := store.Payload(b.store, j.Payload); job.KindOf(err) == job.Corrupt {
		return err
	}
	return nil
}

// look reads payloads for who only looks: one that cannot be read is nil.
func (b *bodies) look(refs ...job.ID) ([][]byte, error) {
	list, err := b.store.Payloads(refs...)
	if job.KindOf(err) == job.Corrupt {
		err = nil // the store tells of each file
	}
	return list, b.health.noted(err)
}

// one reads one payload, or says why it cannot be read.
func (b *bodies) one(ref job.ID) ([]byte, error) {
	body, err := store.Payload(b.store, ref)
	return body, b.health.noted(err)
}
