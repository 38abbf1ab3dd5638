package sim_test

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// changeBudget changes, or makes, the budget of units at once while jobs run
// under it and wait for it. No job costs more than the least it may have.
func (w *world) changeBudget() {
	b := w.setup.budgets[0]
	b.Allocation += w.dice.Int64N(4)
	if w.allots == nil {
		w.allots = map[int64]bool{}
	}
	w.allots[b.Allocation] = true
	w.say("    budget %q is to have %d", b.Name, b.Allocation)
	var err error
	w.start(&call{finish: func() string {
		if err != nil {
			return w.refusal("set budget", err)
		}
		w.judge.coverage.feature("a budget changed")
		return fmt.Sprintf("it has %d", b.Allocation)
	}}, func() { _, err = w.e.Budgets.Set(w.ctx, b, job.Actor{}) })
}

// allotted is how many units a budget has, as it was written last.
func (x *judge) allotted(b *job.Budget) int64 {
	if row, ok := x.book.rows[rowKey{job.Budgets, b.Name}].(*job.Budget); ok {
		return row.Allocation
	}
	return b.Allocation
}
