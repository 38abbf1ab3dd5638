package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// ErrLockLost is the cause with which the context of a run under a lock ends
// when the lock was not kept: the server could not be told in time, or an
// operator broke it. Somebody else may have it.
var ErrLockLost = errors.New("the lock is lost")

// LockOptions say how a lock is held. The zero value is ready to use.
type LockOptions struct {
	// Owner is who asks, for people who look at the lock. "" = host and process.
	Owner string
	// AtMost is how long nobody else gets the lock if this process dies. It is
	// extended for as long as the run goes on. 0 = 30 s, at least a second.
	AtMost time.Duration
	// AtLeast is how long the lock stays taken even if the run is over sooner, so
	// that a machine whose clock is behind does not do the same once more.
	AtLeast time.Duration
}

const (
	lockAtMost    = 30 * time.Second
	lockAtMostMin = time.Second
	unlockTimeout = 10 * time.Second
	lockAskTime   = 10 * time.Second // after that an answer that was lost is not asked for again
)

// Lock runs a function under a named lock, and extends the lock until it
// returns. If somebody else has the lock, the function is not run and the
// error is a refusal with the code locked, whose Lock says who has it until when.
// An answer that is lost is asked for again, and is the same.
//
// The function is given the fencing number of its grant, which is higher than
// that of every grant before. It sends the number along with what it writes, so
// that the target can refuse a lower one. Its context ends, with the cause
// ErrLockLost, before anybody else can have got the lock by its end. Lock fails
// with ErrLockLost, whatever the function returns, if the lock was not the
// function's own to the end.
func (c *Client) Lock(ctx context.Context, name string, o LockOptions, run func(ctx context.Context, fencing int64) error) error {
	o, err := o.complete()
	if err != nil {
		return fmt.Errorf("taking the lock %s: %w", name, err)
	}
	asked := time.Now()
	l, err := c.takeLock(ctx, name, wire.TakeLock{
		Owner: o.Owner, LockAtMostMS: o.AtMost.Milliseconds(), LockAtLeastMS: o.AtLeast.Milliseconds(), Request: rand.Text(),
	}, asked.Add(min(o.AtMost/2, lockAskTime)))
	if err != nil {
		return err
	}
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		if err := c.keep(own, l, o.AtMost, asked.Add(o.AtMost)); err != nil {
			cancel(err)
		}
	})
	defer func() { // also when the run panics
		cancel(nil)
		keeping.Wait()
	}()
	err = run(own, l.Fencing)
	cancel(nil)
	keeping.Wait()
	if lost := context.Cause(own); errors.Is(lost, ErrLockLost) {
		return errors.Join(fmt.Errorf("the run under the lock %s: %w", name, lost), err)
	}
	last, end := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer end()
	switch _, gone := c.Unlock(last, name, l.Token); {
	case CodeOf(gone) == wire.CodeSuperseded:
		return errors.Join(fmt.Errorf("the run under the lock %s: %w: somebody else got it meanwhile", name, ErrLockLost), err)
	case gone != nil && err == nil:
		return fmt.Errorf("the run is done, and its lock could not be given back: %w", gone)
	}
	return err
}

func (o LockOptions) complete() (LockOptions, error) {
	o.AtMost = cmp.Or(o.AtMost, lockAtMost)
	if o.AtMost < lockAtMostMin {
		return o, fmt.Errorf("AtMost %s: give at least %s, which is time to extend it", o.AtMost, lockAtMostMin)
	}
	if o.AtLeast < 0 || o.AtLeast > o.AtMost {
		return o, fmt.Errorf("AtLeast %s must be between 0 and AtMost %s", o.AtLeast, o.AtMost)
	}
	if o.Owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		o.Owner = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	return o, nil
}

// keep extends a lock until ctx ends. ends is when it is over if nobody extends
// it, by our own clock and counted from before it was asked for: so never
// later than the server says.
func (c *Client) keep(ctx context.Context, l *wire.Lock, most time.Duration, ends time.Time) error {
	wait := most / 3
	for {
		timer := time.NewTimer(min(wait, time.Until(ends)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if !time.Now().Before(ends) {
			return fmt.Errorf("%w: it could not be extended in time", ErrLockLost)
		}
		asked := time.Now()
		call, stop := context.WithDeadline(ctx, ends)
		_, err := c.ExtendLock(call, l.Name, l.Token, most)
		stop()
		refused, ok := errors.AsType[*Error](err)
		switch {
		case err == nil:
			ends, wait = asked.Add(most), most/3
		case ok && !refused.Temporary():
			return fmt.Errorf("%w: %w", ErrLockLost, refused)
		default:
			wait = most / 10
		}
	}
}

// takeLock asks until there is an answer: a lock that was given without one would
// keep everybody out until its time is over. Who was not reached is not asked
// again.
func (c *Client) takeLock(ctx context.Context, name string, ask wire.TakeLock, until time.Time) (*wire.Lock, error) {
	var l *wire.Lock
	err := insist(ctx, func() (err error) { l, err = c.TakeLock(ctx, name, ask); return err }, func(err error, wait time.Duration) bool {
		op, isNet := errors.AsType[*net.OpError](err)
		return time.Until(until) >= wait && (!isNet || op.Op != "dial")
	})
	return l, err
}

// TakeLock takes a named lock if it is free; its token is in the answer. Lock
// does so and keeps it. With a Request it may be called again after an answer was
// lost, and has the same one.
func (c *Client) TakeLock(ctx context.Context, name string, ask wire.TakeLock) (*wire.Lock, error) {
	return answer[wire.Lock](ctx, c, "POST", lockPath(name), ask, "taking the lock %s", name)
}

// ExtendLock keeps a lock for a span from now.
func (c *Client) ExtendLock(ctx context.Context, name, token string, most time.Duration) (*wire.Lock, error) {
	return answer[wire.Lock](ctx, c, "POST", lockPath(name)+"/extend", wire.ExtendLock{Token: token, LockAtMostMS: most.Milliseconds()}, "extending the lock %s", name)
}

// Unlock gives a lock back. Doing it twice is the same.
func (c *Client) Unlock(ctx context.Context, name, token string) (*wire.Lock, error) {
	with := *c
	if with.opts.Header = c.opts.Header.Clone(); with.opts.Header == nil {
		with.opts.Header = http.Header{}
	}
	with.opts.Header.Set(wire.LockTokenHeader, token)
	return answer[wire.Lock](ctx, &with, "DELETE", lockPath(name), nil, "giving back the lock %s", name)
}

// BreakLock takes a lock from whoever has it.
func (c *Client) BreakLock(ctx context.Context, name string) (*wire.Lock, error) {
	return answer[wire.Lock](ctx, c, "POST", lockPath(name)+"/break", nil, "breaking the lock %s", name)
}

// Locks lists the locks by name: those that are held, and those that were in
// the last day.
func (c *Client) Locks(ctx context.Context) ([]wire.Lock, error) {
	var out wire.Locks
	err := c.ask(ctx, "GET", "/locks", nil, &out, "listing locks")
	return out.Locks, err
}

func lockPath(name string) string { return "/locks/" + url.PathEscape(name) }
