package job

import "slices"

// Bounds of budgets.
const (
	BudgetsMax   = 8192      // in a server
	BudgetUnits  = 1_000_000 // most of an allocation, a burst or a cost
	JobBudgets   = 32        // most that one job is bound to
	budgetFillUp = 100 * 365 * Day
)

// Strategy is how units of a budget come back.
type Strategy uint8

// The strategies.
const (
	WhileInFlight Strategy = iota // when the lease ends that they went out with
	TimeBased                     // with time, whatever became of the lease
	strategyEnd
)

var strategyNames = [strategyEnd]string{"while_in_flight", "time_based"}

func (s Strategy) String() string { return nameOf(strategyNames[:], uint8(s)) }

// Budget bounds what jobs that are bound to it may use together, whatever
// their queues: units that are out at once, or units in a span of time.
type Budget struct {
	Name       string
	Allocation int64 // units at once; TimeBased: units that come in each Duration
	Strategy   Strategy
	Duration   Millis // TimeBased only
	Burst      int64  // TimeBased only: units at once after a pause; 0 = Allocation
	Created    Millis
	Updated    Millis
	Jobs       int64 // jobs that refer to it: those that are not completed
	Gone       bool  `json:",omitzero"` // it was deleted, and bounds nothing: the row counts the dead jobs that refer to it yet
}

// NoBudget refuses the use of a budget that there is not.
type NoBudget struct {
	Key string
	Job int // which of the jobs that were put in together uses it, from 0
}

func (e *NoBudget) Error() string { return e.Unwrap().Error() }

// Unwrap returns what it is to those who do not ask for the budget.
func (e *NoBudget) Unwrap() error {
	return &Error{Kind: Unprocessable, Field: "budgets", Text: "budget '" + e.Key + "' does not exist; create it, or give create_with"}
}

// Table implements Row.
func (b *Budget) Table() Table { return Budgets }

// Key implements Row.
func (b *Budget) Key() string { return b.Name }

// Due implements Row.
func (b *Budget) Due() Millis { return 0 }

// Capacity is how many units there are when none is out.
func (b *Budget) Capacity() int64 {
	if b.Strategy == TimeBased && b.Burst > 0 {
		return b.Burst
	}
	return b.Allocation
}

// Check refuses settings that cannot be kept.
func (b *Budget) Check() error {
	bad := func(field, format string, args ...any) error {
		e := Errorf(Unprocessable, field+" "+format, args...)
		e.Field = field
		return e
	}
	switch {
	case b.Name == "":
		return bad("key", "must not be empty")
	case b.Allocation < 1 || b.Allocation > BudgetUnits:
		return bad("allocation", "must be between 1 and %d", BudgetUnits)
	case b.Strategy >= strategyEnd:
		return bad("strategy.type", "must be while_in_flight or time_based")
	case b.Strategy == WhileInFlight && (b.Duration != 0 || b.Burst != 0):
		return bad("strategy", "while_in_flight has neither duration_ms nor burst; use time_based")
	case b.Strategy == WhileInFlight:
		return nil
	case b.Duration < 1:
		return bad("strategy.duration_ms", "must be at least 1")
	case b.Burst < 0 || b.Burst > BudgetUnits:
		return bad("strategy.burst", "must be between 1 and %d", BudgetUnits)
	case b.Duration > budgetFillUp/Millis(b.Capacity())*Millis(b.Allocation):
		return bad("strategy.duration_ms", "is too long: a budget must be full again within 100 years")
	}
	return nil
}

// BudgetUse binds a job to a budget: each run of it costs so many units.
type BudgetUse struct {
	Key  string
	Cost int64
}

// Budgets are those that the job is bound to, in the order in which they were given.
func (j *Job) Budgets() []BudgetUse {
	if j == nil || j.Extras == nil {
		return nil
	}
	return j.Extras.Budgets
}

// BudgetAt is the place of a budget in a list of bindings, or -1.
func BudgetAt(list []BudgetUse, key string) int {
	return slices.IndexFunc(list, func(u BudgetUse) bool { return u.Key == key })
}

// WithBudgets returns the job's extras with these bindings.
func (j *Job) WithBudgets(list []BudgetUse) *Extras {
	x := Extras{}
	if j.Extras != nil {
		x = *j.Extras
	}
	if x.Budgets = list; len(list) == 0 {
		x.Budgets = nil
	}
	return x.orNil()
}
