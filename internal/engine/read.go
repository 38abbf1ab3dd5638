package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Listed is a job on a list page.
type Listed struct {
	Job     *job.Job
	Payload []byte // nil unless asked for

	// Is is what keeps a ready job from running, by Obstacles; rule.NotDue, which
	// it is never told of, where that was not asked.
	Is rule.Obstacle
}

func NoJob(id job.ID) *job.Error { return job.Errorf(job.NotFound, "job %s does not exist", id) }

// View runs f on a consistent state of the store.
func (e *Engine) View(ctx context.Context, f func(store.Reader) error) error {
	if why := e.state.Load(); why != nil {
		return why
	}
	return e.noted(e.store.View(ctx, f))
}

// noted logs that the store cannot be read, because the wire does not say why.
func (e *Engine) noted(err error) error {
	if err != nil && job.KindOf(err) == job.Unavailable {
		e.log.Error("the store cannot be read", "error", err)
	}
	return err
}

// Get returns a job and its payload, or NotFound. A terminal job past its
// retention is not found, even before the clock takes it away.
func (e *Engine) Get(ctx context.Context, id job.ID) (j *job.Job, payload []byte, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		if j, err = v.Get(id); err != nil {
			return err
		}
		if !Visible(v, j) {
			return NoJob(id)
		}
		payload = v.Peek(j.Payload)
		return nil
	})
	if err == nil && payload == nil {
		if payload, err = store.Payload(e.store, j.Payload); job.KindOf(err) == job.Corrupt {
			j, err = e.unread(ctx, j)
		}
		err = e.noted(err)
	}
	return j, payload, err
}

// Result reads what the last run of a done job made, nil if there is nothing or
// it left with the job meanwhile. The caller does not change it.
func (e *Engine) Result(j *job.Job) ([]byte, error) {
	kept := j.Result()
	if kept == nil {
		return nil, nil
	}
	if kept.Bytes != nil {
		return kept.Bytes, nil
	}
	body, err := store.Payload(e.store, kept.Ref)
	return body, e.noted(err)
}

// Visible reports whether there is a job, for those who look from outside.
func Visible(v store.Reader, j *job.Job) bool {
	f := store.Filter{Alive: v.Now()}
	return j != nil && !f.Hides(j)
}

// GateOf returns the row of a group; nil if it has none.
func GateOf(v store.Reader, queue, group string) (*job.Gate, error) {
	row, err := v.Row(job.Gates, job.GateKey(queue, group))
	g, _ := row.(*job.Gate)
	return g, err
}

// QueueOf returns the settings of a queue, which has defaults if nobody gave it any.
func QueueOf(v store.Reader, name string) (*job.Queue, error) {
	row, err := v.Row(job.Queues, name)
	if q, ok := row.(*job.Queue); ok {
		return q, err
	}
	return job.NewQueue(name), err
}

// AllBodies reads payloads, and fails if one cannot be read.
func (e *Engine) AllBodies(refs ...job.ID) ([][]byte, error) {
	list, err := e.store.Payloads(refs...)
	return list, e.noted(err)
}

// PageBytes is how much of payloads, results and error records a page may hold:
// it ends early behind what fits, and behind one row at least.
const PageBytes = 16 << 20

// Fits returns the first rows of a page, at most n, and whether others follow.
func Fits[T any](rows []T, n int, size func(T) int) (page []T, more bool, bytes int) {
	for i, row := range rows {
		size := size(row)
		if i == n || i > 0 && bytes+size > PageBytes {
			return rows[:i], true, bytes
		}
		bytes += size
	}
	return rows, false, bytes
}

// Bytes is how much a row brings with it.
func (l Listed) Bytes() int { return int(l.Job.PayloadSize) }

// List returns up to n jobs that match. Terminal jobs past their retention
// are hidden.
func (e *Engine) List(ctx context.Context, f store.Filter, n int, withPayload bool) ([]Listed, error) {
	var out []Listed
	err := e.View(ctx, func(v store.Reader) error {
		f.Alive = v.Now()
		jobs, err := v.List(f, n)
		out = make([]Listed, len(jobs))
		for i, j := range jobs {
			out[i] = Listed{Job: j, Payload: v.Peek(j.Payload)}
		}
		return err
	})
	if err != nil || !withPayload {
		return out, err
	}
	refs := make([]job.ID, len(out))
	for i := range out {
		refs[i] = out[i].Job.Payload
	}
	bodies, err := e.Bodies(refs...)
	for i := range bodies {
		if out[i].Payload == nil {
			out[i].Payload = bodies[i]
		}
	}
	return out, e.noted(err)
}

// Count counts the jobs that match, as List would show them.
func (e *Engine) Count(ctx context.Context, f store.Filter) (n int64, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		f.Alive = v.Now()
		n, err = v.Count(f)
		return err
	})
	return n, err
}

// Failures returns failure records of a job by number: those after from (or
// before it, if desc), at most n. from 0 starts at the end the order starts at.
func (e *Engine) Failures(ctx context.Context, id job.ID, from uint32, desc bool, n int) (list []job.Failure, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		j, err := v.Get(id)
		if err != nil {
			return err
		}
		if !Visible(v, j) {
			return NoJob(id)
		}
		list, err = v.Failures(id, from, desc, n)
		return err
	})
	return list, err
}

// Queues returns the names of queues that have jobs, sorted.
func (e *Engine) Queues(ctx context.Context) (names []string, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		names, err = v.Names()
		return err
	})
	return names, err
}

// Queue returns the settings and the depth of a queue. A queue nobody has
// used has default settings and no jobs.
func (e *Engine) Queue(ctx context.Context, name string) (q *job.Queue, d store.Depth, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		d = v.Depth(name)
		q, err = QueueOf(v, name)
		return err
	})
	return q, d, err
}
