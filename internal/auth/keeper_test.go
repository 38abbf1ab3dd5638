package auth

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/job"
)

var rnd = rand.New(rand.NewPCG(5, 6)).Uint64

// token makes a token: its text and what is kept of it.
func token(name string, expires job.Millis) (string, job.Credential) {
	text := job.NewSecret(rnd)
	id, hash, _ := job.ParseSecret(text)
	return text, job.Credential{ID: id, Name: name, Hash: hash, Scopes: job.ScopeRead, Expires: expires}
}

func wall() job.Millis { return job.Millis(time.Now().UnixMilli()) }

func TestAKeeperIsOpenUntilItsFirstToken(t *testing.T) {
	k := New(nil, wall)
	if g, err := k.Who(nil); err != nil || k.Closed() || !g.Scopes.Allows(job.ScopeAdmin) || g.Name != "" {
		t.Fatalf("open: %+v, %v", g, err)
	}
	text, c := token("ci", 0)
	k.Add(c)
	if g, err := k.Who([]string{"Bearer " + text}); err != nil || g.Name != "ci" || g.Scopes != job.ScopeRead {
		t.Errorf("got %+v, %v", g, err)
	}
	if _, err := k.Who(nil); !errors.Is(err, ErrMissing) {
		t.Errorf("without a token: %v", err)
	}
	k.Remove(c.ID)
	if _, err := k.Who([]string{"Bearer " + text}); !errors.Is(err, ErrUnknown) || !k.Closed() {
		t.Errorf("revoked: %v, closed %t", err, k.Closed())
	}
	if k := New([]job.Credential{c}, wall); !k.Closed() || !k.Grants()[0].Configured {
		t.Error("a token of the configuration closes nothing")
	}
}

func TestOnlyTheWholeTokenIsTaken(t *testing.T) {
	text, c := token("ci", 0)
	other, second := token("other", 0)
	k := New([]job.Credential{c, second}, wall)
	for _, ok := range []string{"Bearer " + text, "bearer " + text, "BEARER  " + text + " "} {
		if g, err := k.Who([]string{ok}); err != nil || g.ID != c.ID {
			t.Errorf("%q: %v", ok[:9], err)
		}
	}
	swapped := text[:14] + other[14:] // the id of one, the secret of the other
	last := text[:len(text)-1] + map[bool]string{true: "1", false: "0"}[strings.HasSuffix(text, "0")]
	for _, bad := range []string{swapped, last, other[:14] + text[14:], text + "0", "rp_" + c.ID, string(c.Hash[:]), ""} {
		if _, err := k.Who([]string{"Bearer " + bad}); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, none := range [][]string{nil, {}, {""}, {text}, {"Basic " + text}, {"Bearer" + text}, {"Bearer " + text, "Bearer " + text}} {
		if _, err := k.Who(none); !errors.Is(err, ErrMissing) {
			t.Errorf("%q: %v", none, err)
		}
	}
}

func TestEveryByteOfTheHashCounts(t *testing.T) {
	text, c := token("ci", 0)
	for i := range c.Hash {
		wrong := c
		wrong.Hash[i] ^= 1
		if _, err := New([]job.Credential{wrong}, wall).Who([]string{"Bearer " + text}); !errors.Is(err, ErrUnknown) {
			t.Errorf("byte %d of the hash does not count", i)
		}
	}
}

func TestATokenEndsWithWhatItHasOpen(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(k *Keeper, id string)
		span job.Millis
	}{
		{"revoked", func(k *Keeper, id string) { k.Remove(id) }, 0},
		{"expired", func(*Keeper, string) { <-time.After(90 * time.Minute) }, 90 * job.Minute},
		{"replaced", func(k *Keeper, id string) { k.Add(job.Credential{ID: id, Scopes: job.ScopeRead}) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				expires := job.Millis(0)
				if c.span > 0 {
					expires = wall() + c.span
				}
				text, cred := token("ci", expires)
				_, other := token("other", wall()+job.Day)
				k := New([]job.Credential{cred, other}, wall)
				defer k.Remove(other.ID)
				g, err := k.Who([]string{"Bearer " + text})
				if err != nil {
					t.Fatal(err)
				}
				ctx := g.Bound(t.Context())
				left, leave := context.WithCancel(t.Context())
				gone := g.Bound(left)
				leave()
				synctest.Wait()
				if ctx.Err() != nil || opened(g) != 1 || !errors.Is(context.Cause(gone), context.Canceled) {
					t.Fatalf("early: %v, %d are open", ctx.Err(), opened(g))
				}
				c.end(k, cred.ID)
				synctest.Wait()
				if !errors.Is(context.Cause(ctx), ErrEnded) || !errors.Is(context.Cause(g.Bound(t.Context())), ErrEnded) {
					t.Errorf("still open: %v", context.Cause(ctx))
				}
				if _, err := k.Who([]string{"Bearer " + text}); !errors.Is(err, ErrUnknown) {
					t.Errorf("still let in: %v", err)
				}
			})
		})
	}
}

func opened(g *Grant) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open)
}

// A date that is put right does not make a token live on, or die early.
func TestExpiryFollowsTheDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var step atomic.Int64
		now := func() job.Millis { return wall() + job.Millis(step.Load()) }
		text, c := token("ci", wall()+job.Day)
		k := New([]job.Credential{c}, now)
		g, _ := k.Who([]string{"Bearer " + text})
		ctx := g.Bound(t.Context())
		step.Store(int64(job.Day))
		if _, err := k.Who([]string{"Bearer " + text}); !errors.Is(err, ErrUnknown) {
			t.Errorf("after the step: %v", err)
		}
		<-time.After(watchEvery)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("what it had open is not over an hour later")
		}
	})
}

func TestWithTheFirstTokenEverybodyElseIsOut(t *testing.T) {
	k := New(nil, wall)
	g, _ := k.Who(nil)
	ctx := g.Bound(t.Context())
	_, c := token("root", 0)
	k.Add(c)
	if !errors.Is(context.Cause(ctx), ErrEnded) {
		t.Errorf("who came before is still in: %v", ctx.Err())
	}
}

func TestTheLatestUseIsKeptToTheMinute(t *testing.T) {
	now := 10 * job.Minute
	text, c := token("ci", 0)
	k := New([]job.Credential{c}, func() job.Millis { return now })
	use := func(at, want job.Millis) {
		t.Helper()
		now = at
		g, err := k.Who([]string{"Bearer " + text})
		if err != nil || g.Used() != want {
			t.Errorf("used at %d, told %d, %v", at, g.Used(), err)
		}
	}
	if used := k.Grants()[0].Used(); used != 0 {
		t.Errorf("used at %d", used)
	}
	use(600_000, 600_000)
	use(659_999, 600_000)
	use(660_000, 660_000)
}

func BenchmarkWho(b *testing.B) {
	text, c := token("ci", 0)
	k := New([]job.Credential{c}, wall)
	header := []string{"Bearer " + text}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Who(header); err != nil {
			b.Fatal(err)
		}
	}
}

// Nobody is locked out by what takes nothing away, or would take all away.
func TestAKeeperIsNeverClosedWithoutAToken(t *testing.T) {
	_, file := token("file", 0)
	_, made := token("made", 0)
	one := []job.Credential{file}
	for _, c := range []struct {
		name       string
		configured []job.Credential
		made       []job.Credential
		change     func(k *Keeper) error
		err        error
		left       int
	}{
		{"an open one is told to remove what it does not know", nil, nil, func(k *Keeper) error { k.Remove("x"); return nil }, nil, 0},
		{"an open one is told to remove nothing", nil, nil, func(k *Keeper) error { k.Remove(""); return nil }, nil, 0},
		{"a reload of an empty list into an open one", nil, nil, func(k *Keeper) error { return k.Configure(nil) }, nil, 0},
		{"a reload takes the only token", one, nil, func(k *Keeper) error { return k.Configure(nil) }, ErrLast, 1},
		{"a reload takes all of the file, and the API has one", one, []job.Credential{made}, func(k *Keeper) error { return k.Configure(nil) }, nil, 1},
		{"a reload of an empty list, and all are of the API", nil, []job.Credential{made}, func(k *Keeper) error { return k.Configure(nil) }, nil, 1},
		{"then the one of the API is gone", one, []job.Credential{made}, func(k *Keeper) error { k.Remove(made.ID); return k.Configure(nil) }, ErrLast, 1},
		{"a reload brings the first", nil, nil, func(k *Keeper) error { return k.Configure(one) }, nil, 1},
	} {
		k := New(c.configured, wall)
		k.Add(c.made...)
		if err := c.change(k); !errors.Is(err, c.err) || len(k.Grants()) != c.left || k.Closed() != (c.left > 0) {
			t.Errorf("%s: %v, %d tokens, closed %t", c.name, err, len(k.Grants()), k.Closed())
		}
	}
}
