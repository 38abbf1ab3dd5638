package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/job"
)

// health is whether the engine works, and why not. Any goroutine asks.
type health struct {
	log    *slog.Logger
	poke   func()                    // wakes the committer, which heals
	state  atomic.Pointer[job.Error] // why the engine cannot work now; nil = it can
	failed atomic.Bool               // a commit failed; the committer must heal
	faulty atomic.Uint64             // faults behind commits, not counted yet
}

// fail notes that a commit failed. Streams end, so that clients connect again
// once the engine has recovered.
func (h *health) fail(err error) {
	why, ok := errors.AsType[*job.Error](err)
	if !ok {
		why = &job.Error{Kind: job.Unavailable, Text: "the store cannot commit", Cause: err}
	}
	if h.failed.CompareAndSwap(false, true) {
		h.state.Store(why)
		h.log.Error("a commit failed; opening the store again", "error", err)
		h.poke()
	}
}

// behind does what follows from a commit. A panic in it is no reason to end the
// process, but what is in memory may be half done: it is as if the commit had
// failed, so all of it is made anew from what is stored.
func (h *health) behind(what string, f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &job.Error{Kind: job.Unavailable, Text: "a fault of the server behind a commit; whether it took effect is not known", Cause: fmt.Errorf("panic: %v", p)}
			h.log.Error("a fault of the server behind a commit; please report it with these lines", "fault", p, "at", what, "stack", string(debug.Stack()))
			h.faulty.Add(1)
			h.fail(err)
		}
	}()
	f()
	return nil
}

// mended notes that the engine works again, and returns how many faults are not counted yet.
func (h *health) mended() (faults uint64) {
	h.failed.Store(false)
	h.state.Store(nil)
	return h.faulty.Swap(0)
}

// noted logs that the store cannot be read, because the wire does not say why.
func (h *health) noted(err error) error {
	if err != nil && job.KindOf(err) == job.Unavailable {
		h.log.Error("the store cannot be read", "error", err)
	}
	return err
}
