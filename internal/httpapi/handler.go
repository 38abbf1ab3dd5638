// Package httpapi carries the doors over HTTP: it routes, negotiates formats,
// bounds what a request may cost, refuses what a web page could have sent
// (spec/operations.md, Security), and translates errors. What the calls mean
// is the doors' (internal/door/jobs) and the engine's.
//
// It is written to cost little beside net/http: static header values, pooled
// buffers, one write per answer or burst, no reflection on the hot calls.
package httpapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/trust"
	"github.com/reprisehq/reprise/wire"
)

// Options configure the handler.
type Options struct {
	Engine  *part.Engine
	Log     *slog.Logger
	Version string // our own, for GET /version

	// BodyMax bounds the bytes of one request body: above it 413. 0 = wire.BodyBytesMax.
	BodyMax int64
	// InflightMax bounds the bytes of all bodies that are being worked on
	// (max_inflight_bytes): above it an enqueue gets 503, at twice as much
	// every body does, so that settles still free what enqueues hold. It bounds
	// the bytes of all answers on their way as well. At least BodyMax; 0 = 256 MiB.
	InflightMax int64
	// Upload is how fast bodies have to come.
	Upload Upload
	// Watch bounds those who watch, as "zizq top" does; zero = 16 who take what they
	// are sent within 10 s.
	Watch Watch
	// StreamsMax bounds the takes and long polls that are open: above it 503.
	// 0 = 65,536.
	StreamsMax int
	// Heartbeat is the silence on a take before a heartbeat is sent; clients
	// give up after 30 s. 0 = 3 s.
	Heartbeat time.Duration
	// Tokens knows who may do what. nil = nobody needs a token.
	Tokens *auth.Keeper
	// Guard asks for a filter or all=true before everything is deleted; with
	// tokens it is on anyway.
	Guard bool
	// Profiles answers below /debug/pprof/, for the scope admin. nil = nothing.
	Profiles http.Handler
	// Metrics counts what is answered and is the page /metrics; nil = neither.
	Metrics Metrics
	// Upkeep makes backups and compacts; nil = nobody does.
	Upkeep Upkeep
	// Grid is what the broker decides about sessions and engines. nil = the default.
	Grid *grid.Config
	// Inboxes are those of the server; nil = it has none.
	Inboxes *inbox.Door
	// Live is what can change while the handler works; nil = all of it is zero.
	Live *Live
	// Null answers enqueues without an engine: POST /jobs and /jobs/bulk are
	// read, checked and answered as always, and forgotten. The benchmark
	// measures with it what the handler costs by itself.
	Null bool
}

// Watch is how many may watch, and within which time each takes what it is sent.
type Watch struct {
	Most   int64
	Within time.Duration
}

// Upload is how many bytes of a body have to come within a time, again and
// again: else 408. Zero is the default, UploadRate for ten seconds each; negative
// Bytes = any speed.
type Upload struct {
	Bytes  int64
	Within time.Duration
}

// UploadRate is the default of min_upload_rate, in bytes per second.
const UploadRate = 4 << 10

// New returns the handler of the primary listener.
func New(o Options) http.Handler {
	wall := func() job.Millis { return job.Millis(time.Now().UnixMilli()) }
	c := &core{
		engine: o.Engine, guard: o.Guard, metrics: o.Metrics, inboxes: o.Inboxes,
		log:       cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		bodyMax:   cmp.Or(o.BodyMax, wire.BodyBytesMax),
		upload:    cmp.Or(o.Upload, Upload{10 * UploadRate, 10 * time.Second}),
		heartbeat: cmp.Or(o.Heartbeat, 3*time.Second),
		live:      cmp.Or(o.Live, NewLive(Changeable{})),
		tokens:    cmp.Or(o.Tokens, auth.New(nil, wall)),
	}
	c.inflightMax = max(cmp.Or(o.InflightMax, 256<<20), c.bodyMax)
	if c.put = newNull().put; !o.Null {
		c.put = o.Engine.Put
	}
	h := &handler{core: c, list: c.routes(&o), streamsMax: int64(cmp.Or(o.StreamsMax, 1<<16))}
	h.paths = newPaths(h.list)
	if o.Profiles != nil {
		h.profiles = profiles(o.Profiles)
	}
	return h
}

// handler finds what is called, lets in who may call it, and has it served.
type handler struct {
	*core
	list       []route
	paths      *paths
	profiles   *resource // below /debug/pprof/; may be nil
	streamsMax int64
	streams    atomic.Int64 // open takes and long polls
}

// core is what the rooms share: each of them serves the calls of one noun, and
// says which they are.
type core struct {
	engine  *part.Engine
	put     func(context.Context, []engine.NewJob) ([]engine.Added, error)
	inboxes *inbox.Door // may be nil
	log     *slog.Logger
	metrics Metrics // may be nil
	live    *Live

	tokens    *auth.Keeper
	guard     bool
	strangers tally // calls with unknown tokens
	misspelt  unknowns

	bodyMax, inflightMax int64
	bodies               space // those in work
	answers              space // pages and deliveries on their way
	upload               Upload
	listeners, watchers  space // of events, of the lists: see place
	heartbeat            time.Duration
}

// routes lists the calls of all rooms.
func (c *core) routes(o *Options) []route {
	return slices.Concat(
		(&jobRoom{c}).routes(),
		newWorkRoom(c).routes(),
		(&queueRoom{c}).routes(),
		(&deadRoom{c}).routes(),
		(&cronRoom{c}).routes(),
		(&budgetRoom{c}).routes(),
		(&lockRoom{c}).routes(),
		newGridRoom(c, o).routes(),
		(&inboxRoom{c}).routes(),
		(&tokenRoom{c}).routes(),
		newEventRoom(c, o).routes(),
		(&opsRoom{c, o.Version, o.Upkeep}).routes(),
	)
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.survive(w, r)
	if !trust.Trusted(r, h.live.allows) {
		refuse(w, http.StatusForbidden, wire.CodeForbidden, untrusted)
		return
	}
	res, id, sub := h.paths.find(r.URL)
	if res == nil && h.profiles != nil && strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
		res = h.profiles
	}
	if res == nil {
		if w, ok := negotiate(w, r); ok {
			refuse(w, http.StatusNotFound, wire.CodeNotFound, "not found")
		}
		return
	}
	if !utf8.ValidString(r.URL.Path) { // no answer could say it
		refuse(w, http.StatusBadRequest, wire.CodeInvalid, "the path is not UTF-8")
		return
	}
	to := res.method(r.Method)
	if to == nil {
		w.Header().Set("Allow", res.allow())
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if !to.stream {
		var ok bool
		if w, ok = negotiate(w, r); !ok {
			return
		}
	}
	if !actorFits(r) {
		h.problem(w, r, errActor)
		return
	}
	if r = h.admit(w, r, to, id); r == nil {
		return
	}
	if to.stream || to.waits {
		defer h.streams.Add(-1)
		if h.streams.Add(1) > h.streamsMax {
			h.problem(w, r, errStreams)
			return
		}
	}
	h.measured(to, w, r, id, sub)
}

var errStreams = &refusal{http.StatusServiceUnavailable, wire.CodeUnavailable, "too many take streams and long polls are open (max-streams); come back in a moment"}

// survive turns a panic into a 500, or into a broken answer if one has begun:
// each answer sets its type before its first byte.
func (h *handler) survive(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, _ := p.(error); !errors.Is(err, http.ErrAbortHandler) {
		h.log.ErrorContext(r.Context(), "a request handler panicked",
			"method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
		if len(w.Header()["Content-Type"]) == 0 {
			refuse(w, http.StatusInternalServerError, wire.CodeInternal, "internal server error")
			return
		}
	}
	panic(http.ErrAbortHandler)
}
