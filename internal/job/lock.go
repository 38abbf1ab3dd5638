package job

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"unicode"
)

// Lock is a named lock: at most one holder has it, for a time that ends by
// itself. It is the gate without members of DESIGN section 1. A free one is
// kept for a while, so that people see who had it last.
type Lock struct {
	Name   string
	Fence  int64  // of the latest grant: higher than all before, of every lock
	Token  Token  // of the latest grant; only its holder knows it
	By     string // who asked for it
	At     Millis // date of the grant
	Span   Millis // of the latest grant or extension
	Until  Millis // nobody else gets it before then, on the steady clock
	Least  Millis // nor before then, even if its holder gives it back
	Given  bool   // its holder gave it back, or an operator took it away
	Forget Millis // the row goes then, on the steady clock

	Request LockRequest // which the latest grant answered; zero = it said none
}

// LockRequest is a hash of who asked and of what tells their requests apart.
type LockRequest [16]byte

// Bounds of locks.
const (
	LocksMax      = 10_000   // in a server, the free ones that are kept included
	LockSpanMax   = 30 * Day // of one grant or extension
	LockKeep      = Day      // a free one is kept so long
	LockOwnerMax  = 255      // bytes
	lockNameBytes = 255
	requestLeast  = 16 // bytes
	requestMost   = 255
)

// Table implements Row.
func (l *Lock) Table() Table { return Locks }

// Key implements Row.
func (l *Lock) Key() string { return l.Name }

// Due implements Row.
func (l *Lock) Due() Millis { return l.Forget }

// Held reports whether somebody has the lock at a time of the steady clock.
func (l *Lock) Held(steady Millis) bool { return l != nil && !l.Given && steady < l.Until }

// Free reports whether somebody may get it then.
func (l *Lock) Free(steady Millis) bool { return l == nil || steady >= l.Until }

// LockAsk is what somebody asks for who wants a lock.
type LockAsk struct {
	Name  string
	By    string // who asks, for people
	Most  Millis // it ends by itself after that
	Least Millis // it stays taken so long, even if it is given back sooner

	// Request tells one ask of By from all others: who says it again, because the
	// answer was lost, gets the same lock again. "" = each ask is one of its own.
	// Who knows it gets the token.
	Request string
}

// Asked is what a grant remembers of who asked.
func (a *LockAsk) Asked() (r LockRequest) {
	if a.Request != "" {
		sum := sha256.Sum256([]byte(strconv.Quote(a.By) + a.Request))
		copy(r[:], sum[:])
	}
	return r
}

// Check refuses what cannot be asked for; its errors name the field.
func (a *LockAsk) Check() error {
	switch {
	case a.Name == "":
		return badLock("name", "must not be empty")
	case len(a.Name) > lockNameBytes:
		return badLock("name", "must not be longer than %d bytes", lockNameBytes)
	case strings.ContainsFunc(a.Name, unicode.IsControl):
		return badLock("name", "must not contain control characters")
	case a.By == "":
		return badLock("owner", "is missing: say who asks, for people who look at the lock")
	case len(a.By) > LockOwnerMax:
		return badLock("owner", "must not be longer than %d bytes", LockOwnerMax)
	case strings.ContainsFunc(a.By, unicode.IsControl):
		return badLock("owner", "must not contain control characters")
	case a.Least < 0 || a.Least > a.Most:
		return badLock("lock_at_least_ms", "must be between 0 and lock_at_most_ms")
	case a.Request != "" && (len(a.Request) < requestLeast || len(a.Request) > requestMost || strings.ContainsFunc(a.Request, unicode.IsControl)):
		return badLock("request", "must have %d to %d bytes without control characters, such as a UUID: nobody else may guess it", requestLeast, requestMost)
	}
	return CheckLockSpan(a.Most)
}

// CheckLockSpan refuses a span for which no lock is given.
func CheckLockSpan(most Millis) error {
	if most < 1 || most > LockSpanMax {
		return badLock("lock_at_most_ms", "must be between 1 and %d (%s): how long nobody else gets the lock if its holder dies", LockSpanMax, LockSpanMax)
	}
	return nil
}

func badLock(field, format string, args ...any) *Error {
	e := Errorf(Invalid, field+" "+format, args...)
	e.Field = field
	return e
}
