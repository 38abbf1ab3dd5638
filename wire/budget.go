package wire

// Binding ties a job to a budget: a run of it costs units.
type Binding struct {
	Key        string  `json:"key,omitzero"`         // where no path names it
	Cost       int64   `json:"cost,omitzero"`        // of a run; 0 = 1. In answers always there
	CreateWith *Budget `json:"create_with,omitzero"` // makes the budget if there is none; not in answers
}

// Budget is what jobs may use together, whatever their queues.
type Budget struct {
	Allocation int64          `json:"allocation"` // units, 1 to 1,000,000
	Strategy   BudgetStrategy `json:"strategy"`
}

// The strategies of a budget.
const (
	BudgetWhileInFlight = "while_in_flight" // units come back when a lease ends
	BudgetTimeBased     = "time_based"      // units come with time
)

// BudgetStrategy says how the units of a budget come back.
type BudgetStrategy struct {
	Type       string `json:"type"`
	DurationMS int64  `json:"duration_ms,omitzero"` // of time_based: in which the allocation comes
	Burst      int64  `json:"burst,omitzero"`       // of time_based: units that gather at most; 0 = the allocation
}

// BudgetState is a budget as the server has it, and how it is used.
type BudgetState struct {
	Key string `json:"key"`
	Budget
	CreatedAt int64 `json:"created_at"`
	UpdatedAt int64 `json:"updated_at"`
	Jobs      int64 `json:"jobs"`      // that are bound to it and not completed
	InFlight  int64 `json:"in_flight"` // units of the runs that go on
	Available int64 `json:"available"` // units that a run may take now
	Waiting   bool  `json:"waiting"`   // a job waits for units
}

// Budgets answers GET /budgets.
type Budgets struct {
	Budgets []BudgetState `json:"budgets"`
}
