package wire

// Queue answers GET and PATCH /queues/{name}: the settings of a queue and how
// much there is of it.
type Queue struct {
	Name string `json:"name"`
	QueueSettings

	Session       string        `json:"session,omitzero"` // the state of the session that it is; "" = it is none
	HoldUntil     int64         `json:"hold_until,omitzero"`
	BreakerState  *BreakerState `json:"breaker_state,omitzero"` // where it is not simply closed
	Jobs          JobCounts     `json:"jobs"`
	Bytes         int64         `json:"bytes"`                    // payloads of jobs that are not finished
	OldestReadyAt int64         `json:"oldest_ready_at,omitzero"` // since when the longest waiting of the oldest ready jobs waits; 0 = none is ready
	Rates         *QueueRates   `json:"rates,omitzero"`           // nil = not known: things happened in more than max_queues queues
}

// QueueSettings are those of a queue. A PATCH names what is to change; null is
// the default.
type QueueSettings struct {
	Paused         bool       `json:"paused"`
	Order          string     `json:"order"`
	Concurrency    int64      `json:"concurrency"` // jobs of a group in flight at once; 0 = no limit
	OnDead         string     `json:"on_dead"`
	FrontOrder     string     `json:"front_order"`
	Retry          *Retry     `json:"retry,omitzero"`
	LateOK         string     `json:"late_ok"`
	RequireToken   bool       `json:"require_token"`
	NonIdempotent  bool       `json:"non_idempotent"`
	MaxJobs        int64      `json:"max_jobs"` // 0 = no limit
	MaxBytes       int64      `json:"max_bytes"`
	OnFull         string     `json:"on_full"`
	RunTimeoutMS   int64      `json:"run_timeout_ms"` // 0 = none
	StartTimeoutMS int64      `json:"start_timeout_ms"`
	Retention      *Retention `json:"retention,omitzero"`

	MaxRunning   int64        `json:"max_running,omitzero"` // runs of the queue at once; 0 = no limit
	Rate         *Rate        `json:"rate,omitzero"`        // of the queue
	GroupRate    *Rate        `json:"group_rate,omitzero"`  // of each group
	Breaker      *Breaker     `json:"breaker,omitzero"`     // of the queue
	GroupBreaker *Breaker     `json:"group_breaker,omitzero"`
	RetryBudget  *RetryBudget `json:"retry_budget,omitzero"`
	FairShare    *FairShare   `json:"fair_share,omitzero"`
}

// QueueRates is how much happened in a queue per second, on average over the
// window: the last minute, or since the server started. A run that was given
// back, or lost with its worker, is neither completed nor failed.
type QueueRates struct {
	WindowMS  int64   `json:"window_ms"` // 59 to 60 s, less after a start
	Enqueued  float64 `json:"enqueued"`
	Taken     float64 `json:"taken"`     // to be run, for the first time or again
	Completed float64 `json:"completed"` // runs that ended well
	Failed    float64 `json:"failed"`    // runs that failed or took longer than they may
}

// JobCounts is how many jobs of a queue there are in each state.
type JobCounts struct {
	Scheduled int64 `json:"scheduled"`
	Ready     int64 `json:"ready"`
	InFlight  int64 `json:"in_flight"`
	Completed int64 `json:"completed"`
	Dead      int64 `json:"dead"`               // those that were cancelled are apart
	Cancelled int64 `json:"cancelled,omitzero"` // of the status dead, with the reason cancelled
}

// Breaker is when a circuit breaker opens, and how it closes again. What is
// left out, or 0, is the default; with consecutive, no failure_ratio is none.
type Breaker struct {
	Window       int     `json:"window,omitzero"`        // latest outcomes looked at; 20, at most 256
	FailureRatio float64 `json:"failure_ratio,omitzero"` // of failures among them at which it opens; 0.5
	Consecutive  int     `json:"consecutive,omitzero"`   // failures in a row at which it opens
	OpenForMS    int64   `json:"open_for_ms,omitzero"`   // 30000, doubled each time
	OpenForMaxMS int64   `json:"open_for_max_ms,omitzero"`
	Probes       int     `json:"probes,omitzero"`  // runs let through then; 1
	RampMS       int64   `json:"ramp_ms,omitzero"` // from the first runs to no limit; 10000
}

// Rate is takes per second; a null rate is no limit.
type Rate struct {
	PerSecond float64 `json:"per_second"`
	Burst     int     `json:"burst,omitzero"` // at once after a pause; 0 = a fiftieth of a second's, at least 1
}

// RetryBudget bounds retries to a share of takes. What is left out is the
// default.
type RetryBudget struct {
	RetryShare     *float64 `json:"retry_share,omitzero"`      // 0.2
	FloorPerSecond *float64 `json:"floor_per_second,omitzero"` // 10
}

// FairShare gives groups turns.
type FairShare struct {
	Weights map[string]int `json:"weights,omitempty"` // jobs in one turn, where it is not 1
}

// BreakerState is where a breaker is.
type BreakerState struct {
	State    string `json:"state"`             // closed, open, half_open, ramping
	Forced   bool   `json:"forced,omitzero"`   // by an operator
	Until    int64  `json:"until,omitzero"`    // when it moves on by itself
	Openings int    `json:"openings,omitzero"` // since it was last closed
	Allowed  int    `json:"allowed,omitzero"`  // runs at once, while half open or ramping
	Running  int    `json:"running,omitzero"`  // those there are
}

// The words of BreakerState, and of ForceBreaker.
const (
	BreakerClosed   = "closed"
	BreakerOpen     = "open"
	BreakerHalfOpen = "half_open"
	BreakerRamping  = "ramping"
	BreakerAuto     = "auto" // ForceBreaker: decides by itself
)

// Aside is a group that is held or slowed down.
type Aside struct {
	Group        string        `json:"group"`
	HoldUntil    int64         `json:"hold_until,omitzero"`
	BreakerState *BreakerState `json:"breaker_state,omitzero"`
	RateUntil    int64         `json:"rate_until,omitzero"` // its rate is used up until then
}

// Asides answers GET /queues/{name}/groups: the groups that are held or slowed
// down, by name; at most 1000.
type Asides struct {
	Groups []Aside `json:"groups"`
}

// Hold is the body of POST /queues/{name}/hold: of a group, or of the whole
// queue. Exactly one of Until and ForMS is given.
type Hold struct {
	Group string `json:"group,omitzero"`
	Until int64  `json:"until,omitzero"`
	ForMS int64  `json:"for_ms,omitzero"`
}

// Held answers it. The hold ends up to a tenth later than asked for, and at
// most an hour from now.
type Held struct {
	HoldUntil int64 `json:"hold_until"`
}

// OfGroup is the body of POST /queues/{name}/release.
type OfGroup struct {
	Group string `json:"group,omitzero"`
}

// ForceBreaker is the body of POST /queues/{name}/breaker.
type ForceBreaker struct {
	Group string `json:"group,omitzero"`
	State string `json:"state"` // open, closed, auto
}
