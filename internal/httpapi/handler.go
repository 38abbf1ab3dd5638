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
	"net/url"
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
	// AllowHosts are names that Host and Origin may hold beside the loopback
	// names and the address that was connected to.
	AllowHosts []string
	// Tokens knows who may do what. nil = nobody needs a token.
	Tokens *auth.Keeper
	// Guard asks for a filter or all=true before everything is deleted; with
	// tokens it is on anyway.
	Guard bool
	// Profiles answers below /debug/pprof/, for the scope admin. nil = nothing.
	Profiles http.Handler
	// BackoffCount is how `backoff` of an enqueue counts attempts.
	BackoffCount job.Count
	// Retry is the server's policy, which a preview falls back to. Zero = the default.
	Retry job.Retry
	// Metrics counts what is answered and is the page /metrics; nil = neither.
	Metrics Metrics
	// Upkeep makes backups and compacts; nil = nobody does.
	Upkeep Upkeep
	// Grid is what the broker decides about sessions and engines. nil = the default.
	Grid *grid.Config
	// Inboxes are those of the server; nil = it has none.
	Inboxes *inbox.Door
	// Strict refuses bodies with members that their call does not know.
	Strict bool
	// Live can be changed while the handler works; nil = AllowHosts, BackoffCount,
	// Retry and Strict stay as they are. It is filled in from them.
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
	h := &handler{
		engine: o.Engine, log: o.Log, version: o.Version,
		bodyMax: o.BodyMax, inflightMax: o.InflightMax, heartbeat: o.Heartbeat, live: o.Live,
		tokens: o.Tokens, guard: o.Guard, profiles: o.Profiles, metrics: o.Metrics, upkeep: o.Upkeep,
		inboxes: o.Inboxes, began: time.Now(),
	}
	if h.bodyMax <= 0 {
		h.bodyMax = wire.BodyBytesMax
	}
	if h.inflightMax <= 0 {
		h.inflightMax = 256 << 20
	}
	h.inflightMax = max(h.inflightMax, h.bodyMax)
	h.watchBounds = cmp.Or(o.Watch, Watch{16, 10 * time.Second})
	if h.upload = o.Upload; h.upload == (Upload{}) {
		h.upload = Upload{10 * UploadRate, 10 * time.Second}
	}
	if h.grid = grid.DefaultConfig(); o.Grid != nil {
		h.grid = *o.Grid
	}
	if h.streamsMax = int64(o.StreamsMax); h.streamsMax <= 0 {
		h.streamsMax = 1 << 16
	}
	if h.heartbeat <= 0 {
		h.heartbeat = 3 * time.Second
	}
	h.pulse = newPulse(h.heartbeat)
	if h.tokens == nil {
		h.tokens = auth.New(nil, func() job.Millis { return job.Millis(time.Now().UnixMilli()) })
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.live == nil {
		h.live = new(Live)
	}
	h.live.Set(o.AllowHosts, o.BackoffCount, o.Retry, o.Strict)
	if h.put = newNull().put; !o.Null {
		h.put = o.Engine.Put
	}
	return h
}

type handler struct {
	engine  *part.Engine
	put     func(context.Context, []engine.NewJob) ([]engine.Added, error)
	log     *slog.Logger
	version string
	live    *Live

	tokens    *auth.Keeper
	guard     bool
	strangers tally // calls with unknown tokens
	misspelt  unknowns
	profiles  http.Handler

	bodyMax, inflightMax int64
	bodies               space // those in work
	answers              space // pages and deliveries on their way
	upload               Upload
	watchBounds          Watch
	streamsMax           int64
	streams              atomic.Int64 // open takes and long polls
	listeners, watchers  space        // of events, of the lists: see place
	began                time.Time
	heartbeat            time.Duration
	pulse                *pulse
	metrics              Metrics // may be nil
	upkeep               Upkeep  // may be nil
	grid                 grid.Config
	inboxes              *inbox.Door
}

// call serves one method of a resource. id and sub are the variable segments
// of the path, unescaped.
type call func(h *handler, w http.ResponseWriter, r *http.Request, id, sub string)

// allow lists the methods for the header of a 405.
func (res *resource) allow() string {
	var list []string
	for _, m := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut} {
		if res.method(m) != nil {
			list = append(list, m)
		}
	}
	return strings.Join(list, ", ")
}

// resource is a path with its methods.
type resource struct {
	get, post, put, patch, del call
	stream                     bool // negotiates its own format
	waits                      bool // may be long in answering
}

func (res *resource) method(name string) call {
	switch name {
	case http.MethodGet, http.MethodHead:
		return res.get
	case http.MethodPost:
		return res.post
	case http.MethodPut:
		return res.put
	case http.MethodPatch:
		return res.patch
	case http.MethodDelete:
		return res.del
	}
	return nil
}

// fixed are the paths without variable segments. They win over those with.
var fixed = map[string]*resource{
	"/jobs":             {get: (*handler).list, post: (*handler).enqueue, patch: (*handler).patchMany, del: (*handler).removeMany},
	"/jobs/bulk":        {post: (*handler).bulk},
	"/jobs/take":        {get: (*handler).take, stream: true},
	"/jobs/success":     {post: (*handler).successAll},
	"/jobs/cancel":      {post: (*handler).cancelMany},
	"/jobs/count":       {get: (*handler).count},
	"/jobs/settle":      {post: (*handler).settle},
	"/jobs/lease":       {post: (*handler).lease, waits: true},
	"/jobs/extend":      {post: (*handler).extend},
	"/inboxes":          {get: (*handler).listInboxes},
	"/queues":           {get: (*handler).queues},
	"/policies/preview": {get: (*handler).previewPolicy},
	"/dead":             {get: (*handler).dead},
	"/dead/groups":      {get: (*handler).groups},
	"/dead/replay":      {post: (*handler).replayMany},
	"/dead/delete":      {post: (*handler).deleteMany},
	"/dead/export":      {get: (*handler).export, stream: true},
	"/replays":          {get: (*handler).replays},
	"/crons":            {get: (*handler).crons, del: (*handler).deleteCrons},
	"/budgets":          {get: (*handler).budgets, post: (*handler).addBudget},
	"/locks":            {get: (*handler).locks},
	"/jobs/budgets":     {del: (*handler).unbindMany},
	"/audit":            {get: (*handler).audit},
	"/reset":            {post: (*handler).reset},
	"/tokens":           {get: (*handler).listTokens, post: (*handler).makeToken},
	"/events":           {get: (*handler).events, stream: true},
	"/backup":           {post: (*handler).backup, stream: true},
	"/compact":          {post: (*handler).compact, stream: true},
	"/metrics":          {get: (*handler).showMetrics, stream: true},
	"/":                 {get: (*handler).root},
	"/health":           {get: (*handler).health},
	"/ready":            {get: (*handler).ready},
	"/version":          {get: (*handler).versions},
	"/openapi.json":     {get: (*handler).describe},
	"/sessions":         {get: (*handler).sessions, post: (*handler).openSession},
	"/engines":          {get: (*handler).engines, post: (*handler).login},
}

var (
	oneJob   = &resource{get: (*handler).show, patch: (*handler).patch, del: (*handler).remove}
	oneQueue = &resource{get: (*handler).queue, patch: (*handler).setQueue}
	oneError = &resource{get: (*handler).oneError}
	oneDead  = &resource{get: (*handler).showDead, del: (*handler).removeDead}
	again    = &resource{post: (*handler).replayOne}
	group    = &resource{get: (*handler).oneGroup, patch: (*handler).setGroup}
	replay   = &resource{get: (*handler).showReplay, del: (*handler).cancelReplay}
	oneCron  = &resource{get: (*handler).showCron, put: (*handler).setCron, patch: (*handler).patchCron, del: (*handler).deleteCron}
	entries  = &resource{post: (*handler).addCronEntry}
	oneEntry = &resource{get: (*handler).showCronEntry, put: (*handler).setCronEntry, patch: (*handler).pauseCronEntry, del: (*handler).deleteCronEntry}
	runEntry = &resource{post: (*handler).runCronEntry}
	ofJob    = map[string]*resource{
		"success": {post: (*handler).success},
		"failure": {post: (*handler).failure},
		"errors":  {get: (*handler).errors},
		"explain": {get: (*handler).explain},

		"release":  {post: (*handler).releaseJob},
		"cancel":   {post: (*handler).cancelJob},
		"progress": {post: (*handler).progress},
		"budgets":  {put: (*handler).bindAll, del: (*handler).unbindAll},
	}
	ofQueue = map[string]*resource{
		"groups":  {get: (*handler).asides},
		"hold":    {post: (*handler).hold},
		"release": {post: (*handler).release},
		"breaker": {post: (*handler).forceBreaker},
	}
)

// find routes on the raw segments of the path: nothing is cleaned, nothing
// redirected, and an escaped slash is part of its segment.
func find(u *url.URL) (res *resource, id, sub string) {
	path := u.RawPath
	if path == "" { // escaped as usual: Path holds no slash that was escaped
		if res := fixed[u.Path]; res != nil {
			return res, "", ""
		}
		path = u.Path
	}
	seg := strings.Split(path, "/")
	if u.RawPath != "" {
		for i := range seg {
			seg[i], _ = url.PathUnescape(seg[i]) // net/url checked the escapes
		}
	}
	switch {
	case len(seg) < 3 || seg[0] != "" || slices.Contains(seg[1:], ""):
		return nil, "", ""
	case seg[1] == "inboxes":
		return inInboxes(seg)
	case len(seg) == 3 && seg[1] == "jobs":
		return oneJob, seg[2], ""
	case len(seg) == 3 && seg[1] == "queues":
		return oneQueue, seg[2], ""
	case len(seg) == 3 && seg[1] == "dead":
		return oneDead, seg[2], ""
	case len(seg) == 3 && seg[1] == "crons":
		return oneCron, seg[2], ""
	case len(seg) == 4 && seg[1] == "crons" && seg[3] == "entries":
		return entries, seg[2], ""
	case len(seg) == 5 && seg[1] == "crons" && seg[3] == "entries":
		return oneEntry, seg[2], seg[4]
	case len(seg) == 6 && seg[1] == "crons" && seg[3] == "entries" && seg[5] == "run":
		return runEntry, seg[2], seg[4]
	case len(seg) == 3 && seg[1] == "replays":
		return replay, seg[2], ""
	case len(seg) == 3 && seg[1] == "tokens":
		return oneToken, seg[2], ""
	case len(seg) == 4 && seg[1] == "dead" && seg[2] == "groups":
		return group, seg[3], ""
	case len(seg) == 4 && seg[1] == "dead" && seg[3] == "replay":
		return again, seg[2], ""
	case len(seg) == 3 && seg[1] == "locks":
		return oneLock, seg[2], ""
	case len(seg) == 4 && seg[1] == "locks" && seg[3] == "extend":
		return extendLock, seg[2], ""
	case len(seg) == 4 && seg[1] == "locks" && seg[3] == "break":
		return breakLock, seg[2], ""
	case len(seg) == 3 && seg[1] == "budgets":
		return oneBudget, seg[2], ""
	case len(seg) == 4 && seg[1] == "jobs" && seg[2] == "budgets":
		return bindings, seg[3], ""
	case len(seg) == 5 && seg[1] == "jobs" && seg[3] == "budgets":
		return binding, seg[2], seg[4]
	case seg[1] == "sessions" || seg[1] == "engines":
		return findGrid(seg)
	case len(seg) == 4 && seg[1] == "jobs":
		return ofJob[seg[3]], seg[2], ""
	case len(seg) == 4 && seg[1] == "queues":
		return ofQueue[seg[3]], seg[2], ""
	case len(seg) == 5 && seg[1] == "jobs" && seg[3] == "errors":
		return oneError, seg[2], seg[4]
	}
	return nil, "", ""
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.survive(w, r)
	if !h.trusted(r) {
		refuse(w, http.StatusForbidden, wire.CodeForbidden, untrusted)
		return
	}
	res, id, sub := find(r.URL)
	if res == nil && h.profiles != nil && strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
		res = profiles
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
	serve := res.method(r.Method)
	if serve == nil {
		w.Header().Set("Allow", res.allow())
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if !res.stream {
		var ok bool
		if w, ok = negotiate(w, r); !ok {
			return
		}
	}
	if r = h.admit(w, r, res, id); r == nil {
		return
	}
	if res.stream || res.waits {
		defer h.streams.Add(-1)
		if h.streams.Add(1) > h.streamsMax {
			h.problem(w, r, errStreams)
			return
		}
	}
	h.measured(serve, res, w, r, id, sub)
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
