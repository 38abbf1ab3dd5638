package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// LockState is a lock as it is now.
type LockState struct {
	*job.Lock
	Asked job.Millis // when it was looked at, on the steady clock
	Ends  job.Millis // the date of Until
	Held  bool       // somebody has it
	Free  bool       // somebody may get it; neither = its least time goes on
}

func (r *run) lockState(l *job.Lock) LockState {
	return LockState{Lock: l, Asked: r.steady, Ends: r.now.Add(l.Until - r.steady), Held: l.Held(r.steady), Free: l.Free(r.steady)}
}

// Lock gives a named lock to who asks for it, on disk before it answers; got is
// false if it is not free, and the state tells who has it until when. The
// token of a grant is in its state. Who says the same request again gets what
// it has; Superseded: that is over.
func (e *Engine) Lock(ctx context.Context, ask job.LockAsk) (s LockState, got bool, err error) {
	if err := ask.Check(); err != nil {
		return s, false, err
	}
	err = e.do(ctx, 0, func(r *run) error {
		l, err := r.lock(ask.Name)
		if err != nil {
			return err
		}
		again, err := rule.GotLock(l, ask, r.moment())
		if err != nil {
			return err
		}
		if again {
			s, got = r.lockState(l), true
			r.tx.Durable() // the first answer may have been lost with its commit
			return nil
		}
		if !l.Free(r.steady) {
			s, got = r.lockState(l), false
			return nil
		}
		if l == nil {
			if r.c.locks+r.locks >= r.e.opts.LocksMax {
				return &job.Error{
					Kind: job.OverLimit, Field: "name",
					Text: job.Errorf(job.OverLimit, "there may be %d locks, those that were free for less than %s included; names made of ids do not belong here", r.e.opts.LocksMax, job.LockKeep).Text,
				}
			}
			r.locks++
		}
		taken := rule.TakeLock(l, ask, r.moment(), job.NewToken(r.c.start, r.e.rnd), r.nextSeq())
		s, got = r.lockState(taken), true
		return r.setLock(taken)
	})
	if err != nil { // s may still be written to
		return LockState{}, false, err
	}
	return s, got, nil
}

// ExtendLock lets its holder have a lock for a span from now on. Superseded: it
// is over, or somebody else's.
func (e *Engine) ExtendLock(ctx context.Context, name string, token job.Token, most job.Millis) (LockState, error) {
	if err := job.CheckLockSpan(most); err != nil {
		return LockState{}, err
	}
	return e.changeLock(ctx, name, func(r *run, l *job.Lock) (*job.Lock, error) {
		return rule.ExtendLock(l, token, most, r.moment())
	})
}

// HoldsLock reports whether a lock is held with its token. Superseded: it is over,
// or somebody else's. It reads only.
func (e *Engine) HoldsLock(ctx context.Context, u Under) error {
	return e.view(ctx, func(v store.Reader) error {
		return holdsLock(v, u, rule.Moment{Now: v.Now(), Steady: e.clock.Steady()})
	})
}

func holdsLock(v store.Reader, u Under, m rule.Moment) error {
	if u.Lock == "" {
		return nil
	}
	row, err := v.Row(job.Locks, u.Lock)
	if err != nil {
		return err
	}
	l, _ := row.(*job.Lock)
	return rule.HoldsLock(l, u.Token, m)
}

// Unlock gives a lock back; doing it twice is the same. Superseded: it is
// somebody else's.
func (e *Engine) Unlock(ctx context.Context, name string, token job.Token) (LockState, error) {
	return e.changeLock(ctx, name, func(r *run, l *job.Lock) (*job.Lock, error) {
		return rule.Unlock(l, token, r.moment())
	})
}

// BreakLock takes a lock from whoever has it.
func (e *Engine) BreakLock(ctx context.Context, name string, by job.Actor) (LockState, error) {
	return e.changeLock(ctx, name, func(r *run, l *job.Lock) (*job.Lock, error) {
		if l == nil {
			return nil, noLock(name)
		}
		broken := rule.BreakLock(l, r.moment())
		if broken == l {
			return l, nil
		}
		return broken, r.audit(by, "break lock", name+" of "+l.By, 0)
	})
}

func (e *Engine) changeLock(ctx context.Context, name string, change func(*run, *job.Lock) (*job.Lock, error)) (s LockState, err error) {
	err = e.do(ctx, 0, func(r *run) error {
		l, err := r.lock(name)
		if err != nil {
			return err
		}
		changed, err := change(r, l)
		if err != nil {
			return err
		}
		s = r.lockState(changed)
		if changed == l {
			return nil
		}
		return r.setLock(changed)
	})
	if err != nil { // s may still be written to
		return LockState{}, err
	}
	return s, nil
}

// LockNamed returns one lock, or NotFound. Locks lists them by name, at most n
// after a name.
func (e *Engine) LockNamed(ctx context.Context, name string) (s LockState, err error) {
	err = e.do(ctx, 0, func(r *run) error {
		l, err := r.lock(name)
		if err == nil && l == nil {
			err = noLock(name)
		}
		if err == nil {
			s = r.lockState(l)
		}
		return err
	})
	if err != nil {
		return LockState{}, err
	}
	return s, nil
}

// Locks lists up to n locks by name, those after a name.
func (e *Engine) Locks(ctx context.Context, after string, n int) (list []LockState, err error) {
	err = e.do(ctx, 0, func(r *run) error {
		rows, err := r.tx.Rows(job.Locks, after, n)
		list = make([]LockState, 0, len(rows))
		for _, row := range rows {
			list = append(list, r.lockState(row.(*job.Lock)))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func noLock(name string) *job.Error {
	return job.Errorf(job.NotFound, "there is no lock %q: nobody had it in the last %s", name, job.LockKeep)
}

// lock returns the row of a lock, nil if there is none.
func (r *run) lock(name string) (*job.Lock, error) {
	row, err := r.tx.Row(job.Locks, name)
	l, _ := row.(*job.Lock)
	return l, err
}

// setLock writes a lock; who has it is on disk before anybody hears of it
// (core.md section 4).
func (r *run) setLock(l *job.Lock) error {
	r.tx.Durable()
	return r.tx.Set(l)
}

// forgetLock drops a lock that was free for long.
func (r *run) forgetLock(l *job.Lock) error {
	r.locks--
	return r.tx.Unset(job.Locks, l.Name)
}

// carryLocks moves the times of all locks to the steady clock of this start.
func (r *run) carryLocks(shift job.Millis) error {
	rows, err := r.tx.Rows(job.Locks, "", job.LocksMax)
	for _, row := range rows {
		l := row.(*job.Lock)
		if carried := rule.CarryLock(l, shift, r.moment()); err == nil && *carried != *l {
			err = r.tx.Set(carried)
		}
	}
	return err
}

// loadLocks counts what is there.
func (c *committer) loadLocks(v store.Reader) error {
	rows, err := v.Rows(job.Locks, "", job.LocksMax+1)
	c.locks = len(rows)
	return err
}
