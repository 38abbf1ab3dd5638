package engine

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// Later looks at jobs that a part puts later: one that it took can be put.
type Later struct {
	r     *Tx
	parts []Intake
}

// PutLater begins with none.
func (r *intake) PutLater() *Later { return &Later{r: r.Tx, parts: r.e.parts.intakes(r.Tx)} }

// Admit refuses a job whose queue takes no such job, or against which a part has
// something. The error names the field.
func (l *Later) Admit(n *NewJob) (refused *job.Error) {
	if err := l.r.submittable(&n.Job); err != nil {
		return &job.Error{Kind: job.KindOf(err), Field: "queue", Text: err.Error()}
	}
	for _, p := range l.parts {
		if err := p.Admit(0, n); err != nil {
			return &job.Error{Kind: job.KindOf(err), Field: p.Field, Text: err.Error()}
		}
	}
	return nil
}

// Make makes what the jobs bring with them.
func (l *Later) Make() error {
	for _, p := range l.parts {
		if err := p.Make(); err != nil {
			return err
		}
	}
	return nil
}

// Templates are the jobs that parts put later.
func (r *intake) Templates() ([]Template, error) { return r.e.parts.templates(r.tx) }

// NoneInto refuses to make a session or an inbox of a queue for which a part puts jobs
// later: each of them would be refused.
func (r *intake) NoneInto(queue string) error {
	list, err := r.e.parts.templates(r.tx)
	for _, t := range list {
		if t.Job.Queue == queue {
			return &job.Error{Kind: job.Exists, Field: "name", Text: fmt.Sprintf(
				"%s enqueues into %q; change or delete that first, or take another name", t.Name, queue)}
		}
	}
	return err
}
