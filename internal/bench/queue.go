package bench

import (
	"fmt"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// queue is a queue on the server and what this run knows about it.
type queue struct {
	name     string
	issued   atomic.Int64 // numbers given to producers
	enqueued atomic.Int64 // jobs whose enqueue was answered as accepted
	done     atomic.Int64 // jobs whose completion was answered as accepted
	seen     gauge.Ledger // numbers delivered; guarded by the settler of the queue
}

// issue reserves n numbers and returns the first.
func (q *queue) issue(n int) int64 { return q.issued.Add(int64(n)) - int64(n) }

// open is how many jobs the server must have.
func (q *queue) open() int64 { return q.enqueued.Load() - q.done.Load() }

// notEqual is the error of a count that is not what it must be.
func notEqual(what string, found, expected int64) error {
	return fmt.Errorf("verification: %s is %d, expected %d (difference %+d)", what, found, expected, found-expected)
}
