package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// Job is work to be done. Queue and Type are required.
type Job struct {
	Queue   string
	Type    string
	Payload any // becomes JSON; a json.RawMessage is sent as it is

	// Priority orders a queue, lower first. nil = 32768.
	Priority *uint16

	// Group is a key inside the queue, such as a customer, that carries order
	// and limits.
	Group string

	// Place is wire.Front or wire.Back of the priority. "" = back.
	Place string

	// At and Delay keep the job until then; At wins. Zero = at once. Delay counts
	// from the call, so a second call with the same IdempotencyKey asks for
	// another time and is refused: use At there.
	At    time.Time
	Delay time.Duration

	// ExpiresAt makes the job dead if it was not started by then. Zero = never.
	ExpiresAt time.Time

	// RunTimeout bounds one attempt, StartTimeout the wait between delivery and
	// start. 0 = as the queue says.
	RunTimeout, StartTimeout time.Duration

	// Retry is the policy of this job. nil = as the queue says.
	Retry *wire.Retry

	// Retention is how long the finished job stays. nil = as the queue says.
	Retention *wire.Retention

	// IdempotencyKey makes a repeated enqueue harmless, and so lets Enqueue
	// repeat it: the second answer is the first job, marked Duplicate. The same
	// key with other content is refused. "" = none.
	IdempotencyKey string

	// UniqueKey is a key that one job of the server has at a time, over all
	// queues. While another job has it nothing is added, and the answer is that
	// job, marked Duplicate. UniqueWhile is wire.WhileQueued, WhileActive or
	// WhileExists: until when the job has its key, and in which states of the
	// other one it is turned away. "" = queued.
	UniqueKey, UniqueWhile string

	// Batch lets a waiting job with the same key take this one in: the answer is
	// that job, marked Folded. nil = it stays a job of its own.
	Batch *wire.Batch

	// Budgets is what each run of the job uses together with others, at most 32.
	// One with CreateWith makes the budget if there is none; see AtOnce and Per.
	Budgets []wire.Binding

	// Copies is how many workers may run the job side by side; the first that
	// succeeds ends the others. 0 = 1.
	Copies int

	// Requires are conditions on the worker, such as "gpu" or "cpuMHz > 350", at
	// most 32: no other worker gets the job.
	Requires []string

	// Labels are kept with the job and handed to its worker, at most 32.
	Labels map[string]string

	// Traceparent is the W3C trace context of the producer. "" = none.
	Traceparent string
}

// body translates a job to the wire.
func (j *Job) body(now time.Time) (wire.Enqueue, error) {
	payload, err := encode(j.Payload)
	if err != nil {
		return wire.Enqueue{}, fmt.Errorf("payload: %w", err)
	}
	e := wire.Enqueue{
		Type: j.Type, Queue: j.Queue, Payload: json.RawMessage(payload[:len(payload)-1]),
		Priority: j.Priority, Group: j.Group, Place: j.Place, Retry: j.Retry, Retention: j.Retention,
		IdempotencyKey: j.IdempotencyKey, Copies: j.Copies,
		UniqueKey: j.UniqueKey, UniqueWhile: j.UniqueWhile, Batch: j.Batch, Budgets: j.Budgets,
		Requires: j.Requires, Labels: j.Labels, Traceparent: j.Traceparent,
		RunTimeoutMS: atLeastOne(j.RunTimeout), StartTimeoutMS: atLeastOne(j.StartTimeout),
	}
	if !j.At.IsZero() {
		e.ReadyAt = j.At.UnixMilli()
	} else if j.Delay > 0 {
		e.ReadyAt = now.Add(j.Delay).UnixMilli()
	}
	if !j.ExpiresAt.IsZero() {
		e.ExpiresAt = j.ExpiresAt.UnixMilli()
	}
	return e, nil
}

// atLeastOne is a span in milliseconds; one that is shorter than that is no 0,
// which would mean none.
func atLeastOne(span time.Duration) int64 {
	if ms := span.Milliseconds(); ms != 0 || span <= 0 {
		return ms
	}
	return 1
}

// Enqueue puts one job in. When it returns without an error, the job is safe
// on the server's disk.
func (c *Client) Enqueue(ctx context.Context, j Job) (*wire.Enqueued, error) {
	body, err := j.body(time.Now())
	if err != nil {
		return nil, fmt.Errorf("enqueuing: %w", err)
	}
	return repeated[wire.Enqueued](ctx, c, j.IdempotencyKey != "", "POST", "/jobs", body, "enqueuing")
}

// EnqueueBulk puts many jobs in, all or none, and answers in their order. The
// call is repeated only if each job has an idempotency key.
func (c *Client) EnqueueBulk(ctx context.Context, jobs []Job) ([]wire.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	bulk := wire.Bulk{Jobs: make([]wire.Enqueue, len(jobs))}
	now, keyed := time.Now(), true
	for i := range jobs {
		body, err := jobs[i].body(now)
		if err != nil {
			return nil, fmt.Errorf("enqueuing: jobs[%d]: %w", i, err)
		}
		bulk.Jobs[i] = body
		keyed = keyed && body.IdempotencyKey != ""
	}
	added, err := repeated[wire.BulkEnqueued](ctx, c, keyed, "POST", "/jobs/bulk", bulk, "enqueuing %d jobs", len(jobs))
	switch {
	case err != nil:
		return nil, err
	case len(added.Jobs) != len(jobs):
		return nil, fmt.Errorf("enqueuing %d jobs: the server answered for %d", len(jobs), len(added.Jobs))
	}
	return added.Jobs, nil
}

// repeat calls do until it succeeds, is refused for good, or RetryFor is over.
func (c *Client) repeat(ctx context.Context, safe bool, do func() error) error {
	start, told := time.Now(), c.opts.Repeating == nil
	return insist(ctx, do, func(err error, wait time.Duration) bool {
		left := c.opts.RetryFor - time.Since(start)
		if !safe || wait > left {
			return false
		}
		if !told {
			c.opts.Repeating(err, left)
			told = true
		}
		return true
	})
}

// insist makes a call until it succeeds, is refused for good, ctx ends, or goOn, which is
// told how long to wait before the next one, says no.
func insist(ctx context.Context, call func() error, goOn func(err error, wait time.Duration) bool) error {
	waits := backoff{first: 100 * time.Millisecond, most: 3 * time.Second}
	for {
		err := call()
		if err == nil || !again(err) || ctx.Err() != nil {
			return err
		}
		wait := waits.wait()
		if refused, ok := errors.AsType[*Error](err); ok {
			wait = max(wait, refused.RetryAfter)
		}
		if !goOn(err, wait) || !pause(ctx, wait, nil) {
			return err
		}
	}
}

// EnqueueJSON puts one job in whose payload has a type of its own.
func EnqueueJSON[T any](ctx context.Context, c *Client, queue, kind string, payload T) (*wire.Enqueued, error) {
	return c.Enqueue(ctx, Job{Queue: queue, Type: kind, Payload: payload})
}

// Queue enqueues payloads of one Go type. Job is the pattern that each takes
// its queue, type and options from.
//
//	welcomes := client.Queue[User]{Client: c, Job: client.Job{Queue: "mail", Type: "welcome"}}
//	_, err := welcomes.Enqueue(ctx, user)
type Queue[T any] struct {
	Client *Client
	Job    Job
}

// Enqueue puts one payload in; each adjust may change its job first.
func (q Queue[T]) Enqueue(ctx context.Context, payload T, adjust ...func(*Job)) (*wire.Enqueued, error) {
	return q.Client.Enqueue(ctx, q.job(payload, adjust))
}

// EnqueueBulk puts many payloads in, all or none.
func (q Queue[T]) EnqueueBulk(ctx context.Context, payloads []T, adjust ...func(*Job)) ([]wire.Enqueued, error) {
	jobs := make([]Job, len(payloads))
	for i, payload := range payloads {
		jobs[i] = q.job(payload, adjust)
	}
	return q.Client.EnqueueBulk(ctx, jobs)
}

func (q Queue[T]) job(payload T, adjust []func(*Job)) Job {
	j := q.Job
	j.Payload = payload
	for _, change := range adjust {
		change(&j)
	}
	return j
}
