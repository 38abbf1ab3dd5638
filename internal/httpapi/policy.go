package httpapi

import (
	"net/http"
	"net/url"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/policy"
)

// previewPolicy is GET /policies/preview. What the query leaves open is the
// server's own policy.
func (h *handler) previewPolicy(w http.ResponseWriter, r *http.Request, _, _ string) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		h.problem(w, r, job.Errorf(job.Invalid, "invalid query parameters: a character is not escaped as it must be"))
		return
	}
	p, rows, err := policy.Read(values, "")
	if err != nil {
		h.problem(w, r, err)
		return
	}
	h.sendPlain(w, r, policy.Of(p.Over(h.live.now.Load().retry), rows), nil)
}
