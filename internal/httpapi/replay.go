package httpapi

import (
	"net/http"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// replays is GET /replays.
func (h *handler) replays(w http.ResponseWriter, r *http.Request, _, _ string) {
	before, limit, err := jobs.LogQuery(r.URL.RawQuery)
	var list []*job.Replay
	if err == nil {
		list, err = h.engine.Dead.Replays(r.Context(), before, limit+1)
	}
	out := wire.Replays{Replays: []wire.Replay{}}
	for _, p := range list[:min(limit, len(list))] {
		out.Replays = append(out.Replays, jobs.ReplayOf(p))
	}
	if len(list) > limit {
		out.Next = following(r, "from", list[limit-1].ID.String())
	}
	h.sendPlain(w, r, out, err)
}

var errNoReplay = job.Errorf(job.NotFound, "replay not found")

// showReplay is GET /replays/{id}.
func (h *handler) showReplay(w http.ResponseWriter, r *http.Request, text, _ string) {
	id, err := job.ParseID(text)
	if err != nil {
		h.problem(w, r, errNoReplay)
		return
	}
	p, err := h.engine.Dead.Replay(r.Context(), id)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	h.sendPlain(w, r, jobs.ReplayOf(p), nil)
}

// cancelReplay is DELETE /replays/{id}.
func (h *handler) cancelReplay(w http.ResponseWriter, r *http.Request, text, _ string) {
	by, err := actorOf(r)
	id, bad := job.ParseID(text)
	if err == nil && bad != nil {
		err = errNoReplay
	}
	var p *job.Replay
	if err == nil {
		p, err = h.engine.Dead.CancelReplay(r.Context(), id, by)
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	h.sendPlain(w, r, jobs.ReplayOf(p), nil)
}

// audit is GET /audit.
func (h *handler) audit(w http.ResponseWriter, r *http.Request, _, _ string) {
	before, limit, err := jobs.LogQuery(r.URL.RawQuery)
	var list []*job.Audit
	if err == nil {
		list, err = h.engine.Audits(r.Context(), before, limit+1)
	}
	out := wire.Audit{Entries: []wire.AuditEntry{}}
	for _, a := range list[:min(limit, len(list))] {
		out.Entries = append(out.Entries, jobs.AuditOf(a))
	}
	if len(list) > limit {
		out.Next = following(r, "from", list[limit-1].ID.String())
	}
	h.sendPlain(w, r, out, err)
}
