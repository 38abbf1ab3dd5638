package wire

import "encoding/json"

// The outcomes of an attempt.
const (
	OutcomeOK      = "ok"
	OutcomeRetry   = "retry"   // failed; again later, by policy
	OutcomeDead    = "dead"    // failed; never again
	OutcomeRelease = "release" // given back without blame
)

// Settle is one entry of POST /jobs/settle, whose body is an array of them.
type Settle struct {
	ID      string   `json:"id"`
	Lease   string   `json:"lease,omitempty"` // token of the delivery
	Outcome string   `json:"outcome"`
	Error   *Failure `json:"error,omitempty"` // of retry and dead

	// Result is what the run made, any JSON, of ok only; null is none. It is kept
	// with the job, as long as that stays once it is completed.
	Result json.RawMessage `json:"result,omitempty"`

	RetryAt      int64  `json:"retry_at,omitempty"`       // of retry: the worker's own time, over the curve and the limit
	RetryInMS    *int64 `json:"retry_in_ms,omitempty"`    // of retry: the same as a span; 0 is at once
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"` // of retry and dead: what a target asked for; holds the group or queue, and is the least wait
	RetryAfter   string `json:"retry_after,omitempty"`    // of retry and dead: the same as its Retry-After: seconds, or a date
	DelayMS      int64  `json:"delay_ms,omitempty"`       // of release: not before then
	Place        string `json:"place,omitempty"`          // of retry and release
	HoldMS       int64  `json:"hold,omitempty"`           // of each: how long to hold the group, or the queue of a job without one

	StartedAt int64 `json:"started,omitempty"` // when the run began
}

// Failure says what went wrong.
type Failure struct {
	Message   string `json:"message"`
	ErrorType string `json:"error_type,omitempty"`
	Backtrace string `json:"backtrace,omitempty"`
	Status    int    `json:"status,omitempty"`    // HTTP status a target answered
	ExitCode  int    `json:"exit_code,omitempty"` // of a command
	Timeout   bool   `json:"timeout,omitempty"`   // the attempt took too long
}

// Extension is one entry of POST /jobs/extend: a longer life for a lease, the
// word that its run has begun, or both.
type Extension struct {
	ID      string `json:"id"`
	Lease   string `json:"lease"`
	MS      int64  `json:"ms,omitempty"` // from now; for leases of POST /jobs/lease
	Started bool   `json:"started,omitempty"`

	Progress *Progress `json:"progress,omitempty"` // what the run has to tell
}

// Progress is what a worker tells of its run; what it leaves out stays as it
// was. The checkpoint is on disk when the call returns, and the next attempt is
// delivered with it; the rest is about this attempt.
type Progress struct {
	Fraction   *float64        `json:"fraction,omitempty"`   // done of the whole, 0 to 1
	Text       string          `json:"text,omitempty"`       // at most 1 KiB
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"` // any JSON, at most 64 KiB
	At         int64           `json:"at,omitempty"`         // in answers: when it was told
}

// ReportProgress is the body of POST /jobs/{id}/progress.
type ReportProgress struct {
	Lease string `json:"lease"`        // token of the delivery
	MS    int64  `json:"ms,omitempty"` // as in an Extension
	Progress
}

// Cancel is the body of POST /jobs/{id}/cancel, which may be left out.
type Cancel struct {
	Reason string `json:"reason,omitempty"` // for people; kept with the job's failure
}

// CancelMany is the body of POST /jobs/cancel, which may be left out.
type CancelMany struct {
	Reason string `json:"reason,omitempty"`  // as in Cancel
	DryRun bool   `json:"dry_run,omitempty"` // count, and show up to 5
}

// CancelPreview answers POST /jobs/cancel with dry_run.
type CancelPreview struct {
	DryRun bool  `json:"dry_run"`
	Count  int64 `json:"count"`
	Sample []Job `json:"sample"`
}

// Release is the body of POST /jobs/{id}/release: the job goes back without
// blame.
type Release struct {
	Lease   string `json:"lease,omitempty"`    // token of the delivery
	DelayMS int64  `json:"delay_ms,omitempty"` // not before then
	Place   string `json:"place,omitempty"`    // front, back or keep
}

// Extensions is the body of POST /jobs/extend: some leases, or all that Worker
// took with its Secret. It is answered with Verdicts.
type Extensions struct {
	Leases []Extension `json:"leases,omitzero"`
	MS     int64       `json:"ms,omitempty"` // new life from now of leases without their own; of a worker 0 = 30000
	Worker string      `json:"worker,omitempty"`
	Secret string      `json:"secret,omitempty"`
}

// Verdict answers one Settle or Extension. Code is empty if it was accepted.
type Verdict struct {
	ID     string `json:"id"`
	Status string `json:"status,omitempty"` // of the job afterwards
	Code   string `json:"code,omitempty"`
	Error  string `json:"error,omitempty"`

	// Recalled are other messages of the same turn of an inbox that went back
	// untouched, because this one failed, or because they were paused or expired
	// meanwhile: their leases are over, and they are not handled now.
	Recalled []string `json:"recalled,omitempty"`
}

// Verdicts answers POST /jobs/settle and POST /jobs/extend, one for each entry
// in order.
type Verdicts struct {
	Verdicts []Verdict `json:"verdicts"`
}

// JobError is the record of one failed attempt.
type JobError struct {
	Attempt    uint32 `json:"attempt"` // its number among all failures
	Message    string `json:"message"`
	ErrorType  string `json:"error_type,omitempty"`
	Backtrace  string `json:"backtrace,omitempty"`
	DequeuedAt int64  `json:"dequeued_at"` // 0 = it is of no attempt: the job was cancelled, pushed out or refused
	FailedAt   int64  `json:"failed_at"`
	Status     int    `json:"status,omitempty"`    // HTTP status that a target answered
	ExitCode   int    `json:"exit_code,omitempty"` // of a command
	Timeout    bool   `json:"timeout,omitempty"`   // the attempt took too long
	Worker     string `json:"worker,omitempty"`

	// Attempts is what was charged so far, where that is not the number: after
	// a grace or a revive.
	Attempts uint32 `json:"attempts,omitempty"`
}
