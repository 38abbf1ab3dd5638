package mem

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// entry is a transaction on its way to the disk that does not exist.
type entry struct {
	redo  []func(*state)
	fate  fate
	fault error // injected: making it safe fails
}

type fate uint8

const (
	waiting fate = iota // applied; a power cut may undo it
	safe                // no power cut can undo it
	unknown             // the power went before anybody was told
)

// Why a store is down when nobody gave a reason.
var (
	errPower  = errors.New("power cut")
	errClosed = errors.New("the store is closed")
)

// commit files a transaction that was applied. One that changed nothing, and
// asks for nothing, leaves no trace: how often a loop looks around must not
// change what an injected failure keeps.
func (s *Store) commit(t *tx) (store.Commit, error) {
	if len(t.redo) == 0 && !t.durable {
		return commit{s: s}, nil
	}
	e := &entry{redo: t.redo}
	s.pending = append(s.pending, e)
	if fault := s.failing; fault != nil {
		s.failing = nil
		if s.opts.Rand.IntN(2) == 0 { // at once, or when it shall be made safe
			s.crash(s.opts.Rand, fault)
			return nil, unavailable(fault)
		}
		e.fault = fault
	}
	return commit{s, e, t.durable}, nil
}

// commit is a store.Commit.
type commit struct {
	s       *Store
	e       *entry
	durable bool
}

// Wait makes the transaction safe, and all before it.
func (c commit) Wait() error {
	if !c.durable {
		return nil
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.e.fate == waiting {
		c.s.flush(c.e)
	}
	if c.e.fate == safe {
		return nil
	}
	return &job.Error{Kind: job.Unavailable, Text: "it is unknown whether the transaction was kept", Cause: c.s.down}
}

// flush makes what is pending safe, in order, up to the entry; nil = all.
func (s *Store) flush(last *entry) {
	n := len(s.pending)
	for i, e := range s.pending {
		if e.fault != nil {
			s.crash(s.opts.Rand, e.fault)
			return
		}
		if e == last {
			n = i + 1
			break
		}
	}
	for _, e := range s.pending[:n] {
		e.apply(s.safe)
		e.fate = safe
	}
	s.pending = s.pending[n:]
}

func (e *entry) apply(s *state) {
	for _, f := range e.redo {
		f(s)
	}
	e.redo = nil
}

// crash keeps a random number of the pending transactions, the first ones,
// and tells nobody which.
func (s *Store) crash(rng *rand.Rand, why error) {
	for _, e := range s.pending[:rng.IntN(len(s.pending)+1)] {
		e.apply(s.safe)
	}
	s.drop(why)
}

func (s *Store) drop(why error) {
	for _, e := range s.pending {
		e.fate, e.redo = unknown, nil
	}
	s.pending, s.down = nil, why
}

// Sync makes everything safe that was applied, as a sync behind nobody's back does.
func (s *Store) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush(nil)
	if s.down != nil {
		return unavailable(s.down)
	}
	return nil
}

// PowerCut loses a random part of what was not yet waited for, always the
// last, and refuses everything until Reopen.
func (s *Store) PowerCut(rng *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crash(rng, errPower)
}

// FailNextCommit lets the next transaction that commits fail with the cause,
// by its Update, or by the Wait that would have made it safe. It may be kept
// or not, like everything else that was not yet safe, and the store refuses
// everything until Reopen.
func (s *Store) FailNextCommit(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = cause
}

// Reopen implements store.Store: what is not yet safe is lost.
func (s *Store) Reopen(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(nil)
	s.failing = nil
	s.state = s.safe.clone()
	return nil
}

// Close implements store.Store. It loses nothing; Reopen undoes it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush(nil)
	if s.down == nil {
		s.down = errClosed
	}
	return nil
}

// Check reports the first thing that must not be and that nobody can see
// through the contract; storetest.Check calls it after looking at the rest.
func (s *Store) Check() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.safe.check(); err != nil {
		return err
	}
	if s.down != nil {
		return nil // what was applied means nothing any more
	}
	replayed := s.safe.clone()
	for _, e := range s.pending {
		for _, f := range e.redo {
			f(replayed)
		}
	}
	if err := replayed.covers(s.state); err != nil {
		return err
	}
	return s.state.check()
}
