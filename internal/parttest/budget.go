package parttest

import (
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/budget"
)

// Costs binds a job: "k", 2, "l", 1.
func Costs(list ...any) func(*engine.NewJob) {
	return func(n *engine.NewJob) {
		var uses []job.BudgetUse
		for i := 0; i < len(list); i += 2 {
			uses = append(uses, job.BudgetUse{Key: list[i].(string), Cost: int64(list[i+1].(int))})
		}
		n.Job.Extras = n.Job.WithBudgets(uses)
	}
}

// Budget makes a budget, or changes it.
func (r *Rig) Budget(key string, allocation int64, edits ...func(*job.Budget)) budget.State {
	r.Helper()
	b := job.Budget{Name: key, Allocation: allocation}
	for _, edit := range edits {
		edit(&b)
	}
	s, err := r.Part.Budgets.Set(r.Context(), b, job.Actor{})
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// BudgetState reads a budget.
func (r *Rig) BudgetState(key string) budget.State {
	r.Helper()
	s, err := r.Part.Budgets.Get(r.Context(), key)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// Spent wants so many units out, and so many jobs that refer to the budget.
func (r *Rig) Spent(key string, out, jobs int64) {
	r.Helper()
	r.Pass(0)
	if s := r.BudgetState(key); s.Out != out || s.Jobs != jobs {
		r.Fatalf("budget %s: %d units are out and %d jobs refer to it, want %d and %d", key, s.Out, s.Jobs, out, jobs)
	}
}
