package measure

import (
	"context"
	"sync"
)

// credit bounds how many jobs are between enqueue and acknowledgement, which
// is what makes a run with producers and workers a closed loop.
type credit struct {
	mu   sync.Mutex
	cond sync.Cond
	left int
	over bool
}

func newCredit(jobs int) *credit {
	c := &credit{left: jobs}
	c.cond.L = &c.mu
	return c
}

// endWith makes every acquire return false when ctx ends. The returned
// function undoes it.
func (c *credit) endWith(ctx context.Context) (undo func() bool) {
	return context.AfterFunc(ctx, c.end)
}

func (c *credit) end() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.cond.Broadcast()
}

func (c *credit) acquire(n int) bool {
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

func (c *credit) release(n int) {
	c.mu.Lock()
	c.left += n
	c.mu.Unlock()
	c.cond.Broadcast()
}
