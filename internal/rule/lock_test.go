package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

var tokenA, tokenB = job.Token{1}, job.Token{2}

func at(steady job.Millis) Moment { return Moment{Now: 1_000_000 + steady, Steady: steady} }

func TestALockIsTakenExtendedAndGivenBackExactlyInTime(t *testing.T) {
	ask := job.LockAsk{Name: "n", By: "a", Most: 300, Least: 20}
	l := TakeLock(nil, ask, at(0), tokenA, 7)
	want := job.Lock{Name: "n", Fence: 7, Token: tokenA, By: "a", At: 1_000_000, Span: 300, Until: 300, Least: 20, Forget: 300 + job.LockKeep}
	if *l != want {
		t.Fatalf("got %+v, want %+v", *l, want)
	}
	for _, c := range []struct {
		steady job.Millis
		taken  bool
	}{{0, false}, {299, false}, {300, true}, {301, true}} {
		if got := TakeLock(l, job.LockAsk{Name: "n", By: "b", Most: 1}, at(c.steady), tokenB, 8); (got != nil) != c.taken {
			t.Errorf("at %d: taken %v, want %v", c.steady, got != nil, c.taken)
		}
	}
	if longer, err := ExtendLock(l, tokenA, 100, at(299)); err != nil || longer.Until != 399 || longer.Span != 100 || longer.Fence != 7 || longer.At != l.At {
		t.Errorf("extended: %+v, %v", longer, err)
	}
	if shorter, err := ExtendLock(l, tokenA, 1, at(5)); err != nil || shorter.Until != 20 || shorter.Span != 15 {
		t.Errorf("an extension goes below the least time: %+v, %v", shorter, err)
	}
	for _, c := range []struct{ steady, until job.Millis }{{0, 20}, {19, 20}, {20, 20}, {25, 25}, {299, 299}} {
		given, err := Unlock(l, tokenA, at(c.steady))
		if err != nil || given.Until != c.until || !given.Given || given.Held(c.steady) || given.Free(c.until-1) || !given.Free(c.until) {
			t.Errorf("given back at %d: %+v, %v", c.steady, given, err)
		}
		if again, err := Unlock(given, tokenA, at(c.steady+1)); err != nil || again != given {
			t.Errorf("given back twice: %+v, %v", again, err)
		}
		if _, err := ExtendLock(given, tokenA, 1, at(c.steady)); job.KindOf(err) != job.Superseded {
			t.Errorf("extended after it was given back: %v", err)
		}
	}
	if broken := BreakLock(l, at(3)); broken.Until != 3 || !broken.Given || !broken.Free(3) {
		t.Errorf("broken: %+v", broken)
	}
	if BreakLock(l, at(300)) != l {
		t.Error("a free lock was broken")
	}
}

func TestALockObeysNobodyButItsLatestHolder(t *testing.T) {
	l := TakeLock(nil, job.LockAsk{Name: "n", By: "a", Most: 10}, at(0), tokenA, 1)
	next := TakeLock(l, job.LockAsk{Name: "n", By: "b", Most: 10}, at(10), tokenB, 2)
	for name, c := range map[string]struct {
		l     *job.Lock
		token job.Token
		at    job.Millis
		want  job.Kind
	}{
		"no lock":               {nil, tokenA, 0, job.NotFound},
		"no token":              {l, job.Token{}, 0, job.Superseded},
		"another's":             {l, tokenB, 0, job.Superseded},
		"that of who was there": {next, tokenA, 11, job.Superseded},
	} {
		if _, err := ExtendLock(c.l, c.token, 5, at(c.at)); job.KindOf(err) != c.want {
			t.Errorf("%s extends: %v", name, err)
		}
		if _, err := Unlock(c.l, c.token, at(c.at)); job.KindOf(err) != c.want {
			t.Errorf("%s unlocks: %v", name, err)
		}
	}
	if _, err := ExtendLock(l, tokenA, 5, at(10)); job.KindOf(err) != job.Superseded {
		t.Errorf("a lock that ran out is extended: %v", err)
	}
	if same, err := Unlock(l, tokenA, at(10)); err != nil || same != l {
		t.Errorf("giving back what ran out: %+v, %v", same, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the fencing number may fall")
		}
	}()
	TakeLock(next, job.LockAsk{Name: "n", By: "c", Most: 1}, at(99), tokenA, 2)
}

func TestALockLastsNoLongerThanItWasGivenForWhateverTheClocksSay(t *testing.T) {
	l := TakeLock(nil, job.LockAsk{Name: "n", By: "a", Most: 300, Least: 100}, at(1000), tokenA, 1)
	for _, c := range []struct{ shift, steady, until, least job.Millis }{
		{0, 1000, 1300, 1100},
		{0, 1200, 1300, 1100},
		{50, 1200, 1350, 1150},
		{-50, 1200, 1250, 1050},
		{0, 10, 310, 310},        // the date went back
		{5000, 1200, 1500, 1500}, // the date was far ahead
		{-5000, 1200, 0, 0},
	} {
		got := CarryLock(l, c.shift, at(c.steady))
		if got.Until != c.until || got.Least != c.least || got.Forget > got.Until+job.LockKeep || got.Token != l.Token || got.Fence != 1 {
			t.Errorf("shifted by %d at %d: %+v", c.shift, c.steady, got)
		}
	}
}
