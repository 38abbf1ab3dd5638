package embedded

import "github.com/reprisehq/reprise/internal/job"

// hot keeps jobs and payloads in memory that will be asked for soon: leased
// jobs always, ready ones and payloads first in, first out up to a bound. A
// queue that is drained as fast as it fills never reads the disk.
//
// Guarded by Store.mu.
type hot struct {
	jobs     near[*job.Job]
	jobOrder fifo
	bodies   near[[]byte]
	order    fifo
	bytes    int
}

// fifo remembers the order in which keys came; keys may be gone already.
type fifo struct {
	ids  []job.ID
	head int
}

func (f *fifo) len() int { return len(f.ids) - f.head }

func (f *fifo) push(id job.ID) {
	if f.head > 4096 && f.head > len(f.ids)/2 {
		f.ids = f.ids[:copy(f.ids, f.ids[f.head:])]
		f.head = 0
	}
	f.ids = append(f.ids, id)
}

func (f *fifo) pop() job.ID {
	id := f.ids[f.head]
	f.head++
	return id
}

func newHot() *hot {
	return &hot{jobs: newNear[*job.Job](2 * hotJobsMax), bodies: newNear[[]byte](hotBodiesMax)}
}

// move follows a write. It reports whether the job is kept only until the
// transaction ends: a transaction sees its own writes.
func (h *hot) move(old, j *job.Job) (cool bool) {
	if j == nil {
		h.jobs.drop(old.ID)
		return false
	}
	h.jobs.set(j.ID, j)
	switch j.State {
	case job.Leased:
		return false
	case job.Ready:
		h.jobOrder.push(j.ID)
		return false
	default:
		return true
	}
}

// coolDown ends a transaction: what it only kept for itself goes, and the
// bound on ready jobs holds again.
func (h *hot) coolDown(ids []job.ID) {
	for _, id := range ids {
		if j, ok := h.jobs.get(id); ok && j.State != job.Leased && j.State != job.Ready {
			h.jobs.drop(id)
		}
	}
	h.trimJobs()
}

// keep holds on to a job and, if given, its payload.
func (h *hot) keep(j *job.Job, body []byte) {
	h.jobs.set(j.ID, j)
	if body != nil {
		h.keepBody(j.Payload, body)
	}
}

func (h *hot) trimJobs() {
	for h.jobOrder.len() > hotJobsMax {
		id := h.jobOrder.pop()
		if j, ok := h.jobs.get(id); ok && j.State != job.Leased {
			h.jobs.drop(id)
		}
	}
}

func (h *hot) keepBody(ref job.ID, body []byte) {
	if len(body) > hotPayloadsMax/64 {
		return // one huge payload must not push out thousands of small ones
	}
	h.bodies.set(ref, body)
	h.bytes += len(body)
	h.order.push(ref)
	for h.bytes > hotPayloadsMax || h.order.len() > hotBodiesMax {
		h.dropBody(h.order.pop())
	}
}

func (h *hot) dropBody(ref job.ID) {
	if body, ok := h.bodies.get(ref); ok {
		h.bytes -= len(body)
		h.bodies.drop(ref)
	}
}
