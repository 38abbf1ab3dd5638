package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// NoJob is the answer about a job that is not there.
func NoJob(id job.ID) *job.Error { return job.Errorf(job.NotFound, "job %s does not exist", id) }

// View runs f on a consistent state of the store.
func (e *Engine) View(ctx context.Context, f func(store.Reader) error) error {
	if why := e.health.state.Load(); why != nil {
		return why
	}
	return e.health.noted(e.store.View(ctx, f))
}

// Visible reports whether there is a job, for those who look from outside.
func Visible(v store.Reader, j *job.Job) bool {
	f := store.Filter{Alive: v.Now()}
	return j != nil && !f.Hides(j)
}

// JobOf returns a job that is Visible, or NotFound.
func JobOf(v store.Reader, id job.ID) (*job.Job, error) {
	j, err := v.Get(id)
	if err == nil && !Visible(v, j) {
		return nil, NoJob(id)
	}
	return j, err
}

// GateOf returns the row of a group; nil if it has none.
func GateOf(v store.Reader, queue, group string) (*job.Gate, error) {
	return store.Row[*job.Gate](v, job.GateKey(queue, group))
}

// QueueOf returns the settings of a queue, which has defaults if nobody gave it any.
func QueueOf(v store.Reader, name string) (*job.Queue, error) {
	q, err := store.Row[*job.Queue](v, name)
	if q == nil {
		q = job.NewQueue(name)
	}
	return q, err
}
