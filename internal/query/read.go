package query

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Reads are the reads of an engine.
type Reads struct{ engine *engine.Engine }

// Of are the reads of an engine.
func Of(e *engine.Engine) Reads { return Reads{e} }

// Listed is a job on a list page.
type Listed struct {
	Job     *job.Job
	Payload []byte // nil unless asked for

	// Is is what keeps a ready job from running, by Obstacles; rule.NotDue, which
	// it is never told of, where that was not asked.
	Is rule.Obstacle
}

// Bytes is how much a row brings with it.
func (l Listed) Bytes() int { return int(l.Job.PayloadSize) }

// Get returns a job and its payload, or NotFound. A terminal job past its
// retention is not found, even before the clock takes it away.
func (r Reads) Get(ctx context.Context, id job.ID) (j *job.Job, payload []byte, err error) {
	err = r.engine.View(ctx, func(v store.Reader) error {
		if j, err = engine.JobOf(v, id); err == nil {
			payload = v.Peek(j.Payload)
		}
		return err
	})
	if err == nil && payload == nil {
		if payload, err = r.engine.Payload(j.Payload); job.KindOf(err) == job.Corrupt {
			j, err = r.engine.Unread(ctx, j)
		}
	}
	if payload != nil {
		payload = r.engine.Shown(j, payload)
	}
	return j, payload, err
}

// Result reads what the last run of a done job made, nil if there is nothing or
// it left with the job meanwhile. The caller does not change it.
func (r Reads) Result(j *job.Job) ([]byte, error) {
	kept := j.Result()
	switch {
	case kept == nil:
		return nil, nil
	case kept.Bytes != nil:
		return kept.Bytes, nil
	}
	return r.engine.Payload(kept.Ref)
}

// List returns up to n jobs that match, without payloads. Terminal jobs past their
// retention are hidden.
func (r Reads) List(ctx context.Context, f store.Filter, n int) (out []Listed, err error) {
	err = r.engine.View(ctx, func(v store.Reader) error {
		f.Alive = v.Now()
		jobs, err := v.List(f, n)
		out = make([]Listed, len(jobs))
		for i, j := range jobs {
			out[i].Job = j
		}
		return err
	})
	return out, err
}

// Count counts the jobs that match, as List would show them.
func (r Reads) Count(ctx context.Context, f store.Filter) (n int64, err error) {
	err = r.engine.View(ctx, func(v store.Reader) error {
		f.Alive = v.Now()
		n, err = v.Count(f)
		return err
	})
	return n, err
}

// Failures returns failure records of a job by number: those after from (or
// before it, if desc), at most n. from 0 starts at the end the order starts at.
func (r Reads) Failures(ctx context.Context, id job.ID, from uint32, desc bool, n int) (list []job.Failure, err error) {
	err = r.engine.View(ctx, func(v store.Reader) error {
		if _, err := engine.JobOf(v, id); err != nil {
			return err
		}
		list, err = v.Failures(id, from, desc, n)
		return err
	})
	return list, err
}

// Queues returns the names of queues that have jobs, sorted.
func (r Reads) Queues(ctx context.Context) (names []string, err error) {
	err = r.engine.View(ctx, func(v store.Reader) error {
		names, err = v.Names()
		return err
	})
	return names, err
}

// Queue returns the settings and the depth of a queue. A queue nobody has
// used has default settings and no jobs.
func (r Reads) Queue(ctx context.Context, name string) (q *job.Queue, d store.Depth, err error) {
	err = r.engine.View(ctx, func(v store.Reader) error {
		d = v.Depth(name)
		q, err = engine.QueueOf(v, name)
		return err
	})
	return q, d, err
}
