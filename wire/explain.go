package wire

// Explanation answers GET /jobs/{id}/explain.
type Explanation struct {
	ID      string     `json:"id"`
	Status  string     `json:"status"`
	Text    string     `json:"text"`           // all of it in words
	Reasons []Reason   `json:"reasons"`        // why it does not run; none if it does
	Retry   *RetryWait `json:"retry,omitzero"` // how its wait came about

	Avoids []string `json:"avoids,omitzero"` // hosts on which a task failed: it runs elsewhere if it can

	Overrun *Overrun `json:"overrun,omitzero"` // of an open task: when it is seen that a run takes too long

	Policy     Retry      `json:"policy"` // what holds for the job now, with nothing left out
	PolicyFrom PolicyFrom `json:"policy_from"`
}

// Overrun is within what span from its start it is seen that a run of a task takes too long.
type Overrun struct {
	FromMS int64 `json:"from_ms"` // at the soonest: task_max_time
	ByMS   int64 `json:"by_ms"`   // at the latest
	// The same over all runs that the task may have yet, if each takes too long, without
	// the waits between them; left out if there is no limit.
	AllFromMS int64 `json:"all_from_ms,omitzero"`
	AllByMS   int64 `json:"all_by_ms,omitzero"`
}

// Reason is one reason why a job does not run.
type Reason struct {
	Reason string `json:"reason"`
	Text   string `json:"text"`
	Queue  string `json:"queue,omitzero"`
	Group  string `json:"group,omitzero"` // where it is the group's
	Until  int64  `json:"until,omitzero"` // when it ends by itself
	State  string `json:"state,omitzero"` // of a breaker
	Forced bool   `json:"forced,omitzero"`
	Limit  int    `json:"limit,omitzero"`
	Head   string `json:"head,omitzero"` // the job in front
	Label  string `json:"label,omitzero"`
}

// The reasons.
const (
	WaitNotDue       = "not_due"
	WaitParked       = "parked"
	WaitPaused       = "paused"
	WaitHeld         = "held"
	WaitBreaker      = "breaker"
	WaitGroupParked  = "group_parked"
	WaitBehindHead   = "behind_head"
	WaitGroupLimit   = "group_limit"
	WaitMaxRunning   = "max_running"
	WaitRate         = "rate"
	WaitRetryBudget  = "retry_budget"
	WaitNoWorker     = "no_worker"
	WaitNoFitting    = "no_fitting_worker"
	WaitNoFreeWorker = "no_free_worker"
	WaitMaxInflight  = "max_inflight"
	WaitBudget       = "budget"
	WaitBehindTag    = "behind_affinity"
	WaitAffinity     = "affinity"
	WaitNoHost       = "no_eligible_host" // of a copy
	WaitNoCopy       = "no_copy"
	WaitExcluded     = "excluded"
	WaitInLine       = "in_line"
)

// RetryWait is how the wait for a retry came about.
type RetryWait struct {
	Retry    int    `json:"retry"`              // 1 for the first; 0 if nothing was charged yet
	By       string `json:"by"`                 // who chose the time
	Rule     int    `json:"rule,omitzero"`      // that decided about the failure, 1 for the first
	RuleFrom string `json:"rule_from,omitzero"` // who gave the rules
	Curve    string `json:"curve"`              // its kind: the rule's own, or the policy's
	From     string `json:"from"`               // who gave the curve: job, type, queue, door, server
	WaitMS   int64  `json:"wait_ms"`
	DrewMS   int64  `json:"drew_ms,omitzero"` // from the interval of the curve, if nobody else chose
	MinMS    int64  `json:"min_ms"`
	MaxMS    int64  `json:"max_ms"`
}

// Who chooses the time of a retry.
const (
	ByCurve  = "curve"
	ByRule   = "rule"   // which gave the job back for a while
	ByWorker = "worker" // by retry_at or retry_in_ms
	ByTarget = "target" // by its Retry-After
	ByHold   = "hold"   // of the group or queue, which lasts longer
	ByGrace  = "grace"  // inside which nothing is charged
	ByFence  = "fence"  // of a task that must not run twice: its engine may run it yet
)

// PolicyFrom says of each part of a policy who decided it.
type PolicyFrom struct {
	Limit     string `json:"limit"`
	MaxAge    string `json:"max_age"`
	Place     string `json:"place"`
	Curve     string `json:"curve"`
	Rules     string `json:"rules"`
	LossLimit string `json:"loss_limit"`
}

// Who decides a part of a policy, the most specific first.
const (
	FromJob    = "job"
	FromType   = "type"
	FromQueue  = "queue"
	FromDoor   = "door"
	FromServer = "server"
)
