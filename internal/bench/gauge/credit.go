package gauge

import (
	"context"
	"sync"
)

// Credit bounds how many jobs are under way at once, which is what makes a run
// with producers and workers a closed loop.
type Credit struct {
	mu   sync.Mutex
	cond sync.Cond
	left int64
	over bool
}

// NewCredit lets so many be under way.
func NewCredit(jobs int64) *Credit {
	c := &Credit{left: jobs}
	c.cond.L = &c.mu
	return c
}

// EndWith wakes all who wait when ctx ends. The returned function undoes it.
func (c *Credit) EndWith(ctx context.Context) (undo func() bool) {
	return context.AfterFunc(ctx, c.end)
}

// end makes every Acquire, present and future, return false.
func (c *Credit) end() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.cond.Broadcast()
}

// Acquire waits until n more may be under way; false = it is over.
func (c *Credit) Acquire(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.left < n && !c.over {
		c.cond.Wait()
	}
	if c.over {
		return false
	}
	c.left -= n
	return true
}

// Release says that n are done.
func (c *Credit) Release(n int64) {
	c.mu.Lock()
	c.left += n
	c.mu.Unlock()
	c.cond.Broadcast()
}
