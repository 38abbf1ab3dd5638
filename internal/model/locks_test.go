package model

import (
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/lock"
)

// namedLock is a named lock as the model sees it: who got it last, and from when on
// somebody else may have it. Both clocks of the model are one.
type namedLock struct {
	name, by string
	token    job.Token // which only the engine can draw, as
	fence    int64     // this, but it has to rise
	at       job.Millis
	free     job.Millis // from then on
	least    job.Millis // not before, even if it is given back
	given    bool
	request  string // "" = it said none
}

func (l *namedLock) held(now job.Millis) bool { return !l.given && now < l.free }

// takeLock returns nil if the lock is not free.
func (m *model) takeLock(name, by string, most, least job.Millis) *namedLock {
	if l := m.locks[name]; l != nil && m.now < l.free {
		return nil
	}
	l := &namedLock{name: name, by: by, at: m.now, free: m.now + most, least: m.now + least}
	m.locks[name] = l
	return l
}

// useLock takes, extends, gives back or breaks a lock, with the right token or
// that of an earlier holder.
func (w *world) useLock(t *rapid.T) {
	m, name := w.model, one(t, "lock", "x", "y")
	l := m.locks[name]
	token := job.Token{1}
	if len(w.lockTokens) > 0 {
		token = one(t, "token", w.lockTokens...)
	}
	if l != nil && one(t, "own", true, true, false) {
		token = l.token
	}
	own := l != nil && l.token == token
	kind := func() job.Kind {
		switch {
		case l == nil:
			return job.NotFound
		case !own:
			return job.Superseded
		}
		return accepted
	}
	switch one(t, "verb", "take", "take", "extend", "unlock", "break") {
	case "take":
		ask := job.LockAsk{Name: name, By: one(t, "owner", "a", "b"), Most: one[job.Millis](t, "most", 700, 5000, 60_000)}
		ask.Least = one(t, "least", 0, 0, 500, ask.Most)
		ask.Least = min(ask.Least, ask.Most)
		ask.Request = one(t, "request", "", "the request number 1", "the request number 2")
		got, ok, err := w.Locks.Take(w.Context(), ask)
		if l != nil && ask.Request != "" && l.request == ask.By+ask.Request { // the same ask again
			if !l.held(m.now) {
				w.refusedLock(err, job.Superseded)
				return
			}
			if w.must(err); !ok || got.Token != l.token {
				w.Fatalf("the lock %s is not given again: %+v", name, got)
			}
			w.sameLocks(got)
			return
		}
		w.must(err)
		want := m.takeLock(name, ask.By, ask.Most, ask.Least)
		if ok != (want != nil) {
			w.Fatalf("the lock %s is got: %v, want %v", name, ok, want != nil)
		}
		if ok {
			if got.Fence <= w.fence {
				w.Fatalf("the fencing number %d came after %d", got.Fence, w.fence)
			}
			w.fence = got.Fence
			want.token, want.fence = got.Token, got.Fence
			if ask.Request != "" {
				want.request = ask.By + ask.Request
			}
			w.lockTokens = append(w.lockTokens, got.Token)
		}
		w.sameLocks(got)
	case "extend":
		most := one[job.Millis](t, "most", 1, 900, 20_000)
		got, err := w.Locks.Extend(w.Context(), name, token, most)
		want := kind()
		if want == accepted && !l.held(m.now) {
			want = job.Superseded
		}
		if w.refusedLock(err, want) {
			return
		}
		l.free = max(m.now+most, l.least)
		w.sameLocks(got)
	case "unlock":
		got, err := w.Locks.Release(w.Context(), name, token)
		if w.refusedLock(err, kind()) {
			return
		}
		if l.held(m.now) {
			l.given, l.free = true, max(m.now, l.least)
		}
		w.sameLocks(got)
	case "break":
		got, err := w.Locks.Break(w.Context(), name, job.Actor{})
		own = true
		if w.refusedLock(err, kind()) {
			return
		}
		if m.now < l.free {
			l.given, l.free = true, m.now
		}
		w.sameLocks(got)
	}
}

// refusedLock reports whether the call must be refused, and was.
func (w *world) refusedLock(err error, want job.Kind) bool {
	if got := job.KindOf(err); (err == nil) != (want == accepted) || err != nil && got != want {
		w.Fatalf("the lock is refused with %v, want the kind %d", err, want)
	}
	return err != nil
}

// sameLocks compares what was answered, and all locks.
func (w *world) sameLocks(got lock.State) {
	w.sameLock(got)
	list, err := w.Locks.List(w.Context(), "", 10)
	w.must(err)
	for _, s := range list {
		w.sameLock(s)
	}
	if !slices.IsSortedFunc(list, func(a, b lock.State) int { return strings.Compare(a.Name, b.Name) }) || len(list) != len(w.model.locks) {
		w.Fatalf("listed are %d locks, want %d by name", len(list), len(w.model.locks))
	}
}

func (w *world) sameLock(s lock.State) {
	l, now := w.model.locks[s.Name], w.model.now
	if l == nil || s.Token != l.token || s.Fence != l.fence || s.By != l.by || s.At != l.at || s.Ends != l.free || s.Held != l.held(now) || s.Free != (now >= l.free) {
		w.Fatalf("the lock %s is %+v %+v at %d, want %+v", s.Name, s, *s.Lock, now, l)
	}
}
