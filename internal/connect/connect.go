// Package connect is the contract between a door and the targets outside to
// which it delivers by itself. A sink hands work over once and tells what the
// target said. It never tries again, waits for a better time or decides what
// is final: that is the policy's business (spec/retry.md section 1), whose rules look
// at the failure a sink reports.
package connect

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
)

// Sink delivers to one target. Its methods may be called at the same time.
type Sink interface {
	// Deliver hands a batch over and returns a result for each message, in
	// their order: what the target said of that one, whatever it said of others. What one
	// that failed means for those behind it, the rules say. It is one act with the target: what is to be acknowledged
	// message by message is delivered so, in batches of one. It returns within
	// a time of the sink's own, or soon after ctx ends. Then it blames nobody:
	// what the target did not answer for is Released.
	Deliver(ctx context.Context, b *Batch) []Result
	// Close frees what the sink keeps open. Deliveries that go on are finished.
	Close() error
}

// FailFirst is the mode of an inbox whose batches stop at the first message that fails.
const FailFirst = "fail_first"

// Batch is what is handed over at once: messages of one group, in its order.
type Batch struct {
	Queue    string    // or inbox
	Group    string    // "" = none
	Stop     bool      // the target stops at the first message that fails (FailFirst)
	Messages []Message // at least one
}

// Message is a job on its way out.
type Message struct {
	ID      string // the same at every attempt, and of no other message
	Attempt int    // 1 for the first
	Type    string
	Header  map[string]string // as it came in; nil = none
	// ContentType of the body; "" = application/json.
	ContentType string
	Body        []byte
}

// Result is what became of one message, in the words of a settle.
type Result struct {
	Outcome    job.Outcome
	Failure    job.Failure // of Retried and Died: Type, Message, Backtrace, Status, Timeout
	RetryAfter job.Millis  // of Retried and Died: what the target asked for; 0 = nothing
	NotBefore  job.Millis  // of Retried and Died: the same as a date; 0 = none
	Delay      job.Millis  // of Released: not before then

	Parts *Parts // of a message that the target took in part, such as a chunk of records; nil = the result is that of the whole
}

// Parts are what a message falls into. What is in none of them is done.
type Parts struct {
	Rest   []byte  // what the message is from now on: the result is that of it; nil = all of it
	Pieces []Piece // messages of their own from now on
}

// Piece is a part of a message, with a result of its own.
type Piece struct {
	Body       []byte
	Outcome    job.Outcome
	Failure    job.Failure
	RetryAfter job.Millis
}

// Error types of failures that a sink itself finds. What a target says of its
// own accord has others.
const (
	TypeTimeout = "timeout" // no answer in time; Failure.Timeout is set
	TypeNetwork = "network" // no answer
	TypeEgress  = "egress"  // the target must not be called (Egress)
	TypeAnswer  = "answer"  // an answer that cannot be understood, or says nothing of the message
)
