package httpapi

import (
	"net/http"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/wire"
)

// opsRoom serves what is about the server as a whole.
type opsRoom struct {
	*core
	version string // our own
	upkeep  Upkeep // may be nil
}

func (h *opsRoom) routes() []route {
	return []route{
		get("/", anybody, noQueue, h.bare(h.root)).as("health"),
		get("/health", public, noQueue, h.bare(h.health)).as("health"),
		get("/ready", public, noQueue, endpoint{serve: h.ready}).as("health"),
		get("/version", anybody, noQueue, h.bare(h.versions)).as("health"),
		get("/openapi.json", anybody, noQueue, h.bare(h.describe)),
		get("/metrics", reads, wholeServer, endpoint{serve: h.metricsPage}).streaming(),
		get("/audit", reads, wholeServer, h.bare(h.audit)),
		post("/reset", admins, wholeServer, h.bare(h.reset)),
		post("/backup", admins, wholeServer, endpoint{serve: h.backup}).streaming(),
		post("/compact", operates, wholeServer, endpoint{serve: h.compact}).streaming(),
	}
}

// fixed is an answer that is always the same.
func fixed(text string) appended { return func(b []byte) []byte { return append(b, text...) } }

// root tells who came with a browser, or to the wrong port, what this is.
func (h *opsRoom) root(*call) (any, error) {
	return fixed(`{"product":"reprise","what":"a durable work queue","look_at":["/openapi.json","/version","/health","/ready","/queues","/jobs","/dead","/metrics"],"command_line":"reprise --help"}`), nil
}

func (h *opsRoom) health(*call) (any, error) { return fixed(`{"status":"ok"}`), nil }

// ready tells whether work is taken in; why not is in the error.
func (h *opsRoom) ready(w http.ResponseWriter, _ *http.Request, _, _ string) {
	if err := h.engine.Ready(); err != nil {
		w.Header()["Retry-After"] = retryAfter
		refuse(w, http.StatusServiceUnavailable, wire.CodeUnavailable, jobs.TextOf(err))
		return
	}
	send(w, http.StatusOK, []byte(`{"status":"ready"}`))
}

// zizqVersion is what Zizq's clients check: the minor whose calls we have.
const zizqVersion = "0.7.0"

func (h *opsRoom) versions(*call) (any, error) {
	return wire.Version{Version: zizqVersion, Product: "reprise", Reprise: h.version}, nil
}

// describe is GET /openapi.json.
func (h *opsRoom) describe(*call) (any, error) {
	return appended(func(b []byte) []byte { return append(b, openapi()...) }), nil
}

// audit is GET /audit.
func (h *opsRoom) audit(c *call) (any, error) {
	before, limit, err := jobs.LogQuery(c.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	list, err := h.engine.Audit.List(c.Context(), before, limit+1)
	out := wire.Audit{Entries: []wire.AuditEntry{}}
	for _, a := range list[:min(limit, len(list))] {
		out.Entries = append(out.Entries, jobs.AuditOf(a))
	}
	if len(list) > limit {
		out.Next = c.following("from", list[limit-1].ID.String())
	}
	return out, err
}

// reset is POST /reset. Its answer has no body at all, and its own is not read.
func (h *opsRoom) reset(c *call) (any, error) {
	if err := h.guardedAll(c); err != nil {
		return nil, err
	}
	n, err := h.engine.Desk.Reset(c.Context())
	return nil, h.noteBulk(c, "reset", "all", n, err)
}

// profiles are those of the Go runtime.
func profiles(by http.Handler) *resource {
	serve := endpoint{serve: func(w http.ResponseWriter, r *http.Request, _, _ string) { by.ServeHTTP(w, r) }}
	read, send := get("/debug/pprof/", admins, wholeServer, serve).streaming(), post("/debug/pprof/", admins, wholeServer, serve).streaming()
	return &resource{&read, &send}
}
