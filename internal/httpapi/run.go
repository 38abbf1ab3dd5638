package httpapi

import (
	"cmp"
	"net/http"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// progress is POST /jobs/{id}/progress: a heartbeat that tells something. That
// the job was cancelled, or given to another, a worker learns from its refusal.
func (h *handler) progress(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		var body wire.ReportProgress
		if err := lenient(s, &body); err != nil {
			return err
		}
		id, bad := jobID(text)
		if bad != nil {
			return bad
		}
		token, bad := job.ParseToken(body.Lease)
		if bad != nil {
			return &job.Error{Kind: job.Invalid, Field: "lease", Text: "lease is no token: " + bad.Error()}
		}
		told, bad := jobs.ProgressOf(&body.Progress)
		if err := cmp.Or(bad, within("ms", body.MS, 0, int64(job.Day))); err != nil {
			return err
		}
		verdicts, err := h.engine.Extend(r.Context(), []engine.Extension{
			{ID: id, Token: token, For: job.Millis(body.MS), Started: true, Progress: told},
		})
		if err = cmp.Or(err, first(verdicts)); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// first is the refusal of the first entry.
func first(list []engine.Verdict) error {
	if len(list) == 0 {
		return nil
	}
	return list[0].Err
}

// cancelJob is POST /jobs/{id}/cancel. It answers with the job as it died.
func (h *handler) cancelJob(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		var body wire.Cancel
		id, err := jobID(text)
		if err = cmp.Or(err, optional(s, &body)); err != nil {
			return err
		}
		verdict, err := h.engine.Cancel(r.Context(), by, id, body.Reason)
		if err != nil {
			return err
		}
		s.out = jobs.AppendVerdictJob(s.out, id, verdict)
		send(w, http.StatusOK, s.out)
		return nil
	})
}

// releaseJob is POST /jobs/{id}/release: the attempt ends without blame. It
// answers with the job.
func (h *handler) releaseJob(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.ends(w, r, text, func(s *scratch, id job.ID) (engine.Settle, error) { return s.Release(id) })
}
