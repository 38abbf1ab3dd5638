package httpapi

import (
	"net/http"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/wire"
)

// patchBody reads what shall change. What cannot be about a field is 422 here,
// as Zizq's clients know it.
func (h *jobRoom) patchBody(c *call) (desk.Patch, error) {
	p, err := jobs.ReadPatch(c.s.Body.Bytes(), c.s.Count, c.s.Unknown)
	if bad, ok := err.(*job.Error); ok && bad.Field != "" { //nolint:errorlint // made by the reader and never wrapped
		return p, &refusal{http.StatusUnprocessableEntity, wire.CodeInvalid, bad.Text}
	}
	if err == nil && p.Queue != "" {
		err = h.reachQueues(c.Request, "", 1, func(int) string { return p.Queue })
	}
	return p, err
}

// patchOne is PATCH /jobs/{id}. It answers with the job.
func (h *jobRoom) patchOne(c *call, id job.ID) (any, error) {
	p, err := h.patchBody(c)
	if err != nil {
		return nil, err
	}
	v, err := h.engine.Desk.Do(c.Context(), c.by, p.Verb(), id)
	return verdictJob(id, v), noJob(err)
}

// verdictJob answers with the job of a verdict.
func verdictJob(id job.ID, v engine.Verdict) appended {
	return func(b []byte) []byte { return jobs.AppendVerdictJob(b, id, v) }
}

// patchMany is PATCH /jobs.
func (h *jobRoom) patchMany(c *call) (any, error) {
	q, err := jobs.BulkQuery(c.URL.RawQuery)
	if err == nil {
		err = q.Patchable()
	}
	if err != nil {
		return nil, err
	}
	p, err := h.patchBody(c)
	if err != nil {
		return nil, err
	}
	done, err := q.Patch(c.Context(), h.engine, p)
	return done, h.noteBulk(c, "patch jobs", q.Subject(), done.Patched, err)
}

// cancel is POST /jobs/{id}/cancel. It answers with the job as it died.
func (h *jobRoom) cancel(c *call, body *wire.Cancel) (any, error) {
	id, err := jobID(c.id)
	if err != nil {
		return nil, err
	}
	verdict, err := h.engine.Desk.Do(c.Context(), c.by, desk.Cancel(c.by, body.Reason), id)
	return verdictJob(id, verdict), err
}

// cancelMany is POST /jobs/cancel.
func (h *jobRoom) cancelMany(c *call, body *wire.CancelMany) (any, error) {
	q, err := jobs.BulkQuery(c.URL.RawQuery)
	if err == nil {
		err = q.Cancellable()
	}
	if err == nil && !body.DryRun {
		err = h.guarded("cancel", q.All || q.Narrow())
	}
	if err != nil {
		return nil, err
	}
	if body.DryRun {
		b, err := q.AppendCancelPreview(c.Context(), nil, h.engine)
		return appended(func([]byte) []byte { return b }), err
	}
	n, err := q.Cancel(c.Context(), h.engine, c.by, body.Reason)
	return wire.Cancelled{Cancelled: n}, h.noteBulk(c, "cancel jobs", q.Subject(), n, err)
}

// removeMany is DELETE /jobs.
func (h *jobRoom) removeMany(c *call) (any, error) {
	q, err := jobs.BulkQuery(c.URL.RawQuery)
	if err == nil {
		err = h.guarded("delete", q.All || q.Narrow())
	}
	if err != nil {
		return nil, err
	}
	n, err := q.Delete(c.Context(), h.engine)
	return wire.Deleted{Deleted: n}, noJob(h.noteBulk(c, "delete jobs", q.Subject(), n, err))
}

// guarded refuses what would leave nothing, unless it was said or nobody asked
// for a guard. Who uses tokens has asked.
func (h *core) guarded(what string, said bool) error {
	if said || !h.guard && !h.tokens.Closed() {
		return nil
	}
	return &job.Error{
		Kind: job.Invalid, Field: "all",
		Text: "this server is guarded: to " + what + " everything say ?all=true, or give a filter",
	}
}

// guardedAll refuses to delete everything without ?all=true.
func (h *core) guardedAll(c *call) error {
	said, err := jobs.SaidAll(c.URL.RawQuery)
	if err == nil {
		err = h.guarded("delete", said)
	}
	return err
}

// noteBulk keeps in the audit log what a call over many jobs has done, also one
// that was broken off. It returns why it was, if so.
func (h *core) noteBulk(c *call, action, subject string, n int64, why error) error {
	if n == 0 {
		return why
	}
	if err := h.engine.Audit.Note(c.Context(), c.by, action, subject, n); err != nil && why == nil {
		return err
	}
	return why
}
