package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// settler reports outcomes: one call at a time, and what gathers meanwhile
// goes with the next. It repeats until each outcome is accepted or refused by
// name. What it holds is bounded by what the worker may hold.
type settler struct {
	send   func(context.Context, []wire.Settle) ([]wire.Verdict, error)
	answer func(wire.Settle, wire.Verdict) // accepted, or refused for good
	events *Events
	times  times
	now    chan struct{} // the server is back: do not wait any longer
	wake   chan struct{}

	mu      sync.Mutex // guards what follows
	waiting []report
	closed  bool
	atOnce  int // entries of the next call; fewer after a call was refused whole
}

// report is an outcome on its way. In doubt it was sent before and not
// answered, so the server may have taken it.
type report struct {
	wire.Settle
	doubt bool
}

// settlesMax is how many outcomes one call reports.
const settlesMax = 1000

func newSettler(send func(context.Context, []wire.Settle) ([]wire.Verdict, error), events *Events, times times) *settler {
	return &settler{
		send: send, events: events, times: times, atOnce: settlesMax,
		now: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
}

func (s *settler) add(outcome wire.Settle) {
	s.mu.Lock()
	s.waiting = append(s.waiting, report{Settle: outcome})
	s.mu.Unlock()
	signal(s.wake)
}

// close lets run return once nothing waits.
func (s *settler) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	signal(s.wake)
}

// hurry ends a wait for the next try.
func (s *settler) hurry() { signal(s.now) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// left is how many outcomes the server has not answered.
func (s *settler) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// run reports until it is closed and empty, or ctx ends.
func (s *settler) run(ctx context.Context) {
	waits := backoff{first: s.times.settleFirst, most: s.times.settleMost}
	for {
		s.mu.Lock()
		batch := s.waiting[:min(len(s.waiting), s.atOnce)]
		batch = batch[:fitting(batch)]
		closed := s.closed
		s.mu.Unlock()
		if len(batch) == 0 {
			if closed {
				return
			}
			select {
			case <-s.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		wait, err := s.runOnce(ctx, batch)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			waits.reset()
			continue
		}
		wait = max(wait, waits.wait())
		s.events.Delayed(s.left(), err, wait)
		pause(ctx, wait, s.now)
	}
}

// runOnce makes one call. An error means that something of it is to be sent
// again; wait is what the server asked for.
func (s *settler) runOnce(ctx context.Context, batch []report) (wait time.Duration, err error) {
	select {
	case <-s.now: // it came before this call
	default:
	}
	list := make([]wire.Settle, len(batch))
	for i := range batch {
		list[i] = batch[i].Settle
	}
	verdicts, err := s.send(ctx, list)
	if err == nil {
		return 0, s.done(batch, verdicts)
	}
	refused, ok := errors.AsType[*Error](err)
	if !ok || refused.Temporary() {
		if ok {
			wait = refused.RetryAfter
		}
		s.mu.Lock()
		for i := range batch {
			s.waiting[i].doubt = true
		}
		s.mu.Unlock()
		return wait, err
	}
	// The call was refused whole: one entry spoils it, or it is too large.
	if len(batch) > 1 {
		s.mu.Lock()
		s.atOnce = len(batch) / 2
		s.mu.Unlock()
		return 0, nil
	}
	if refused.Code == wire.CodeTooLarge && batch[0].Result != nil {
		s.mu.Lock()
		s.waiting[0] = report{Settle: tooLarge(batch[0].Settle)}
		s.mu.Unlock()
		return 0, nil
	}
	return 0, s.done(batch, []wire.Verdict{{ID: batch[0].ID, Code: refused.Code, Error: refused.Message}})
}

// done takes what was answered for good off the line.
func (s *settler) done(batch []report, verdicts []wire.Verdict) error {
	var later []report
	var why error
	for i, v := range verdicts {
		if v.Code != "" && temporary(v.Code) {
			later = append(later, batch[i])
			why = &Error{Status: 503, Code: v.Code, Message: v.Error}
			continue
		}
		if batch[i].doubt && v.Code == wire.CodeNotFound {
			// It was taken when it was sent first, and the job left at once.
			v = wire.Verdict{ID: v.ID, Status: finished[batch[i].Outcome]}
		}
		s.answer(batch[i].Settle, v)
	}
	s.mu.Lock()
	s.waiting = append(later, s.waiting[len(batch):]...)
	s.atOnce = min(2*s.atOnce, settlesMax)
	s.mu.Unlock()
	return why
}

// finished is the state in which a job leaves after an outcome.
var finished = map[string]string{wire.OutcomeOK: wire.Completed, wire.OutcomeDead: wire.Dead, wire.OutcomeRetry: wire.Dead}

// temporary reports whether the table says that a code passes.
func temporary(code string) bool {
	for _, c := range wire.Codes {
		if c.Code == code {
			return c.Again
		}
	}
	return false
}
