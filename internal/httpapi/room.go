package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// space counts bytes in memory of one kind, or places: for all together, and for
// each whose requests they belong to.
type space struct {
	mu    sync.Mutex // guards what follows
	all   int64
	of    map[string]int64
	freed chan struct{} // closed when some are given back; nil = nobody waits
}

// bounds are how much there may be of a space in all, and for one.
type bounds struct{ all, share int64 }

// take adds to the bytes of a request that has some already, if they fit. A
// request alone always has room.
func (s *space) take(who string, n, has int64, b bounds) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.left(who, has, b) {
		return false
	}
	if s.of == nil {
		s.of = map[string]int64{}
	}
	s.all += n
	s.of[who] += n
	return true
}

// left is how many bytes would fit.
func (s *space) left(who string, has int64, b bounds) int64 {
	left := int64(1) << 62
	if s.all > has {
		left = b.all - s.all
	}
	if s.of[who] > has {
		left = min(left, b.share-s.of[who])
	}
	return left
}

func (s *space) give(who string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= n
	if s.of[who] -= n; s.of[who] == 0 {
		delete(s.of, who)
	}
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// wait returns what is closed when somebody gives bytes back.
func (s *space) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return s.freed
}

// bounds are those of bodies of producers, and of answers: one token has half at
// most, or one address where nobody has a token.
func (h *core) bounds() bounds { return bounds{h.inflightMax, h.inflightMax / 2} }

// place takes one of the places for those who listen or watch. One token has half
// of them at most, or one address where nobody has a token.
func (h *core) place(taken *space, r *http.Request, most int64, what string) (leave func(), err error) {
	who, half := h.whose(r), max(1, most/2)
	if !taken.take(who, 1, 0, bounds{most, half}) {
		return nil, &refusal{http.StatusTooManyRequests, wire.CodeOverLimit, fmt.Sprintf(
			"too many %s already: at most %d, and %d with one token or, without tokens, from one address; end one of them", what, most, half)}
	}
	return func() { taken.give(who, 1) }, nil
}

// whose tells whose share a request uses. Of IPv6 a network of 64 bits is one
// address.
func (h *core) whose(r *http.Request) string {
	if g := h.grantOf(r); g != nil {
		return "token " + g.Name
	}
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "" // a socket without an address
	}
	return networkOf(addr.Addr()).String()
}

// room is what one answer may hold in memory until its reader has it. All
// together have max_inflight_bytes, beside that of bodies: a slow reader holds
// a page for as long as it is let.
type room struct {
	h    *core
	r    *http.Request
	who  string // once it holds something
	held int64
}

const (
	// copies of a row that an answer has: as it was read, and as it is sent.
	copies = 2
	// roomSmall is what a burst of a take has without asking for room.
	roomSmall = 64 << 10
	// roomWait is how long leases wait for room; whoever they were given to loses
	// them then.
	roomWait = 20 * time.Second
)

func (h *core) room(r *http.Request) *room { return &room{h: h, r: r} }

// take implements engine.Room.
func (o *room) take(bytes int) error {
	if o.held == 0 {
		o.who = o.h.whose(o.r)
	}
	n := copies * int64(bytes)
	if !o.h.answers.take(o.who, n, o.held, o.h.bounds()) {
		return errAnswers
	}
	o.held += n
	return nil
}

func (o *room) leave() {
	if o.held > 0 {
		o.h.answers.give(o.who, o.held)
		o.held = 0
	}
}

// patient implements engine.Room for what was leased: it waits until there is
// room, and gives up after roomWait.
func (o *room) patient(ctx context.Context) func(bytes int) error {
	return func(bytes int) error {
		if bytes <= roomSmall || o.take(bytes) == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, roomWait)
		defer cancel()
		for {
			freed := o.h.answers.wait()
			err := o.take(bytes)
			if err == nil {
				return nil
			}
			select {
			case <-freed:
			case <-ctx.Done():
				return err
			}
		}
	}
}
