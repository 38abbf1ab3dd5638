package engine

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// Later looks at jobs that a part puts later: one that it took can be put.
type Later struct {
	r       *Tx
	budgets map[string]*job.Budget // to be made
}

// PutLater begins with none.
func (r *Tx) PutLater() *Later { return &Later{r: r} }

// Admit refuses a job whose queue takes no such job, or whose budgets are not there and
// not made with it. The error names the field.
func (l *Later) Admit(n *NewJob) (refused *job.Error) {
	if err := l.r.submittable(&n.Job); err != nil {
		return &job.Error{Kind: job.KindOf(err), Field: "queue", Text: err.Error()}
	}
	var err error
	if l.budgets, err = l.r.admitBudgets(l.budgets, n.Job.Budgets(), n.Create); err != nil {
		return &job.Error{Kind: job.KindOf(err), Field: "budgets", Text: err.Error()}
	}
	return nil
}

// Make makes the budgets that the jobs brought.
func (l *Later) Make() error { return l.r.makeBudgets(l.budgets) }

// noneInto refuses to make a session or an inbox of a queue for which a part puts jobs
// later: each of them would be refused.
func (r *Tx) noneInto(queue string) error {
	list, err := r.e.parts.templates(r.tx)
	for _, t := range list {
		if t.Job.Queue == queue {
			return &job.Error{Kind: job.Exists, Field: "name", Text: fmt.Sprintf(
				"%s enqueues into %q; change or delete that first, or take another name", t.Name, queue)}
		}
	}
	return err
}
