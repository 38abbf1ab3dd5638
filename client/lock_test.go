package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// lock is a named lock of the fake.
func (f *fake) lock(w http.ResponseWriter, r *http.Request, name string, rest []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.locks == nil {
		f.locks = map[string]*wire.Lock{}
	}
	l, now := f.locks[name], time.Now().UnixMilli()
	free := l == nil || l.LockUntil <= now
	var extend wire.ExtendLock
	token := r.Header.Get(wire.LockTokenHeader)
	if len(rest) == 1 && rest[0] == "extend" {
		f.read(r, &extend)
		token = extend.Token
	}
	switch {
	case r.Method == "POST" && len(rest) == 0 && free:
		var ask wire.TakeLock
		f.read(r, &ask)
		f.tokens++
		l = &wire.Lock{
			Name: name, Status: wire.LockHeld, LockedAt: now, LockUntil: now + ask.LockAtMostMS, LockedBy: ask.Owner,
			Fencing: int64(f.tokens), Token: fmt.Sprintf("%040d", f.tokens),
		}
		f.locks[name], f.lockRequest = l, ask.Request
		if f.loseLocks--; f.loseLocks >= 0 {
			panic(http.ErrAbortHandler)
		}
		f.write(w, 200, l)
	case r.Method == "POST" && len(rest) == 0 && f.sameRequest(r, l):
		f.write(w, 200, l)
	case r.Method == "POST" && len(rest) == 0:
		shown := *l
		shown.Token = ""
		f.write(w, 423, wire.Locked{Error: wire.Error{Error: "the lock is with " + l.LockedBy, Code: wire.CodeLocked}, Lock: shown})
	case free || token != l.Token:
		f.fail(w, 409, wire.CodeSuperseded)
	case r.Method == "DELETE":
		l.LockUntil = now
		f.write(w, 200, l)
	default:
		l.LockUntil = now + extend.LockAtMostMS
		f.write(w, 200, l)
	}
}

func (f *fake) sameRequest(r *http.Request, l *wire.Lock) bool {
	var ask wire.TakeLock
	f.read(r, &ask)
	return ask.Request != "" && ask.Request == f.lockRequest && ask.Owner == l.LockedBy
}

// A lock whose answer is lost is asked for again, by the same request: else it
// would keep everybody out until its time is over.
func TestALockWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.loseLocks = 1
		began := time.Now()
		err := c.Lock(t.Context(), "n", LockOptions{Owner: "me"}, func(ctx context.Context, fencing int64) error {
			if took := time.Since(began); fencing != 1 || took > time.Second {
				t.Errorf("fencing %d after %s", fencing, took)
			}
			err := c.Lock(ctx, "n", LockOptions{Owner: "me"}, func(context.Context, int64) error { t.Error("two have it"); return nil })
			if CodeOf(err) != wire.CodeLocked { // another request of the same owner
				t.Errorf("who comes second hears %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		f.refuse = func(*http.Request) *refusal { return &refusal{hangUp: true} }
		began = time.Now()
		err = c.Lock(t.Context(), "n", LockOptions{AtMost: 4 * time.Second}, func(context.Context, int64) error { t.Error("it was not got"); return nil })
		if took := time.Since(began); err == nil || took > 2*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestALockIsKeptWhileItsRunGoesOnAndGivenBackAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		extended := 0
		f.refuse = func(r *http.Request) *refusal {
			if strings.HasSuffix(r.URL.Path, "/extend") {
				extended++
			}
			return nil
		}
		var first int64
		err := c.Lock(t.Context(), "n", LockOptions{Owner: "me", AtMost: 30 * time.Second}, func(ctx context.Context, fencing int64) error {
			first = fencing
			<-time.After(10 * time.Minute)
			err := c.Lock(ctx, "n", LockOptions{}, func(context.Context, int64) error { t.Error("two have it"); return nil })
			refused, ok := errors.AsType[*Error](err)
			if !ok || refused.Code != wire.CodeLocked || refused.Lock == nil || refused.Lock.LockedBy != "me" || refused.Temporary() {
				t.Errorf("who comes second hears %v, %+v", err, refused)
			}
			return ctx.Err()
		})
		if err != nil || first != 1 || extended < 59 || extended > 61 {
			t.Errorf("%v, fencing %d, extended %d times", err, first, extended)
		}
		err = c.Lock(t.Context(), "n", LockOptions{}, func(_ context.Context, fencing int64) error {
			if fencing != 2 {
				t.Errorf("fencing %d", fencing)
			}
			return errors.New("the run's own")
		})
		if err == nil || err.Error() != "the run's own" {
			t.Error(err)
		}
		if l := f.locks["n"]; !strings.Contains(l.LockedBy, "/") || l.LockUntil != time.Now().UnixMilli() {
			t.Errorf("given back as %+v", l)
		}
	})
}

func TestARunHearsThatItsLockIsLostBeforeSomebodyElseCanHaveIt(t *testing.T) {
	for name, c := range map[string]struct {
		refuse func(r *http.Request) *refusal
		after  time.Duration
	}{
		"no answer":         {func(*http.Request) *refusal { return &refusal{hangUp: true} }, 30 * time.Second},
		"unavailable":       {func(*http.Request) *refusal { return &refusal{status: 503, code: wire.CodeUnavailable} }, 30 * time.Second},
		"broken by someone": {func(*http.Request) *refusal { return &refusal{status: 409, code: wire.CodeSuperseded} }, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, cl := newFake(t, Options{})
				f.refuse = func(r *http.Request) *refusal {
					if strings.HasSuffix(r.URL.Path, "/extend") {
						return c.refuse(r)
					}
					return nil
				}
				began := time.Now()
				err := cl.Lock(t.Context(), "n", LockOptions{}, func(ctx context.Context, _ int64) error {
					<-ctx.Done()
					if got := time.Since(began); got != c.after || !errors.Is(context.Cause(ctx), ErrLockLost) {
						t.Errorf("told after %s: %v", got, context.Cause(ctx))
					}
					if f.locks["n"].LockUntil < time.Now().UnixMilli() {
						t.Error("the lock was free already")
					}
					return nil // a run that does not look
				})
				if !errors.Is(err, ErrLockLost) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestAnOutageShorterThanTheLockLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		began := time.Now()
		f.refuse = func(r *http.Request) *refusal {
			if since := time.Since(began); strings.HasSuffix(r.URL.Path, "/extend") && since < 25*time.Second {
				return &refusal{hangUp: true}
			}
			return nil
		}
		if err := c.Lock(t.Context(), "n", LockOptions{}, func(ctx context.Context, _ int64) error {
			<-time.After(2 * time.Minute)
			return ctx.Err()
		}); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatCannotBeALockOrItsOptionsIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.refuse = func(*http.Request) *refusal { t.Error("the server was asked"); return nil }
		for _, o := range []LockOptions{{AtMost: time.Millisecond}, {AtMost: -1}, {AtLeast: -1}, {AtLeast: time.Hour}} {
			if err := c.Lock(t.Context(), "n", o, func(context.Context, int64) error { t.Error("it ran"); return nil }); err == nil {
				t.Errorf("%+v is taken", o)
			}
		}
	})
}

func TestARunThatPanicsLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		_, c := newFake(t, Options{})
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = c.Lock(t.Context(), "n", LockOptions{}, func(context.Context, int64) error { panic("x") })
	})
}

func TestALockThatSomebodyElseGotMeanwhileIsToldAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		own := errors.New("the run's own")
		err := c.Lock(t.Context(), "n", LockOptions{}, func(ctx context.Context, _ int64) error {
			f.locks["n"].LockUntil = 0 // broken
			if _, err := c.TakeLock(ctx, "n", wire.TakeLock{Owner: "b", LockAtMostMS: 1000}); err != nil {
				t.Error(err)
			}
			return own
		})
		if !errors.Is(err, ErrLockLost) || !errors.Is(err, own) {
			t.Errorf("got %v", err)
		}
	})
}
