package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/wire"
)

// Bounds of watching.
const (
	watchEvery   = 250 * time.Millisecond // a look at what is watched
	watchBeat    = 2 * time.Second        // as Zizq has it
	watchAskMax  = 64 << 10               // bytes of one message
	watchAsksMax = 16                     // messages that wait
)

// upgrades reports whether the request asks for a WebSocket.
func upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// watch is GET /events as a WebSocket: what Zizq's admin API tells `zizq top`. It
// costs nothing while nobody watches: what changed is found by a look at the lists a
// few times a second.
func (h *eventRoom) watch(w http.ResponseWriter, r *http.Request) {
	leave, err := h.place(&h.watchers, r, h.bounds.Most, "watch the lists of jobs")
	if err != nil {
		h.problem(w, r, err)
		return
	}
	defer leave()
	by := actorOf(r)
	// Where the request comes from was looked at for every call (trusted).
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // it has answered
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(watchAskMax)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	v := &watcher{h: h, c: c, by: by, mayDelete: h.mayOperate(r), asks: make(chan *jobs.TopAsk, watchAsksMax)}
	v.top = jobs.NewTop(h.engine, zizqVersion, func() time.Duration { return time.Since(h.began) })
	go v.read(ctx, cancel)
	if err := v.run(ctx); err != nil && ctx.Err() == nil {
		_ = c.Close(websocket.StatusGoingAway, shortReason(err))
	}
}

// Admin is the handler of Zizq's admin listener: these calls and no other, as the
// handler of New answers them.
func Admin(all http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events", "/backup", "/compact":
			all.ServeHTTP(w, r)
		default:
			refuse(w, http.StatusNotFound, wire.CodeNotFound, "not found: the admin listener has GET /events, POST /backup and POST /compact")
		}
	})
}

// mayOperate reports whether who sends the request may change jobs.
func (h *eventRoom) mayOperate(r *http.Request) bool {
	g := h.grantOf(r)
	return g == nil || g.Scopes.Allows(operates)
}

// watcher is one connection that watches.
type watcher struct {
	h         *eventRoom
	c         *websocket.Conn
	top       *jobs.Top
	by        job.Actor
	mayDelete bool
	asks      chan *jobs.TopAsk
}

// read passes on what the client asks for, until it is gone. What cannot be read
// ends the connection with the reason.
func (v *watcher) read(ctx context.Context, cancel func()) {
	defer cancel()
	for {
		_, text, err := v.c.Read(ctx)
		if err != nil {
			return
		}
		ask, err := jobs.ReadTopAsk(text)
		if err != nil {
			_ = v.c.Close(websocket.StatusPolicyViolation, shortReason(err))
			return
		}
		select {
		case v.asks <- ask:
		case <-ctx.Done():
			return
		}
	}
}

// shortReason is what fits a frame that closes.
func shortReason(err error) string {
	const most = 120
	text := jobs.TextOf(err)
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// run sends what changes, until something is wrong.
func (v *watcher) run(ctx context.Context) error {
	look, beat := time.NewTicker(watchEvery), time.NewTicker(watchBeat)
	defer look.Stop()
	defer beat.Stop()
	frames, err := v.top.Look(ctx)
	for err == nil {
		if err = v.send(ctx, frames...); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			frames, err = v.top.Look(ctx)
		case <-beat.C:
			frames = [][]byte{v.top.Heartbeat()}
		case ask := <-v.asks:
			if ask.Type == jobs.TopDelete {
				v.delete(ctx, ask.Job())
			}
			frames, err = v.top.Heard(ctx, ask)
		}
	}
	return err
}

// delete has no answer but what is seen of it.
func (v *watcher) delete(ctx context.Context, id job.ID) {
	err := error(forbiddenDelete)
	if v.mayDelete {
		_, err = v.h.engine.Desk.Do(ctx, v.by, desk.Delete, id)
	}
	if err != nil {
		v.h.log.InfoContext(ctx, "a watcher's job was not deleted", "id", id.String(), "by", v.by.Name, "from", v.by.From, "error", err)
	}
}

var forbiddenDelete = &refusal{http.StatusForbidden, wire.CodeForbidden, "the token lacks the scope operate"}

func (v *watcher) send(ctx context.Context, frames ...[]byte) error {
	for _, f := range frames {
		limit, cancel := context.WithTimeout(ctx, v.h.bounds.Within)
		err := v.c.Write(limit, websocket.MessageText, f)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}
