package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// ending is an error that says what is to become of the job.
type ending struct {
	outcome string
	cause   error
	in      time.Duration // of retry and release; -1 = not said
	at      time.Time     // of retry
	after   time.Duration // of retry
}

func (e *ending) Unwrap() error { return e.cause }

func (e *ending) Error() string {
	if e.cause == nil {
		return "given back"
	}
	return e.cause.Error()
}

// Dead gives the job up: it goes to the dead set with err and is not tried
// again, whatever its policy says.
func Dead(err error) error {
	return &ending{outcome: wire.OutcomeDead, cause: orNothing(err), in: -1}
}

// Release gives the job back without blame: nothing failed, no attempt is
// charged, and it is delivered again after a while, 0 for at once.
func Release(after time.Duration) error {
	return &ending{outcome: wire.OutcomeRelease, in: max(after, 0)}
}

// RetryIn fails the attempt and has the next one start after d, whatever the
// policy's curve and limit say.
func RetryIn(err error, d time.Duration) error {
	return &ending{outcome: wire.OutcomeRetry, cause: orNothing(err), in: max(d, 0)}
}

// RetryAt is RetryIn with a date.
func RetryAt(err error, at time.Time) error {
	return &ending{outcome: wire.OutcomeRetry, cause: orNothing(err), in: -1, at: at}
}

// RetryAfter fails the attempt and passes on what a target asked for (its
// Retry-After): the next one follows the policy, but comes no earlier, and
// until then, at most for an hour, the job's group is held, or its queue if it
// has no group.
func RetryAfter(err error, d time.Duration) error {
	return &ending{outcome: wire.OutcomeRetry, cause: orNothing(err), in: -1, after: max(d, 0)}
}

func orNothing(err error) error {
	if err == nil {
		return errors.New("failed without a reason")
	}
	return err
}

// Failure is an error with the particulars that the server keeps of a failed
// attempt. Any error will do; this one says more.
type Failure struct {
	Type      string // for rules and grouping; "" = the Go type of Err
	Message   string // "" = the text of Err
	Backtrace string
	Status    int  // HTTP status that a target answered
	ExitCode  int  // of a command
	Timeout   bool // the attempt took too long
	Err       error
}

func (f *Failure) Unwrap() error { return f.Err }

func (f *Failure) Error() string {
	switch {
	case f.Message != "":
		return f.Message
	case f.Err != nil:
		return f.Err.Error()
	}
	return "failed without a reason"
}

// The server keeps no more than this of a failure.
const (
	messageBytesMax   = 4 << 10
	backtraceBytesMax = 16 << 10
)

// Outcome is what a worker reports when a handler returned err: for tests of
// handlers, and for handlers around handlers. Job and lease are not filled in.
func Outcome(err error) wire.Settle {
	if err == nil {
		return wire.Settle{Outcome: wire.OutcomeOK}
	}
	s := wire.Settle{Outcome: wire.OutcomeRetry}
	if e, ok := errors.AsType[*ending](err); ok {
		s.Outcome = e.outcome
		switch {
		case e.outcome == wire.OutcomeRelease:
			s.DelayMS = milliseconds(e.in)
			return s
		case e.in >= 0:
			s.RetryInMS = new(milliseconds(e.in))
		case !e.at.IsZero():
			s.RetryAt = max(e.at.UnixMilli(), 1)
		}
		s.RetryAfterMS = milliseconds(e.after)
	}
	failure := wire.Failure{Message: err.Error(), ErrorType: typeOf(err)}
	if f, ok := errors.AsType[*Failure](err); ok {
		failure.Backtrace, failure.Status = f.Backtrace, f.Status
		failure.ExitCode, failure.Timeout = f.ExitCode, f.Timeout
		if f.Type != "" {
			failure.ErrorType = f.Type
		}
	}
	failure.Message = cmp.Or(failure.Message, "failed without a message")
	failure.Message = head(failure.Message, messageBytesMax)
	failure.Backtrace = head(failure.Backtrace, backtraceBytesMax)
	s.Error = &failure
	return s
}

// milliseconds rounds up, so that nothing happens before its time.
func milliseconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Millisecond) + 1
}

// head keeps the first bytes of a text whole characters long.
func head(s string, bytesMax int) string {
	if len(s) <= bytesMax {
		return s
	}
	return strings.ToValidUTF8(s[:bytesMax], "") + "…"
}

// typeOf names the first error in the chain whose Go type tells something;
// wrappings and plain texts do not.
func typeOf(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		switch name := fmt.Sprintf("%T", err); {
		case strings.HasPrefix(name, "*fmt."), strings.HasPrefix(name, "*errors."),
			name == "*client.ending", name == "*client.Failure":
		default:
			return strings.TrimPrefix(name, "*")
		}
	}
	return ""
}

// Handler runs one attempt. Its ctx ends when the worker's drain deadline has
// passed, the job's run timeout is over, or the server ended the attempt
// (ErrVoided): then what it returns counts for nothing. A panic is a failure
// with its stack.
type Handler func(ctx context.Context, d *Delivery) error

// Delivery is one attempt at a job.
type Delivery struct {
	Job wire.Job

	run  *run // nil in a test of a handler
	held *held

	hold   atomic.Int64 // milliseconds
	result atomic.Pointer[[]byte]
}

// Report tells the server how far the run has come. What is left out of p stays
// as it was; its checkpoint is what the next attempt finds in Job.Progress. That
// the attempt does not count any more is an *Error with code superseded, and the
// handler's ctx ends with ErrVoided. Without a worker around it Report does
// nothing.
func (d *Delivery) Report(ctx context.Context, p wire.Progress) error {
	if d.run == nil {
		return nil
	}
	return d.run.client.Report(ctx, d.Job.ID, d.run.leaseOf(d.held), p)
}

// Hold asks the server to keep the job's group out of line for a while, or its
// queue if it has no group: for a target that said, even in a successful answer,
// that its limit is used up. It goes with the outcome of the attempt, whatever
// that is. The hold ends up to a tenth later, and at most after an hour; jobs
// that are held spend no attempts. Of several calls the longest counts.
func (d *Delivery) Hold(span time.Duration) {
	for asked := milliseconds(span); ; {
		if old := d.hold.Load(); asked <= old || d.hold.CompareAndSwap(old, asked) {
			return
		}
	}
}

// Attempt is the number of this attempt, 1 for the first.
func (d *Delivery) Attempt() int { return int(d.Job.Attempts) + 1 }

// Traceparent is the W3C trace context in which the handler works, to be the
// parent of its own spans; "" = none. It is what the producer sent, or, from a
// server that exports spans, the span of this run.
func (d *Delivery) Traceparent() string { return d.Job.Traceparent }

// Decode reads the payload into v.
func (d *Delivery) Decode(v any) error {
	if err := json.Unmarshal(d.Job.Payload, v); err != nil {
		return fmt.Errorf("reading the payload: %w", err)
	}
	return nil
}

// Typed makes a handler of a function that takes the payload as a Go value. A
// payload that does not fit can never succeed, so its job is dead.
func Typed[T any](handle func(context.Context, T, *Delivery) error) Handler {
	return func(ctx context.Context, d *Delivery) error {
		var payload T
		if err := d.Decode(&payload); err != nil {
			return Dead(err)
		}
		return handle(ctx, payload, d)
	}
}
