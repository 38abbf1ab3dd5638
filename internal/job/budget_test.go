package job

import (
	"strings"
	"testing"
)

func TestBudgetsAreChecked(t *testing.T) {
	timed := func(edit func(*Budget)) *Budget {
		b := &Budget{Name: "k", Allocation: 1, Strategy: TimeBased, Duration: 1}
		edit(b)
		return b
	}
	for name, c := range map[string]struct {
		b    *Budget
		want string // field and the beginning of what is wrong; "" = nothing
	}{
		"least":         {&Budget{Name: "k", Allocation: 1}, ""},
		"most":          {&Budget{Name: "k", Allocation: BudgetUnits}, ""},
		"nothing":       {&Budget{Name: "k"}, "allocation must be between 1 and 1000000"},
		"too much":      {&Budget{Name: "k", Allocation: BudgetUnits + 1}, "allocation must be between 1 and 1000000"},
		"no key":        {&Budget{Allocation: 1}, "key must not be empty"},
		"unknown":       {&Budget{Name: "k", Allocation: 1, Strategy: strategyEnd}, "strategy.type must be"},
		"two in one":    {&Budget{Name: "k", Allocation: 1, Duration: 1}, "strategy while_in_flight has neither"},
		"timed":         {timed(func(*Budget) {}), ""},
		"no time":       {timed(func(b *Budget) { b.Duration = 0 }), "strategy.duration_ms must be at least 1"},
		"burst":         {timed(func(b *Budget) { b.Burst = BudgetUnits }), ""},
		"too much of":   {timed(func(b *Budget) { b.Burst = BudgetUnits + 1 }), "strategy.burst must be between 1 and 1000000"},
		"less than one": {timed(func(b *Budget) { b.Burst = -1 }), "strategy.burst must be"},
		"never full":    {timed(func(b *Budget) { b.Duration, b.Burst = Day*365, 101 }), "strategy.duration_ms is too long"},
		"for ever":      {timed(func(b *Budget) { b.Duration = MaxMillis }), "strategy.duration_ms is too long"},
	} {
		err := c.b.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || KindOf(err) != Unprocessable || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAJobWithoutBindingsCarriesNothing(t *testing.T) {
	j := &Job{}
	if j.Extras = j.WithBudgets([]BudgetUse{{"k", 1}}); BudgetAt(j.Budgets(), "k") != 0 || BudgetAt(j.Budgets(), "l") != -1 {
		t.Errorf("bound to %v", j.Budgets())
	}
	if x := j.WithProgress(&RunProgress{}); len(x.Budgets) != 1 {
		t.Error("progress unbound the job")
	}
	if x := j.WithBudgets(nil); x != nil {
		t.Errorf("left %+v", x)
	}
	if (*Job)(nil).Budgets() != nil {
		t.Error("no job is bound")
	}
}
