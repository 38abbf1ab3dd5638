package embedded

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// compactions holds Pebble's compactions back until the database is open.
// Opening flushes the log, which may start one in the background; should
// opening then fail, Pebble closes what that one works with, and it would take
// the process down.
type compactions struct {
	*pebble.ConcurrencyLimitScheduler
	open  atomic.Bool
	until atomic.Int64 // none begins before this time, in nanoseconds
}

// rest holds them back for a while: Pebble would begin one that met a damaged
// table again at once, and for ever.
func (c *compactions) rest() { c.until.Store(time.Now().Add(time.Minute).UnixNano()) }

// newCompactions leaves out the usual scheduler's poll for a higher limit of
// concurrent compactions: ours is 1, Pebble's default.
func newCompactions() *compactions {
	return &compactions{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// Register implements pebble.CompactionScheduler.
func (c *compactions) Register(goroutines int, db pebble.DBForCompaction) {
	c.ConcurrencyLimitScheduler.Register(goroutines, heldBack{db, c})
}

// release lets compactions begin, first of all one that waits already.
func (c *compactions) release() {
	c.open.Store(true)
	if ok, grant := c.TrySchedule(); ok {
		grant.Done()
	}
}

// heldBack is a database that may not run any compaction for now.
type heldBack struct {
	pebble.DBForCompaction
	by *compactions
}

// GetAllowedWithoutPermission implements pebble.DBForCompaction.
func (h heldBack) GetAllowedWithoutPermission() int {
	if !h.by.open.Load() || time.Now().UnixNano() < h.by.until.Load() {
		return 0
	}
	return h.DBForCompaction.GetAllowedWithoutPermission()
}
