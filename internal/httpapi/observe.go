package httpapi

import (
	"net/http"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// Metrics counts what is answered, and shows it (internal/metrics).
type Metrics interface {
	http.Handler
	// Answered notes how long a call took, Refused the code of an error.
	Answered(class string, took time.Duration)
	Refused(code string)
}

// measured runs a call and notes how long it took.
func (h *handler) measured(to *route, w http.ResponseWriter, r *http.Request, id, sub string) {
	if h.metrics == nil || to.stream {
		to.serve(w, r, id, sub)
		return
	}
	began := time.Now()
	to.serve(w, r, id, sub)
	h.metrics.Answered(to.measure(), time.Since(began))
}

func (h *core) refused(code string) {
	if h.metrics != nil {
		h.metrics.Refused(code)
	}
}

// metricsPage is GET /metrics, in the text format of Prometheus.
func (h *opsRoom) metricsPage(w http.ResponseWriter, r *http.Request, _, _ string) {
	if h.metrics == nil {
		refuse(w, http.StatusNotFound, wire.CodeNotFound, "this server keeps no metrics")
		return
	}
	h.metrics.ServeHTTP(w, r)
}
