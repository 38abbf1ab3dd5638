package httpapi

import (
	"net/http"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// carryTrace gives the caller's trace context, the header traceparent, to each
// job that has none of its own. One that is not valid is ignored, as the
// recommendation of the W3C says, and so are several.
func carryTrace(r *http.Request, list []engine.NewJob) {
	header := r.Header["Traceparent"]
	if len(header) != 1 {
		return
	}
	text := job.CarriedTraceparent(header[0])
	if text == "" {
		return
	}
	for i := range list {
		switch j := &list[i].Job; {
		case j.Extras == nil:
			j.Extras = &job.Extras{Traceparent: text}
		case j.Extras.Traceparent == "":
			j.Extras.Traceparent = text
		}
	}
}
