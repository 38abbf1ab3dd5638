package wire

// Retry is a retry policy. What is not set is left to the queue and then to
// the server, except the curve, which is replaced whole. Spans are strings:
// "250ms", "1m30s", "7d", "PT6S".
type Retry struct {
	// Limit is how many retries follow the first attempt: a whole number, or
	// one of the words Unlimited and None. Not set: inherited.
	Limit     any    `json:"limit,omitempty"`
	MaxAge    string `json:"max_age,omitempty"` // give up once the next attempt would be later than this
	Place     string `json:"place,omitempty"`   // where a retry stands that is ready at once
	Curve     *Curve `json:"curve,omitempty"`
	LossLimit any    `json:"loss_limit,omitempty"` // like Limit: vanished workers in a row
}

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
