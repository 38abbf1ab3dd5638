package httpapi

import (
	"net/http"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// tryCommit is POST /sessions/{id}/tasks/{task}/try_commit. No is an answer, too.
func (h *handler) tryCommit(w http.ResponseWriter, r *http.Request, session, task string) {
	h.withBody(w, r, func(s *scratch) error {
		var ask wire.TryCommit
		if err := plain(s.Body.Bytes(), &ask, true); err != nil {
			return err
		}
		token, err := job.ParseToken(ask.Lease)
		if err != nil {
			return &job.Error{Kind: job.Invalid, Field: "lease", Text: "lease must be the token of the attempt: " + err.Error()}
		}
		id, err := h.taskID(r.Context(), session, task)
		if err != nil {
			return err
		}
		yes, state, err := h.engine.TryCommit(r.Context(), session, id, token)
		if err != nil {
			return err
		}
		h.sendPlain(w, r, wire.Committed{Committed: yes, State: grid.StateOf(state)}, nil)
		return nil
	})
}
