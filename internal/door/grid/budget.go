package grid

import (
	"errors"
	"strconv"
	"strings"

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

// Refused names the task of a submit whose budgets do not allow it. The words for
// jobs offer what a task cannot have, a budget made on the way.
func Refused(asked []wire.Task, err error) error {
	e, ok := errors.AsType[*job.Error](err)
	if !ok || e.Field != "budgets" {
		return err
	}
	for i := range asked {
		for _, b := range asked[i].Budgets {
			if text := strings.TrimPrefix(e.Text, "budget '"+b.Key+"' does not exist;"); text != e.Text {
				field := "tasks[" + strconv.Itoa(i) + "].budgets"
				return &job.Error{Kind: e.Kind, Field: field, Text: field + ": budget " + quote(b.Key) + " does not exist; make it first (PUT /budgets/KEY)"}
			}
		}
	}
	return err
}
