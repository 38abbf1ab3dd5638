// Package mem is a store in memory, for tests and the simulator. It is dumb on
// purpose: plain maps, and every question is answered by looking at everything
// with the functions of package rule, so that it can be the yardstick of the
// stores that are fast. It keeps what is durable apart from what is applied,
// and so can lose power (fault.go).
//
// What goes in and what comes out are copies: nobody can change a job behind
// its back.
package mem

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Options say what a store takes from its surroundings. The zero value works.
type Options struct {
	// Now is the time; nil = it stands still. A step back only stops the
	// store's time.
	Now func() job.Millis
	// Rand decides what an injected failure keeps; nil = always the same dice.
	Rand *rand.Rand
	// Free is the space left and the whole; nil = plenty.
	Free func() (free, total int64)
	// Twice runs the function of every Update twice, the first time in vain,
	// as the contract allows: a function with effects shows.
	Twice bool
}

// Store is a store.Store. It is safe for concurrent use.
type Store struct {
	opts  Options
	clock clock

	// mu guards all below. It is held while a transaction runs, because
	// changes are made in place: a transaction must not call its own store.
	mu      sync.RWMutex
	state   *state   // as applied
	safe    *state   // as a power cut leaves it
	pending []*entry // applied and not yet safe, in order
	failing error    // of the next commit
	down    error    // why everything is refused; nil = all is well
}

var _ store.Store = (*Store)(nil)

// Open returns an empty store.
func Open(o Options) *Store {
	if o.Now == nil {
		o.Now = func() job.Millis { return 1 }
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(1, 1))
	}
	if o.Free == nil {
		o.Free = func() (int64, int64) { return 1 << 40, 1 << 40 }
	}
	return &Store{opts: o, clock: clock{read: o.Now}, state: newState(), safe: newState()}
}

// Update implements store.Store.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse(ctx); err != nil {
		return nil, err
	}
	if s.opts.Twice {
		t := s.begin()
		err := t.run(fn)
		t.rollBack()
		if err != nil {
			return nil, err
		}
	}
	t := s.begin()
	if err := t.run(fn); err != nil {
		return nil, err
	}
	return s.commit(t)
}

// View implements store.Store.
func (s *Store) View(ctx context.Context, fn func(store.Reader) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.refuse(ctx); err != nil {
		return err
	}
	return fn(reader{state: s.state, now: s.clock.now()})
}

// Payloads implements store.Store.
func (s *Store) Payloads(refs ...job.ID) ([][]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.down != nil {
		return nil, unavailable(s.down)
	}
	out := make([][]byte, len(refs))
	for i, ref := range refs {
		out[i] = reader{state: s.state}.Peek(ref)
	}
	return out, nil
}

// Free implements store.Store.
func (s *Store) Free() (free, total int64, err error) {
	free, total = s.opts.Free()
	return free, total, nil
}

// refuse says why no transaction can begin, nil if one can.
func (s *Store) refuse(ctx context.Context) error {
	if s.down != nil {
		return unavailable(s.down)
	}
	return ctx.Err()
}

func unavailable(cause error) error {
	return &job.Error{Kind: job.Unavailable, Text: "the store cannot be used before it is opened again", Cause: cause}
}

// clock is a time that never goes back.
type clock struct {
	read func() job.Millis
	mu   sync.Mutex // guards last; taken while Store.mu is held, and nothing is taken under it
	last job.Millis
}

func (c *clock) now() job.Millis {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, c.read())
	return c.last
}
