package wire

// Retry is a retry policy. What is not set is left to the next wider one: the
// job's type, its queue, its door, the server. Curve and rules are replaced
// whole. Spans are strings: "250ms", "1m30s", "7d", "PT6S".
type Retry struct {
	// Limit is how many retries follow the first attempt: a whole number, or
	// one of the words Unlimited and None. Not set: inherited.
	Limit     any    `json:"limit,omitempty"`
	MaxAge    string `json:"max_age,omitempty"` // give up once the next attempt would be later than this
	Place     string `json:"place,omitempty"`   // where a retry stands that is ready at once
	Curve     *Curve `json:"curve,omitempty"`
	Rules     []Rule `json:"rules,omitzero"`       // the first that matches decides; empty and not nil: none
	LossLimit any    `json:"loss_limit,omitempty"` // like Limit: vanished workers in a row
}

// Rule says what to do about failures of a kind. Which of its fields belong to
// what it does is in the reference of retry policies; others are refused.
type Rule struct {
	When When   `json:"when,omitzero"` // all that is set must fit
	Do   string `json:"do"`

	Limit             any    `json:"limit,omitempty"`               // of retry: instead of the policy's
	Curve             *Curve `json:"curve,omitempty"`               // of retry: instead of the policy's
	RespectRetryAfter *bool  `json:"respect_retry_after,omitempty"` // of retry: whether a target's wish counts, for the job and as a hold; not set: it does
	Delay             string `json:"delay,omitempty"`               // of release and hold
}

// When is what a failure must be like. Of a list one entry must fit.
type When struct {
	ErrorType []string `json:"error_type,omitempty"`
	Message   string   `json:"message,omitempty"`   // RE2, anywhere in it
	Status    []any    `json:"status,omitempty"`    // 503, "5xx", "500-504"
	ExitCode  []any    `json:"exit_code,omitempty"` // 75, "64-78"
	Timeout   *bool    `json:"timeout,omitempty"`
}

// What a rule does with the job.
const (
	DoRetry   = "retry"   // charged and tried again, by the rule's own curve and limit if it has them
	DoDead    = "dead"    // given up, reason killed
	DoRelease = "release" // given back without blame, after a delay
	DoHold    = "hold"    // charged and tried again; its group, or its queue, is held for a while
)

// Words for a limit.
const (
	Unlimited = "unlimited"
	None      = "none" // no retry: the first failure is the end
)

// Curve is how long to wait before each retry. Which fields belong to a kind
// is in the reference of retry policies; others are refused.
type Curve struct {
	Kind     string   `json:"kind"`
	Base     string   `json:"base,omitempty"`
	Cap      string   `json:"cap,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Factor   *float64 `json:"factor,omitempty"`
	Offset   int      `json:"offset,omitempty"`
	Delay    string   `json:"delay,omitempty"`
	Step     string   `json:"step,omitempty"`
	Delays   []string `json:"delays,omitempty"`
	Exponent *float64 `json:"exponent,omitempty"`
	Count    string   `json:"count,omitempty"`
	Jitter   string   `json:"jitter,omitempty"` // none, full, equal, decorrelated, ±10%; a span for polynomial
}

// The kinds of curve.
const (
	Polynomial  = "polynomial"
	Uniform     = "uniform"
	Exponential = "exponential"
	Constant    = "constant"
	Staircase   = "staircase"
	Linear      = "linear"
	List        = "list"
	Immediate   = "immediate"
)

// Backoff is the older shape of a polynomial curve; all three are required.
type Backoff struct {
	Exponent float64 `json:"exponent"`
	BaseMS   uint32  `json:"base_ms"`
	JitterMS uint32  `json:"jitter_ms"`
}

// Places in a line.
const (
	Front = "front" // first of its priority
	Back  = "back"  // last of its priority
	Keep  = "keep"  // where it stood
)
