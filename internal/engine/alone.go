package engine

import (
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// A job that is delivered alone (core.md section 5) may come up before a holder
// that has others and is never without. So when it is next in line for one
// that has room, that holder is emptied: it gets nothing more until it has
// nothing, and then the job. For each queue one holder is emptied at a time, and
// the others pass such jobs by; whoever has nothing takes the job at once. This
// is known in memory only: a restart decides anew.

// emptyFor is how long a holder is emptied before another one may be instead,
// because it may have a run that lasts. Each next one has twice the time, so one
// of them gets done.
const emptyFor = job.Minute

// emptied is the holder that is emptied for a queue.
type emptied struct {
	holder *Holder
	span   job.Millis
	until  job.Millis // steady time from which another one may take over
}

// empties reports whether the holder is emptied for the queue, perhaps from
// now on: it has work, and the next job in line for it must be alone.
func (r *serving) empties(h *Holder, queue string) bool {
	d, found := r.emptied[queue]
	span := emptyFor
	switch {
	case found && d.holder == h:
		return true
	case !found || d.holder.gone || r.left[d.holder]:
	case r.steady < d.until:
		return false
	default:
		span = 2 * d.span
		r.fed = true // who was emptied in vain goes on
	}
	if r.emptied = maps.Clone(r.emptied); r.emptied == nil { // the committer's own changes with publish
		r.emptied = map[string]emptied{}
	}
	r.emptied[queue] = emptied{h, span, r.steady.Add(span)}
	return true
}

// filled follows a grant: who got something is not emptied any more, and for
// the queue of a job that is out alone nobody is.
func (r *serving) filled(h *Holder, j *job.Job) {
	for queue, d := range r.emptied {
		if d.holder == h || j.Isolated && queue == j.Queue {
			r.emptied = maps.Clone(r.emptied)
			delete(r.emptied, queue)
			r.fed = r.fed || d.holder != h // it goes on
		} else if queue == j.Queue && r.e.parts.limited(r.Tx, queue) { // there may be no room for what it is emptied for
			r.fed = true
		}
	}
}

// emptiedBy follows the end of a lease that some call of a worker had: another call
// of that worker may be emptied, and it is empty when the worker is.
func (r *serving) emptiedBy(worker string) {
	for queue, d := range r.emptied {
		if d.holder.Name == worker {
			r.woken[queue] = true
		}
	}
}

// Seeker is how a holder asks the store for work.
func (r *serving) Seeker(h *Holder) (rule.Seeker, error) {
	s := rule.Seeker{
		Holder: h.Name, Held: h.held + r.held[h], HasIsolated: h.alone+r.alone[h] > 0, Properties: h.Opts.Properties,
	}
	if r.e.parts.limited(r.Tx, "") {
		s.Room = func(queue string) rule.Room { return r.e.parts.room(r.Tx, queue) }
	}
	if h.Kind != job.Unary {
		return s, nil
	}
	ids, err := r.tx.IDs(store.Held(h.Name), store.All) // by all calls of the worker
	if err != nil {
		return s, err
	}
	s.Held = len(ids)
	s.HasIsolated, err = r.holdsAlone(h.Name, ids)
	return s, err
}

// holdsAlone reports whether the one job that a holder has must be alone.
func (r *serving) holdsAlone(name string, ids []job.ID) (bool, error) {
	if len(ids) != 1 {
		return false, nil
	}
	j, err := r.tx.Get(ids[0])
	return err == nil && slices.ContainsFunc(j.Leases, func(l job.Lease) bool { return l.Holder == name && l.Exclusive }), err
}
