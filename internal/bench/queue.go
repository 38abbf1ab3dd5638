package bench

import (
	"fmt"
	"sync/atomic"
)

// queue is a queue on the server and what this run knows about it.
type queue struct {
	name     string
	issued   atomic.Int64 // numbers given to producers
	enqueued atomic.Int64 // jobs whose enqueue was answered as accepted
	done     atomic.Int64 // jobs whose completion was answered as accepted
	seen     ledger       // numbers delivered; guarded by the settler of the queue
}

// issue reserves n numbers and returns the first.
func (q *queue) issue(n int) int64 { return q.issued.Add(int64(n)) - int64(n) }

// open is how many jobs the server must have.
func (q *queue) open() int64 { return q.enqueued.Load() - q.done.Load() }

// ledger is a growing set of numbers: one bit per job, to notice a delivery
// that should not have been.
type ledger struct {
	words []uint64
	count int64
}

// mark adds n and reports whether it was new.
func (l *ledger) mark(n int64) bool {
	word, bit := int(n/64), uint64(1)<<(n%64)
	if word >= len(l.words) {
		l.words = append(l.words, make([]uint64, max(word+1-len(l.words), len(l.words), 1<<10))...)
	}
	if l.words[word]&bit != 0 {
		return false
	}
	l.words[word] |= bit
	l.count++
	return true
}

// notEqual is the error of a count that is not what it must be.
func notEqual(what string, found, expected int64) error {
	return fmt.Errorf("verification: %s is %d, expected %d (difference %+d)", what, found, expected, found-expected)
}
