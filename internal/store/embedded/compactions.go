package embedded

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// compactions holds Pebble's compactions back until the database is open.
// Opening flushes the log, which may start one in the background; should
// opening then fail, Pebble closes what that one works with, and it would take
// the process down.
type compactions struct {
	*pebble.ConcurrencyLimitScheduler
	open atomic.Bool
}

// newCompactions leaves out the usual scheduler's poll for a higher limit of
// concurrent compactions: ours is 1, Pebble's default.
func newCompactions() *compactions {
	return &compactions{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// Register implements pebble.CompactionScheduler.
func (c *compactions) Register(goroutines int, db pebble.DBForCompaction) {
	c.ConcurrencyLimitScheduler.Register(goroutines, heldBack{db, &c.open})
}

// release lets compactions begin, first of all one that waits already.
func (c *compactions) release() {
	c.open.Store(true)
	if ok, grant := c.TrySchedule(); ok {
		grant.Done()
	}
}

// heldBack is a database that may not run any compaction yet.
type heldBack struct {
	pebble.DBForCompaction
	open *atomic.Bool
}

// GetAllowedWithoutPermission implements pebble.DBForCompaction.
func (h heldBack) GetAllowedWithoutPermission() int {
	if !h.open.Load() {
		return 0
	}
	return h.DBForCompaction.GetAllowedWithoutPermission()
}
