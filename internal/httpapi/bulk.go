package httpapi

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// patchBody reads what shall change. What cannot be about a field is 422 here,
// as Zizq's clients know it.
func (h *handler) patchBody(r *http.Request, s *scratch) (engine.Patch, error) {
	p, err := s.Patch()
	if bad, ok := err.(*job.Error); ok && bad.Field != "" { //nolint:errorlint // made by the reader and never wrapped
		return p, &refusal{http.StatusUnprocessableEntity, wire.CodeInvalid, bad.Text}
	}
	if err == nil && p.Queue != "" {
		err = h.reachQueues(r, "", 1, func(int) string { return p.Queue })
	}
	return p, err
}

// patch is PATCH /jobs/{id}. It answers with the job.
func (h *handler) patch(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		id, err := jobID(text)
		if err != nil {
			return err
		}
		p, err := h.patchBody(r, s)
		if err != nil {
			return err
		}
		v, err := h.engine.Patch(r.Context(), by, id, p)
		if job.KindOf(err) == job.NotFound {
			err = errNoJob
		}
		if err != nil {
			return err
		}
		s.out = jobs.AppendVerdictJob(s.out, id, v)
		send(w, http.StatusOK, s.out)
		return nil
	})
}

// patchMany is PATCH /jobs.
func (h *handler) patchMany(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		q, err := jobs.BulkQuery(r.URL.RawQuery)
		if err == nil {
			err = q.Patchable()
		}
		if err != nil {
			return err
		}
		p, err := h.patchBody(r, s)
		if err != nil {
			return err
		}
		done, err := q.Patch(r.Context(), h.engine, p)
		if err = h.noteBulk(r, by, "patch jobs", q.Subject(), done.Patched, err); err != nil {
			return err
		}
		h.sendPlainAs(w, r, http.StatusOK, done)
		return nil
	})
}

// cancelMany is POST /jobs/cancel.
func (h *handler) cancelMany(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		var body wire.CancelMany
		q, err := jobs.BulkQuery(r.URL.RawQuery)
		if err == nil {
			err = cmp.Or(q.Cancellable(), optional(s, &body))
		}
		if err == nil && !body.DryRun {
			err = h.guarded("cancel", q.All || q.Narrow())
		}
		if err != nil {
			return err
		}
		if body.DryRun {
			s.out, err = q.AppendCancelPreview(r.Context(), s.out, h.engine)
		} else {
			var n int64
			n, err = q.Cancel(r.Context(), h.engine, by, body.Reason)
			err = h.noteBulk(r, by, "cancel jobs", q.Subject(), n, err)
			s.out = append(strconv.AppendInt(append(s.out, `{"cancelled":`...), n, 10), '}')
		}
		if err == nil {
			send(w, http.StatusOK, s.out)
		}
		return err
	})
}

// removeMany is DELETE /jobs.
func (h *handler) removeMany(w http.ResponseWriter, r *http.Request, _, _ string) {
	by, err := actorOf(r)
	var n int64
	if err == nil {
		n, err = h.deleteJobs(r, by)
	}
	h.answer(w, r, err, func(b []byte) []byte { return append(strconv.AppendInt(append(b, `{"deleted":`...), n, 10), '}') })
}

func (h *handler) deleteJobs(r *http.Request, by job.Actor) (int64, error) {
	q, err := jobs.BulkQuery(r.URL.RawQuery)
	if err != nil {
		return 0, err
	}
	if err := h.guarded("delete", q.All || q.Narrow()); err != nil {
		return 0, err
	}
	n, err := q.Delete(r.Context(), h.engine)
	return n, h.noteBulk(r, by, "delete jobs", q.Subject(), n, err)
}

// reset is POST /reset. Its answer has no body at all, and its own is not read.
func (h *handler) reset(w http.ResponseWriter, r *http.Request, _, _ string) {
	by, err := actorOf(r)
	said, bad := jobs.SaidAll(r.URL.RawQuery)
	if err == nil {
		err = bad
	}
	if err == nil {
		err = h.guarded("delete", said)
	}
	if err == nil {
		var n int64
		n, err = h.engine.Reset(r.Context())
		err = h.noteBulk(r, by, "reset", "all", n, err)
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// guarded refuses what would leave nothing, unless it was said or nobody asked
// for a guard. Who uses tokens has asked.
func (h *handler) guarded(what string, said bool) error {
	if said || !h.guard && !h.tokens.Closed() {
		return nil
	}
	return &job.Error{
		Kind: job.Invalid, Field: "all",
		Text: "this server is guarded: to " + what + " everything say ?all=true, or give a filter",
	}
}

// noteBulk keeps in the audit log what a call over many jobs has done, also one
// that was broken off. It returns why it was, if so.
func (h *handler) noteBulk(r *http.Request, by job.Actor, action, subject string, n int64, why error) error {
	if n == 0 {
		return why
	}
	if err := h.engine.Note(r.Context(), by, action, subject, n); err != nil && why == nil {
		return err
	}
	return why
}
