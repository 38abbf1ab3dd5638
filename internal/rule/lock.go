package rule

import "github.com/reprisehq/reprise/internal/job"

// Named locks (spec/inbox.md section 11, core.md section 4). A lock is a gate
// without members: who takes it has it until a time on the steady clock, under a
// number that only rises (its fencing token). A run that outlives its lock has a
// lower number than whoever took it next.

// GotLock reports whether a lock was given to the very ask, whose answer was lost:
// the same is answered again. Superseded: it was, and that is over. An ask is
// known until somebody else gets the lock; then it is one like any other.
func GotLock(l *job.Lock, ask job.LockAsk, m Moment) (bool, error) {
	asked := ask.Asked()
	switch {
	case l == nil || asked == job.LockRequest{} || l.Request != asked:
		return false, nil
	case !l.Held(m.Steady):
		return false, job.Errorf(job.Superseded,
			"the lock %q that this request was given, with the fencing number %d, is over: it was given back, broken, or its time ran out; ask with another request", l.Name, l.Fence)
	}
	return true, nil
}

// HoldsLock reports whether a lock is with who has the token: what a run does
// under a lock it does only while it is.
func HoldsLock(l *job.Lock, token job.Token, m Moment) error {
	err := ownLock(l, token)
	if err == nil && !l.Held(m.Steady) {
		err = job.Errorf(job.Superseded, "the lock %q is over: it was given back, broken, or its time ran out; ask for it anew", l.Name)
	}
	return err
}

// TakeLock gives a lock to who asks, nil = somebody else has it, or had it so
// shortly that lock-at-least keeps it. l nil = there is none yet.
func TakeLock(l *job.Lock, ask job.LockAsk, m Moment, token job.Token, fence int64) *job.Lock {
	if !l.Free(m.Steady) {
		return nil
	}
	if l != nil && fence <= l.Fence {
		panic("rule: a fencing number that does not rise")
	}
	taken := &job.Lock{
		Name: ask.Name, Fence: fence, Token: token, By: ask.By, At: m.Now,
		Span: ask.Most, Until: m.Steady.Add(ask.Most), Least: m.Steady.Add(ask.Least), Request: ask.Asked(),
	}
	taken.Forget = taken.Until.Add(job.LockKeep)
	return taken
}

// ExtendLock lets its holder have a lock for a span from now. One that ran out
// is not extended, even if nobody took it: its holder had to stop by then.
func ExtendLock(l *job.Lock, token job.Token, most job.Millis, m Moment) (*job.Lock, error) {
	if err := HoldsLock(l, token, m); err != nil {
		return nil, err
	}
	longer := *l
	longer.Span = max(most, l.Least-m.Steady)
	longer.Until = m.Steady.Add(longer.Span)
	longer.Forget = longer.Until.Add(job.LockKeep)
	return &longer, nil
}

// Unlock takes a lock back from its holder; saying it again changes nothing.
// Others get it at once, but not before its least time is over.
func Unlock(l *job.Lock, token job.Token, m Moment) (*job.Lock, error) {
	if err := ownLock(l, token); err != nil {
		return nil, err
	}
	if l.Given || !l.Held(m.Steady) {
		return l, nil
	}
	return freed(l, max(m.Steady, l.Least)), nil
}

// BreakLock takes a lock from whoever has it, least time or not: an operator
// knows that its holder is gone.
func BreakLock(l *job.Lock, m Moment) *job.Lock {
	if l.Free(m.Steady) {
		return l
	}
	return freed(l, m.Steady)
}

func freed(l *job.Lock, until job.Millis) *job.Lock {
	given := *l
	given.Given, given.Until = true, until
	given.Forget = until.Add(job.LockKeep)
	return &given
}

// ownLock refuses a token that is not that of the latest grant.
func ownLock(l *job.Lock, token job.Token) error {
	if l == nil {
		return job.Errorf(job.NotFound, "there is no such lock: nobody had it in the last %s", job.LockKeep)
	}
	if token.IsZero() || token != l.Token {
		return job.Errorf(job.Superseded, "the token is not that of the latest holder of the lock %q, who is %q with the fencing number %d", l.Name, l.By, l.Fence)
	}
	return nil
}

// CarryLock takes a lock over a start of the server: shift is how far the new
// steady clock is ahead of the one that its times were measured on. Whatever
// the clocks say, it lasts no longer than it was given for.
func CarryLock(l *job.Lock, shift job.Millis, m Moment) *job.Lock {
	carried := *l
	carried.Until = min(l.Until.Add(shift), m.Steady.Add(l.Span))
	carried.Least = min(l.Least.Add(shift), carried.Until)
	carried.Forget = min(l.Forget.Add(shift), carried.Until.Add(job.LockKeep))
	return &carried
}
