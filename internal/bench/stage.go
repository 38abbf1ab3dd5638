package bench

import "sync/atomic"

// stage tells producers where a timed phase stands. It is one atomic load per
// request, for the end of the phase and the start of its measurement both.
type stage struct{ at atomic.Int32 }

const (
	warming int32 = iota
	measuring
	stopped
)
