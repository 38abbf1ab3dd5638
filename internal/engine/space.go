package engine

import (
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/store"
)

// space is the free space where the work is kept.
type space struct {
	store store.Store
	keep  atomic.Pointer[Reserve]
}

// low reports whether free space is below the reserve.
func (s *space) low() bool {
	free, total, reserve := s.look()
	return total > 0 && free < reserve
}

// look returns what Disk does.
func (s *space) look() (free, total, reserve int64) {
	free, total, err := s.store.Free()
	if err != nil {
		free, total = 0, 0
	}
	keep := s.keep.Load()
	return free, total, max(keep.Bytes, int64(keep.Share*float64(total)))
}

// Disk is the free space where the work is kept, and the whole, in bytes; 0 = that is not
// known. With less free than the reserve enqueues are refused.
func (e *Engine) Disk() (free, total, reserve int64) { return e.space.look() }
