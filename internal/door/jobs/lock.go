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

// AppendLock appends a lock, with its token only for its holder.
func AppendLock(b []byte, s lock.State, holder bool) []byte {
	b = quote(b, `{"name":`, s.Name)
	b = word(b, `,"status":"`, LockStatus(s))
	b = number(b, `,"lock_until":`, int64(s.Ends))
	b = number(b, `,"locked_at":`, int64(s.At))
	b = quote(b, `,"locked_by":`, s.By)
	b = number(b, `,"fencing":`, s.Fence)
	if holder {
		b = append(s.Token.AppendTo(append(b, `,"token":"`...)), '"')
	}
	return append(b, '}')
}

// AppendLocks appends the answer to GET /locks.
func AppendLocks(b []byte, list []lock.State) []byte {
	b = append(b, `{"locks":[`...)
	for _, s := range list {
		b = AppendLock(comma(b), s, false)
	}
	return append(b, `]}`...)
}

// AppendLocked appends the answer to who wants a lock that somebody else has.
func AppendLocked(b []byte, s lock.State) []byte {
	text := "the lock " + strconv.Quote(s.Name) + " is with " + strconv.Quote(s.By)
	if !s.Held {
		text = "the lock " + strconv.Quote(s.Name) + " was given back by " + strconv.Quote(s.By) + " and is kept for its lock-at-least"
	}
	b = word(quote(b, `{"error":`, text+"; lock_until says until when"), `,"code":"`, wire.CodeLocked)
	return append(AppendLock(append(b, `,"lock":`...), s, false), '}')
}
