package grid

import (
	"errors"
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// budgets reads what a task's attempts use of budgets, which are GridServer's
// EXTRA conditions as real semaphores: units come back when the attempt ends,
// however that is.
func budgets(field string, list []wire.Binding) (out []job.BudgetUse, err error) {
	if len(list) > job.JobBudgets {
		return nil, refuse(field, "%s must not be more than %d", field, job.JobBudgets)
	}
	for _, b := range list {
		switch {
		case b.Key == "":
			return nil, refuse(field, "%s must each have the key of a budget", field)
		case job.BudgetAt(out, b.Key) >= 0:
			return nil, refuse(field, "%s must not have the key %s twice", field, quote(b.Key))
		case b.Cost < 0 || b.Cost > job.BudgetUnits:
			return nil, refuse(field, "%s: the cost must be from 1 to %d", field, job.BudgetUnits)
		case b.CreateWith != nil:
			return nil, refuse(field, "%s must not have create_with; make the budget first (PUT /budgets/KEY)", field)
		}
		out = append(out, job.BudgetUse{Key: b.Key, Cost: max(b.Cost, 1)})
	}
	return out, nil
}

// Refused names the task of a submit that uses a budget that there is not. The words
// for jobs offer what a task cannot have, a budget made on the way.
func Refused(err error) error {
	missing, ok := errors.AsType[*job.NoBudget](err)
	if !ok {
		return err
	}
	field := "tasks[" + strconv.Itoa(missing.Job) + "].budgets"
	return &job.Error{Kind: job.KindOf(err), Field: field, Text: field + ": budget " + quote(missing.Key) + " does not exist; make it first (PUT /budgets/KEY)"}
}
