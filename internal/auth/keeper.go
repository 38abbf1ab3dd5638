// Package auth tells who sends a request: it keeps the tokens of the API where
// a request finds them with one look-up and one hash. What a token may do is in
// its credential (internal/job); what a call asks for is the listener's
// (internal/httpapi).
//
// It holds no secret: a token is compared by its hash, in constant time.
package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/internal/job"
)

// Why a request has no grant.
var (
	ErrMissing = errors.New("this server wants a token: send it as Authorization: Bearer TOKEN")
	ErrUnknown = errors.New("the token is not known here: it is misspelt, expired or revoked")
)

// Keeper knows the tokens. Without any it is open: everybody may do everything.
// From its first token on it is closed.
type Keeper struct {
	now func() job.Millis

	mu    sync.Mutex           // guards changes of known
	known atomic.Pointer[ring] // replaced whole

	nobody *Grant // of everybody while it is open
}

// ring is the grants by id; nil = open.
type ring struct{ byID map[string]*Grant }

// New returns a keeper of the tokens of the configuration and, later, those
// that are added. now is the date.
func New(configured []job.Credential, now func() job.Millis) *Keeper {
	k := &Keeper{now: now, nobody: &Grant{Credential: job.Credential{Scopes: job.ScopesAll}}}
	k.known.Store(&ring{})
	for _, c := range configured {
		k.add(c, true)
	}
	return k
}

// Closed reports whether a request needs a token.
func (k *Keeper) Closed() bool { return k.known.Load().byID != nil }

// Add lets a token in.
func (k *Keeper) Add(list ...job.Credential) {
	for _, c := range list {
		k.add(c, false)
	}
}

func (k *Keeper) add(c job.Credential, configured bool) {
	g := &Grant{Credential: c, Configured: configured}
	k.change(func(byID map[string]*Grant) {
		if old := byID[c.ID]; old != nil {
			old.finish()
		}
		byID[c.ID] = g
	})
	k.nobody.finish() // who came in without a token has none now
	if c.Expires != 0 {
		k.watch(g)
	}
}

// ErrLast refuses to take the last token away: nobody could come in any more.
var ErrLast = errors.New("auth.tokens names no token any more, and the API has made none: nobody could come in; " +
	"make a token over the API first, or start the server again if it is to be open to everybody who can connect")

// Configure replaces the tokens of the configuration by those of a newer one.
// What is as it was keeps what it has open. It refuses with ErrLast what would
// leave no token.
func (k *Keeper) Configure(list []job.Credential) error {
	known := k.known.Load().byID
	made := func(g *Grant) bool { return !g.Configured }
	if len(list) == 0 && len(known) > 0 && !slices.ContainsFunc(k.Grants(), made) {
		return ErrLast
	}
	stays := map[string]bool{}
	for _, c := range list {
		stays[c.ID] = true
		if g := k.known.Load().byID[c.ID]; g == nil || !g.Configured || !reflect.DeepEqual(g.Credential, c) {
			k.add(c, true)
		}
	}
	for id, g := range k.known.Load().byID {
		if g.Configured && !stays[id] {
			k.Remove(id)
		}
	}
	return nil
}

// Remove shuts a token out and ends what it has open. One that is not known
// changes nothing: an open keeper stays open.
func (k *Keeper) Remove(id string) {
	if k.known.Load().byID[id] == nil {
		return
	}
	k.change(func(byID map[string]*Grant) {
		if g := byID[id]; g != nil {
			delete(byID, id)
			g.finish()
		}
	})
}

func (k *Keeper) change(f func(byID map[string]*Grant)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	byID := maps.Clone(k.known.Load().byID)
	if byID == nil {
		byID = map[string]*Grant{}
	}
	f(byID)
	k.known.Store(&ring{byID})
}

// Grants returns all there is, in no order.
func (k *Keeper) Grants() (list []*Grant) {
	for _, g := range k.known.Load().byID {
		list = append(list, g)
	}
	return list
}

const scheme = "Bearer "

// Who returns the grant of a request by its Authorization headers: the one of
// nobody while the keeper is open, else that of the token, or ErrMissing or
// ErrUnknown.
func (k *Keeper) Who(authorization []string) (*Grant, error) {
	byID := k.known.Load().byID
	if byID == nil {
		return k.nobody, nil
	}
	if len(authorization) != 1 || len(authorization[0]) < len(scheme) || !strings.EqualFold(authorization[0][:len(scheme)], scheme) {
		return nil, ErrMissing
	}
	id, hash, ok := job.ParseSecret(strings.TrimSpace(authorization[0][len(scheme):]))
	if !ok {
		return nil, ErrUnknown
	}
	g := byID[id]
	if g == nil || subtle.ConstantTimeCompare(hash[:], g.Hash[:]) != 1 {
		return nil, ErrUnknown
	}
	now := k.now()
	if g.Expired(now) {
		return nil, ErrUnknown
	}
	if now-job.Millis(g.used.Load()) >= usedEvery {
		g.used.Store(int64(now))
	}
	return g, nil
}

// usedEvery is how exact the latest use is: not every request writes it down.
const usedEvery = job.Minute

// watchEvery bounds how long a timer runs by itself: dates can be put right
// meanwhile.
const watchEvery = time.Hour

// watch ends what an expiring token has open, when its time has come.
func (k *Keeper) watch(g *Grant) {
	left := g.Expires - k.now()
	if left <= 0 {
		g.finish()
		return
	}
	wait := watchEvery
	if left < job.Millis(watchEvery.Milliseconds()) {
		wait = time.Duration(left) * time.Millisecond
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.timer = time.AfterFunc(wait, func() { k.watch(g) })
	}
}

// Grant is a token that is let in. While the keeper is open it has no name.
type Grant struct {
	job.Credential
	Configured bool         // it stands in the configuration
	used       atomic.Int64 // a date; 0 = not since the start

	mu    sync.Mutex // guards what follows
	over  bool
	open  map[*context.CancelFunc]struct{} // what ends with it
	timer *time.Timer
}

// Used is about when it was used last, 0 if it was not since the start.
func (g *Grant) Used() job.Millis { return job.Millis(g.used.Load()) }

// ErrEnded is why a context of Bound ended that nobody cancelled.
var ErrEnded = errors.New("the token was revoked or has expired")

// Bound returns a context that also ends, for the reason ErrEnded, when the
// token does. It costs nothing after ctx is over.
func (g *Grant) Bound(ctx context.Context) context.Context {
	bound, end := context.WithCancelCause(ctx)
	var cancel context.CancelFunc = func() { end(ErrEnded) }
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		cancel()
		return bound
	}
	if g.open == nil {
		g.open = map[*context.CancelFunc]struct{}{}
	}
	g.open[&cancel] = struct{}{}
	context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, &cancel)
	})
	return bound
}

// finish ends what is open, now and later.
func (g *Grant) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	for cancel := range g.open {
		(*cancel)()
	}
	g.open = nil
	if g.timer != nil {
		g.timer.Stop()
	}
}
