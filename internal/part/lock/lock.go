// Package lock is the part for named locks: one of several nodes does something, and
// a fencing number tells a late one from it (core.md section 4).
//
// Its state is rows, and in memory how many there are.
package lock

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Locks are the named locks of a server.
type Locks struct {
	// Max is how many there may be, the free ones that are kept included; 0 = job.LocksMax.
	Max int

	engine *engine.Engine
	count  int // of rows
	staged int // change of that by the transaction
}

// State is a lock as it is now.
type State struct {
	*job.Lock
	Asked job.Millis // when it was looked at, on the steady clock
	Ends  job.Millis // the date of Until
	Held  bool       // somebody has it
	Free  bool       // somebody may get it; neither = its least time goes on
}

// Under is a named lock, with the token that it was given with.
type Under struct {
	Lock  string
	Token job.Token
}

// Join implements engine.Part.
func (s *Locks) Join(e *engine.Engine) engine.Hooks {
	s.engine = e
	return engine.Hooks{
		Load:    s.load,
		Restart: restart,
		Begin:   func() { s.staged = 0 },
		Due:     []engine.Due{{Table: job.Locks, Steady: true, Do: s.forget}},
		Publish: func() { s.count += s.staged },
	}
}

func stateOf(tx *engine.Tx, l *job.Lock) State {
	m := tx.Moment()
	return State{Lock: l, Asked: m.Steady, Ends: m.Now.Add(l.Until - m.Steady), Held: l.Held(m.Steady), Free: l.Free(m.Steady)}
}

// answer is what who asks for a lock is told.
type answer struct {
	State
	got bool
}

// Take gives a named lock to who asks for it, on disk before it answers; got is
// false if it is not free, and the state tells who has it until when. The
// token of a grant is in its state. Who says the same request again gets what
// it has; Superseded: that is over.
func (s *Locks) Take(ctx context.Context, ask job.LockAsk) (now State, got bool, err error) {
	if err := ask.Check(); err != nil {
		return now, false, err
	}
	g, err := engine.Ask(ctx, s.engine, func(tx *engine.Tx) (answer, error) { return s.grant(tx, ask) })
	return g.State, g.got, err
}

func (s *Locks) grant(tx *engine.Tx, ask job.LockAsk) (answer, error) {
	l, err := find(tx.Store(), ask.Name)
	if err != nil {
		return answer{}, err
	}
	m := tx.Moment()
	again, err := rule.GotLock(l, ask, m)
	switch {
	case err != nil:
		return answer{}, err
	case again: // answers are in order: this one comes when the first grant is on disk
		return answer{stateOf(tx, l), true}, nil
	case !l.Free(m.Steady):
		return answer{stateOf(tx, l), false}, nil
	case l == nil:
		if err := s.admit(); err != nil {
			return answer{}, err
		}
	}
	taken := rule.TakeLock(l, ask, m, tx.NewToken(), tx.NextSeq())
	return answer{stateOf(tx, taken), true}, set(tx, taken)
}

// admit counts a lock that is new, or refuses it.
func (s *Locks) admit() error {
	most := s.Max
	if most == 0 {
		most = job.LocksMax
	}
	if s.count+s.staged >= most {
		err := job.Errorf(job.OverLimit, "there may be %d locks, those that were free for less than %s included; names made of ids do not belong here", most, job.LockKeep)
		err.Field = "name"
		return err
	}
	s.staged++
	return nil
}

// Extend lets its holder have a lock for a span from now on. Superseded: it
// is over, or somebody else's.
func (s *Locks) Extend(ctx context.Context, name string, token job.Token, most job.Millis) (State, error) {
	if err := job.CheckLockSpan(most); err != nil {
		return State{}, err
	}
	return s.change(ctx, name, func(tx *engine.Tx, l *job.Lock) (*job.Lock, error) {
		return rule.ExtendLock(l, token, most, tx.Moment())
	})
}

// Holds reports whether a lock is held with its token. Superseded: it is over,
// or somebody else's. It reads only.
func (s *Locks) Holds(ctx context.Context, u Under) error {
	return s.engine.View(ctx, func(v store.Reader) error {
		return u.held(v, rule.Moment{Now: v.Now(), Steady: s.engine.Steady()})
	})
}

// Held reports whether the lock is held in a transaction. Superseded: it is over, or
// somebody else's. The zero value is no lock, and always held.
func (u Under) Held(tx *engine.Tx) error { return u.held(tx.Store(), tx.Moment()) }

func (u Under) held(v store.Reader, m rule.Moment) error {
	if u.Lock == "" {
		return nil
	}
	l, err := find(v, u.Lock)
	if err != nil {
		return err
	}
	return rule.HoldsLock(l, u.Token, m)
}

// Release gives a lock back; doing it twice is the same. Superseded: it is
// somebody else's.
func (s *Locks) Release(ctx context.Context, name string, token job.Token) (State, error) {
	return s.change(ctx, name, func(tx *engine.Tx, l *job.Lock) (*job.Lock, error) {
		return rule.Unlock(l, token, tx.Moment())
	})
}

// Break takes a lock from whoever has it.
func (s *Locks) Break(ctx context.Context, name string, by job.Actor) (State, error) {
	return s.change(ctx, name, func(tx *engine.Tx, l *job.Lock) (*job.Lock, error) {
		if l == nil {
			return nil, noLock(name)
		}
		broken := rule.BreakLock(l, tx.Moment())
		if broken == l {
			return l, nil
		}
		return broken, tx.Audit(by, "break lock", name+" of "+l.By, 0)
	})
}

func (s *Locks) change(ctx context.Context, name string, change func(*engine.Tx, *job.Lock) (*job.Lock, error)) (State, error) {
	return engine.Ask(ctx, s.engine, func(tx *engine.Tx) (State, error) {
		l, err := find(tx.Store(), name)
		if err != nil {
			return State{}, err
		}
		changed, err := change(tx, l)
		if err != nil {
			return State{}, err
		}
		if changed != l {
			err = set(tx, changed)
		}
		return stateOf(tx, changed), err
	})
}

// Get returns one lock, or NotFound.
func (s *Locks) Get(ctx context.Context, name string) (State, error) {
	return engine.Ask(ctx, s.engine, func(tx *engine.Tx) (State, error) {
		l, err := find(tx.Store(), name)
		if err != nil {
			return State{}, err
		}
		if l == nil {
			return State{}, noLock(name)
		}
		return stateOf(tx, l), nil
	})
}

// List lists up to n locks by name, those after a name.
func (s *Locks) List(ctx context.Context, after string, n int) ([]State, error) {
	return engine.Ask(ctx, s.engine, func(tx *engine.Tx) ([]State, error) {
		rows, err := store.Rows[*job.Lock](tx.Store(), after, n)
		list := make([]State, 0, len(rows))
		for _, l := range rows {
			list = append(list, stateOf(tx, l))
		}
		return list, err
	})
}

func noLock(name string) *job.Error {
	return job.Errorf(job.NotFound, "there is no lock %q: nobody had it in the last %s", name, job.LockKeep)
}

// find returns the row of a lock, nil if there is none.
func find(v store.Reader, name string) (*job.Lock, error) {
	return store.Row[*job.Lock](v, name)
}

// set writes a lock; who has it is on disk before anybody hears of it
// (core.md section 4).
func set(tx *engine.Tx, l *job.Lock) error {
	tx.Store().Durable()
	return tx.Store().Set(l)
}

// forget drops a lock that was free for long.
func (s *Locks) forget(tx *engine.Tx, row job.Row) error {
	s.staged--
	return tx.Store().Unset(job.Locks, row.Key())
}

// restart moves the times of all locks to the steady clock of this start.
func restart(tx *engine.Tx, shift job.Millis) error {
	return store.EachRow(tx.Store(), "", func(l *job.Lock) error {
		carried := rule.CarryLock(l, shift, tx.Moment())
		if *carried == *l {
			return nil
		}
		return tx.Store().Set(carried)
	})
}

// load counts what is there.
func (s *Locks) load(v store.Reader) error {
	rows, err := v.Rows(job.Locks, "", job.LocksMax+1)
	s.count = len(rows)
	return err
}
