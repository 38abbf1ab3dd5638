package grid

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

func TestBudgetsOfATaskAreReadOrRefusedByName(t *testing.T) {
	c := DefaultConfig()
	of := func(list ...wire.Binding) wire.Tasks {
		return wire.Tasks{Tasks: []wire.Task{{Seq: 1, Payload: []byte("1"), Budgets: list}}}
	}
	out, err := c.Tasks("s", of(wire.Binding{Key: "licence"}, wire.Binding{Key: "ram", Cost: 3}))
	if err != nil || fmt.Sprint(out[0].Job.Budgets()) != "[{licence 1} {ram 3}]" {
		t.Errorf("%v, %v", out, err)
	}
	many := make([]wire.Binding, job.JobBudgets+1)
	for i := range many {
		many[i].Key = fmt.Sprint("k", i)
	}
	for want, list := range map[string][]wire.Binding{
		"must each have the key":        {{Cost: 1}},
		`must not have the key "a" tw`:  {{Key: "a"}, {Key: "a", Cost: 2}},
		"the cost must be from 1":       {{Key: "a", Cost: -1}},
		"the cost must be from 1 to 10": {{Key: "a", Cost: job.BudgetUnits + 1}},
		"must not have create_with":     {{Key: "a", CreateWith: &wire.Budget{Allocation: 1}}},
		"must not be more than 32":      many,
	} {
		_, err := c.Tasks("s", of(list...))
		if err == nil || !strings.Contains(err.Error(), "tasks[0].budgets") || !strings.Contains(err.Error(), want) || job.KindOf(err) != job.Invalid {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

func TestASubmitWithoutItsBudgetIsToldWhichTask(t *testing.T) {
	err := Refused(fmt.Errorf("putting in: %w", &job.NoBudget{Key: "licence", Job: 1}))
	e, ok := errors.AsType[*job.Error](err)
	if !ok || e.Kind != job.Unprocessable || e.Field != "tasks[1].budgets" ||
		e.Text != `tasks[1].budgets: budget "licence" does not exist; make it first (PUT /budgets/KEY)` {
		t.Errorf("%#v", err)
	}
	if other := job.Errorf(job.Unprocessable, "the cost 3 is above the capacity 2 of budget 'licence'"); Refused(other) != error(other) { //nolint:errorlint // as it is
		t.Error("what is no missing budget is told in other words")
	}
}
