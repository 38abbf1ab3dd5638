package jobs

import (
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/lock"
	"github.com/reprisehq/reprise/wire"
)

// TakeLock reads the body of POST /locks/{name}.
func (r *Reader) TakeLock(name string) (job.LockAsk, error) {
	ask := job.LockAsk{Name: name}
	r.whole(func(field []byte) {
		switch string(field) {
		case "owner":
			ask.By = r.string("owner")
		case "request":
			ask.Request = r.string("request")
		case "lock_at_most_ms":
			ask.Most = r.lockSpan("lock_at_most_ms", 1)
		case "lock_at_least_ms":
			ask.Least = r.lockSpan("lock_at_least_ms", 0)
		default:
			unknown[wire.TakeLock](r, field)
		}
	})
	if r.err == nil && ask.Most == 0 {
		r.fail("lock_at_most_ms", "is missing: how long nobody else gets the lock if its holder dies")
	}
	if err := r.end(); err != nil {
		return ask, err
	}
	return ask, ask.Check()
}

// ExtendLock reads the body of POST /locks/{name}/extend.
func (r *Reader) ExtendLock() (token job.Token, most job.Millis, err error) {
	text := ""
	r.whole(func(field []byte) {
		switch string(field) {
		case "token":
			text = r.string("token")
		case "lock_at_most_ms":
			most = r.lockSpan("lock_at_most_ms", 1)
		default:
			unknown[wire.ExtendLock](r, field)
		}
	})
	r.must("token", text != "")
	r.must("lock_at_most_ms", most != 0)
	if err = r.end(); err == nil {
		token, err = LockToken("token", text)
	}
	return token, most, err
}

func (r *Reader) lockSpan(field string, least uint64) job.Millis {
	return job.Millis(r.number(field, least, uint64(job.LockSpanMax), 0))
}

// LockToken reads the token of a lock; field is where it stands.
func LockToken(field, text string) (job.Token, error) {
	if text == "" {
		return job.Token{}, refuse(field, field+" is missing: the token that the lock was given with")
	}
	token, err := job.ParseToken(text)
	if err != nil {
		return token, refuse(field, field+" must be the token that the lock was given with, 40 hexadecimal characters")
	}
	return token, nil
}

// LockStatus is the word for how a lock is.
func LockStatus(s lock.State) string {
	switch {
	case s.Held:
		return wire.LockHeld
	case s.Free:
		return wire.LockFree
	}
	return wire.LockKept
}

// LockOf is a lock as the wire tells it, without its token.
func LockOf(s lock.State) wire.Lock {
	return wire.Lock{
		Name: s.Name, Status: LockStatus(s), LockUntil: int64(s.Ends), LockedAt: int64(s.At), LockedBy: s.By, Fencing: s.Fence,
	}
}

// LocksOf is the answer to GET /locks.
func LocksOf(list []lock.State) wire.Locks {
	out := wire.Locks{Locks: make([]wire.Lock, len(list))}
	for i, s := range list {
		out.Locks[i] = LockOf(s)
	}
	return out
}

// LockedOf is the answer to who wants a lock that somebody else has.
func LockedOf(s lock.State) wire.Locked {
	text := "is with " + strconv.Quote(s.By)
	if !s.Held {
		text = "was given back by " + strconv.Quote(s.By) + " and is kept for its lock-at-least"
	}
	return wire.Locked{
		Error: wire.Error{Error: "the lock " + strconv.Quote(s.Name) + " " + text + "; lock_until says until when", Code: wire.CodeLocked},
		Lock:  LockOf(s),
	}
}
