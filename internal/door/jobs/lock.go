package jobs

import (
	"cmp"
	"errors"
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/lock"
	"github.com/reprisehq/reprise/wire"
)

// LockAsk is the body of POST /locks/{name}.
type LockAsk struct {
	Owner         string `json:"owner"`
	Request       string `json:"request"`
	LockAtMostMS  *int64 `json:"lock_at_most_ms"`
	LockAtLeastMS int64  `json:"lock_at_least_ms"`
}

// Take is what it asks for. The error joins one for each problem.
func (a *LockAsk) Take(name string) (job.LockAsk, error) {
	ask := job.LockAsk{Name: name, By: a.Owner, Request: a.Request, Least: job.Millis(a.LockAtLeastMS)}
	var bad error
	if a.LockAtMostMS == nil {
		bad = refuse("lock_at_most_ms", "lock_at_most_ms is missing: how long nobody else gets the lock if its holder dies")
	} else {
		ask.Most = job.Millis(*a.LockAtMostMS)
		bad = Within("lock_at_most_ms", *a.LockAtMostMS, 1, int64(job.LockSpanMax))
	}
	err := errors.Join(bad, Within("lock_at_least_ms", a.LockAtLeastMS, 0, int64(job.LockSpanMax)))
	if err == nil {
		err = cmp.Or(ask.Check(), CheckName("name", name))
	}
	return ask, err
}

// ExtendLock is the body of POST /locks/{name}/extend.
type ExtendLock struct {
	Token        string `json:"token"`
	LockAtMostMS *int64 `json:"lock_at_most_ms"`
}

// LockExtension is what it asks for.
type LockExtension struct {
	Token job.Token
	Most  job.Millis
}

// Extend is what it asks for. The error joins one for each problem.
func (a *ExtendLock) Extend() (LockExtension, error) {
	ask, bad := LockExtension{}, missing("lock_at_most_ms", a.LockAtMostMS != nil)
	if bad == nil {
		ask.Most = job.Millis(*a.LockAtMostMS)
		bad = Within("lock_at_most_ms", *a.LockAtMostMS, 1, int64(job.LockSpanMax))
	}
	err := missing("token", a.Token != "")
	if err == nil {
		ask.Token, err = LockToken("token", a.Token)
	}
	return ask, errors.Join(err, bad)
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
