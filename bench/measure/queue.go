package measure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/bench/system"
	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// queue is a queue of a server and what this run knows about it. It is the
// system.Handler of its workers.
type queue struct {
	name         string
	issued       atomic.Int64 // numbers given to producers
	enqueued     atomic.Int64 // jobs whose enqueue was answered
	acknowledged atomic.Int64

	credit    *gauge.Credit                        // gets back what was acknowledged; nil: no one waits for it
	failFirst bool                                 // the first delivery of each job fails
	received  func(number int64, at time.Duration) // of each job once, under mu; nil: no one asks

	hold chan struct{} // all but the first delivery wait until it closes; set while no worker runs

	mu         sync.Mutex              // guards what follows
	seen       gauge.Ledger            // jobs handled with success
	failedAt   map[int64]time.Duration // jobs that failed once; with failFirst
	waited     time.Duration           // the least between a failure and the next delivery
	duplicates int64                   // deliveries of jobs in seen
	first      time.Duration
	arrived    chan struct{} // closes with the first delivery; nil: no one waits
	wrong      error
	goal       int64 // reached closes when so many jobs are seen and acknowledged
	reached    chan struct{}
}

var errFirstAttempt = errors.New("bench: the first attempt fails")

// Handle checks one delivery.
func (q *queue) Handle(payload []byte) error {
	at := gauge.Now()
	if !q.arrive(at) && q.hold != nil {
		<-q.hold
	}
	number, err := numberOf(payload)
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil && number >= q.issued.Load() {
		err = fmt.Errorf("job %d of queue %s was delivered and never enqueued", number, q.name)
	}
	if err != nil {
		q.wrong = errors.Join(q.wrong, err)
		return nil
	}
	if q.failFirst {
		failed, again := q.failedAt[number]
		if !again {
			q.failedAt[number] = at
			return errFirstAttempt
		}
		q.waited = min(q.waited, at-failed)
	}
	if !q.seen.Mark(number) {
		q.duplicates++
		return nil
	}
	if q.received != nil {
		q.received(number, at)
	}
	q.compare()
	return nil
}

// arrive reports whether this is the first delivery.
func (q *queue) arrive(at time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first != 0 {
		return false
	}
	q.first = at
	if q.arrived != nil {
		close(q.arrived)
		q.arrived = nil
	}
	return true
}

// Acknowledged takes note of acknowledgements that were answered.
func (q *queue) Acknowledged(n int) {
	q.acknowledged.Add(int64(n))
	if q.credit != nil {
		q.credit.Release(int64(n))
	}
	if q.acknowledged.Load() >= q.enqueued.Load() { // spares the mutex nearly always
		q.mu.Lock()
		q.compare()
		q.mu.Unlock()
	}
}

// compare closes reached at the goal. The mutex is held.
func (q *queue) compare() {
	if q.reached != nil && q.seen.Count() >= q.goal && q.acknowledged.Load() >= q.goal {
		close(q.reached)
		q.reached = nil
	}
}

// reach returns a channel that closes when all that was enqueued is handled
// and acknowledged. Nothing more may be enqueued.
func (q *queue) reach() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	reached := make(chan struct{})
	q.goal, q.reached = q.enqueued.Load(), reached
	q.compare()
	return reached
}

// firstAt is when the first delivery came, 0 before.
func (q *queue) firstAt() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first
}

// expectFirst makes the next delivery the first, and returns a channel that
// closes with it.
func (q *queue) expectFirst() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	arrived := make(chan struct{})
	q.first, q.arrived = 0, arrived
	return arrived
}

// counts are what was handled once and more than once, and anything that
// should not have come at all.
func (q *queue) counts() (seen, duplicates int64, wrong error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.seen.Count(), q.duplicates, q.wrong
}

// load is what one producer does in a closed loop: the next request leaves
// when the last one was answered.
type load struct {
	batch  int
	limit  int64         // numbers to use up over the whole queue; 0: until stage says so
	stage  *stage        // nil: until the limit
	credit *gauge.Credit // jobs that may be under way; nil: any number
}

// stage tells producers where a timed phase stands.
type stage struct{ at atomic.Int32 }

const (
	warming int32 = iota
	measuring
	stopped
)

// produce returns the time of each answer while measuring.
func (q *queue) produce(ctx context.Context, p system.Producer, l load) (took []time.Duration, err error) {
	payloads := make([][]byte, l.batch)
	for i := range payloads {
		payloads[i] = newPayload()
	}
	for {
		at := warming
		if l.stage != nil {
			if at = l.stage.at.Load(); at == stopped {
				return took, nil
			}
		}
		if l.credit != nil && !l.credit.Acquire(int64(l.batch)) {
			return took, nil
		}
		first := q.issued.Add(int64(l.batch)) - int64(l.batch)
		batch := payloads
		if l.limit > 0 {
			batch = payloads[:min(max(l.limit-first, 0), int64(l.batch))]
		}
		if len(batch) == 0 {
			return took, nil
		}
		for i, payload := range batch {
			putNumber(payload, first+int64(i))
		}
		sent := gauge.Now()
		if l.batch == 1 {
			err = p.Enqueue(ctx, batch[0])
		} else {
			err = p.EnqueueBulk(ctx, batch)
		}
		if err != nil {
			return took, fmt.Errorf("enqueueing: %w", err)
		}
		if at == measuring {
			took = append(took, gauge.Now()-sent)
		}
		q.enqueued.Add(int64(len(batch)))
	}
}
