package wire

import "encoding/json"

// The states of a job.
const (
	Scheduled = "scheduled" // waits for its time
	Ready     = "ready"     // waits for a worker
	InFlight  = "in_flight" // a worker has it
	Completed = "completed" // finished
	Dead      = "dead"      // given up; reason says why
)

// Statuses lists the states in the order of a life.
var Statuses = []string{Scheduled, Ready, InFlight, Completed, Dead}

// Waits are why an open job does not run (Job.Wait): its queue or its group is
// paused; it is held for a time, by a breaker or with its group, or stands aside
// by itself; it stands behind the head of its group; as many run, or start in a
// span of time, as may; it lacks units of a budget.
var Waits = []string{"paused", "held", "behind head", "limited", "budget"}

// PriorityDefault is the priority of a job that names none; lower runs first.
const PriorityDefault uint16 = 32768

// Enqueue is the body of POST /jobs and one entry of POST /jobs/bulk. Type,
// queue and payload are required; a payload may be null.
type Enqueue struct {
	Type    string          `json:"type"`
	Queue   string          `json:"queue"`
	Payload json.RawMessage `json:"payload"`

	Priority  *uint16 `json:"priority,omitempty"`   // lower runs first
	Group     string  `json:"group,omitempty"`      // carries order and limits inside the queue
	Place     string  `json:"place,omitempty"`      // front or back of its priority
	ReadyAt   int64   `json:"ready_at,omitempty"`   // not before
	ExpiresAt int64   `json:"expires_at,omitempty"` // dead if it was not started by then

	RunTimeoutMS   int64 `json:"run_timeout_ms,omitempty"`   // longest run of one attempt
	StartTimeoutMS int64 `json:"start_timeout_ms,omitempty"` // longest wait between delivery and start

	Retry      *Retry     `json:"retry,omitempty"`       // not together with RetryLimit or Backoff
	RetryLimit *uint32    `json:"retry_limit,omitempty"` // retries after the first attempt
	Backoff    *Backoff   `json:"backoff,omitempty"`
	Retention  *Retention `json:"retention,omitempty"`

	// IdempotencyKey makes sending the same job again harmless: the same key
	// with the same content answers with the first job and duplicate true.
	IdempotencyKey string `json:"idempotency_key,omitempty"`

	Copies   int      `json:"copies,omitempty"`   // runs wanted side by side; the first OK ends the others
	Requires []string `json:"requires,omitempty"` // conditions on the worker

	Labels      map[string]string `json:"labels,omitempty"`      // kept and handed on; at most 32
	Traceparent string            `json:"traceparent,omitempty"` // W3C trace context

	// UniqueKey is a key that one job of the server has at a time: while
	// another one has it, nothing is added, and the answer is that one with
	// duplicate true. UniqueWhile says for how long; empty = queued.
	UniqueKey   string `json:"unique_key,omitempty"`
	UniqueWhile string `json:"unique_while,omitempty"`
	Batch       *Batch `json:"batch,omitempty"` // not together with UniqueKey

	Budgets []Binding `json:"budgets,omitempty"` // what its runs use together with others; at most 32
}

// How long a job has its unique key, and in which states the job that has it
// turns a newcomer away: the newcomer's word decides that.
const (
	WhileQueued = "queued" // scheduled, ready
	WhileActive = "active" // and in_flight
	WhileExists = "exists" // in any, as long as it can be read
)

// Batch makes jobs with the same key one: a job that waits takes in those that
// follow, until it is taken. Its own expressions decide, not theirs. They are
// jq, with the payloads $existing and $new.
type Batch struct {
	Key  string `json:"key"`
	When string `json:"when"` // whether it takes a newcomer in; its first output counts
	Fold string `json:"fold"` // its payload then: exactly one output
}

// Job is a job as the server tells it. The fields stand in the order in which
// they are sent.
type Job struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Queue    string          `json:"queue"`
	Priority uint16          `json:"priority"`
	Status   string          `json:"status"`
	Payload  json.RawMessage `json:"payload,omitempty"` // when read or taken, not when enqueued
	ReadyAt  int64           `json:"ready_at"`
	Attempts uint32          `json:"attempts"` // failed ones that were charged

	RetryLimit *uint32    `json:"retry_limit,omitempty"`
	Backoff    *Backoff   `json:"backoff,omitempty"`
	Retry      *Retry     `json:"retry,omitempty"`
	Retention  *Retention `json:"retention,omitempty"`

	DequeuedAt  int64 `json:"dequeued_at,omitempty"` // latest delivery
	FailedAt    int64 `json:"failed_at,omitempty"`   // latest failure
	CompletedAt int64 `json:"completed_at,omitempty"`
	PurgeAt     int64 `json:"purge_at,omitempty"` // when a finished job is removed

	UniqueKey   string `json:"unique_key,omitempty"`
	UniqueWhile string `json:"unique_while,omitempty"`
	Batch       *Batch `json:"batch,omitempty"`

	Budgets []Binding `json:"budgets,omitempty"`

	Group          string   `json:"group,omitempty"`
	ExpiresAt      int64    `json:"expires_at,omitempty"`
	RunTimeoutMS   int64    `json:"run_timeout_ms,omitempty"`
	StartTimeoutMS int64    `json:"start_timeout_ms,omitempty"`
	Copies         int      `json:"copies,omitempty"`
	Requires       []string `json:"requires,omitempty"`

	Labels      map[string]string `json:"labels,omitempty"`
	Traceparent string            `json:"traceparent,omitempty"`
	Progress    *Progress         `json:"progress,omitempty"` // of the run, or the checkpoint of the one before

	ResultBytes int64           `json:"result_bytes,omitempty"` // of a completed job that has a result
	Result      json.RawMessage `json:"result,omitempty"`       // when this one job is read

	Losses      uint32 `json:"losses,omitempty"`      // endings in a row where the worker vanished
	Evictions   uint32 `json:"evictions,omitempty"`   // times it was given back, never charged
	Reschedules uint32 `json:"reschedules,omitempty"` // extra copies asked for
	Reason      string `json:"reason,omitempty"`      // why a dead job is dead
	Wait        string `json:"wait,omitempty"`        // why an open job does not run: one of Waits

	// Of a delivery to a worker that settles by token; only it sees them.
	Lease       string `json:"lease,omitempty"`         // token of this delivery
	LeaseUntil  int64  `json:"lease_until,omitempty"`   // it lapses then unless extended
	RunUntil    int64  `json:"run_until,omitempty"`     // the run must be over by then; counted anew from its start
	StartBy     int64  `json:"start_by,omitempty"`      // the run must have begun by then
	StopAfterMS int64  `json:"stop_after_ms,omitempty"` // of a task: the engine ends the run by itself so long after it began, and tells of a timeout
	Held        bool   `json:"held,omitempty"`          // this worker had it before it reconnected

	// Voided makes a line of a take the news that the lease is over: cancel,
	// supersede (another copy was first), timeout, release (start timeout).
	// Such a line holds id and lease only.
	Voided string `json:"voided,omitempty"`
}

// Enqueued answers an enqueue.
type Enqueued struct {
	Job
	Gone      bool `json:"gone,omitempty"` // a duplicate whose job has left
	Duplicate bool `json:"duplicate"`      // the job was there already, or has the unique key; nothing was added
	Folded    bool `json:"folded"`         // the payload went into a waiting job
}

// Bulk is the body of POST /jobs/bulk. It is taken whole or refused whole.
type Bulk struct {
	Jobs []Enqueue `json:"jobs"`
}

// BulkEnqueued answers POST /jobs/bulk, in the order of the request.
type BulkEnqueued struct {
	Jobs []Enqueued `json:"jobs"`
}

// Retention is how long a finished job stays to be looked at.
type Retention struct {
	CompletedMS *int64 `json:"completed_ms,omitempty"`
	DeadMS      *int64 `json:"dead_ms,omitempty"`
}

// Reasons are those of dead jobs.
var Reasons = []string{ReasonExhausted, ReasonKilled, ReasonExpired, ReasonLost, ReasonRejected, ReasonEvicted, ReasonCancelled}

// The reasons of dead jobs.
const (
	ReasonExhausted = "exhausted" // retry limit or max_age used up
	ReasonKilled    = "killed"    // its worker said so, or an operator skipped it
	ReasonExpired   = "expired"   // not started before expires_at
	ReasonLost      = "lost"      // its workers vanished too often
	ReasonRejected  = "rejected"  // refused after it was taken in
	ReasonEvicted   = "evicted"   // pushed out by a quota
	ReasonCancelled = "cancelled" // by an operator, or with its session: it is no death
)
