package httpapi

import (
	"net/url"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/policy"
)

// previewPolicy is GET /policies/preview. What the query leaves open is the
// server's own policy.
func (h *queueRoom) previewPolicy(c *call) (any, error) {
	values, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		return nil, job.Errorf(job.Invalid, "invalid query parameters: a character is not escaped as it must be")
	}
	p, rows, err := policy.Read(values, "")
	if err != nil {
		return nil, err
	}
	return policy.Of(p.Over(h.live.now.Load().Retry), rows), nil
}
