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
func (h *workRoom) progress(c *call, body *wire.ReportProgress) (any, error) {
	id, err := jobID(c.id)
	if err != nil {
		return nil, err
	}
	token, err := job.ParseToken(body.Lease)
	if err != nil {
		return nil, bodyFault("lease", "is no token: "+err.Error())
	}
	told, err := jobs.ProgressOf("progress", &body.Progress)
	if err = cmp.Or(err, jobs.Within("ms", body.MS, 0, int64(job.Day))); err != nil {
		return nil, err
	}
	verdicts, err := h.engine.Extend(c.Context(), []engine.Extension{
		{ID: id, Token: token, For: job.Millis(body.MS), Started: true, Progress: told},
	})
	if err == nil && len(verdicts) > 0 {
		err = verdicts[0].Err
	}
	return nil, err
}

// release is POST /jobs/{id}/release: the attempt ends without blame. It
// answers with the job.
func (h *workRoom) release(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.ends(w, r, text, func(s *scratch, id job.ID) (engine.Settle, error) { return s.Release(id) })
}
