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

// The classes of calls whose time is measured; streams are not. What is not
// named here is a read if it is a GET, else an operation.
var classes = map[*resource]string{
	fixed["/jobs"]: "enqueue", fixed["/jobs/bulk"]: "enqueue",
	fixed["/jobs/lease"]: "lease", fixed["/jobs/extend"]: "settle",
	allMessages: "enqueue", bulkMessages: "enqueue", inboxLease: "lease",
	fixed["/jobs/settle"]: "settle", fixed["/jobs/success"]: "settle",
	ofJob["success"]: "settle", ofJob["failure"]: "settle",
	fixed["/"]: "health", fixed["/health"]: "health", fixed["/ready"]: "health", fixed["/version"]: "health",
}

func classOf(res *resource, method string) string {
	class := classes[res]
	switch read := method == http.MethodGet || method == http.MethodHead; {
	case class == "health" || class != "" && !read:
		return class
	case read:
		return "read"
	}
	return "operate"
}

// measured runs a call and notes how long it took.
func (h *handler) measured(serve call, res *resource, w http.ResponseWriter, r *http.Request, id, sub string) {
	if h.metrics == nil || res.stream {
		serve(h, w, r, id, sub)
		return
	}
	began := time.Now()
	serve(h, w, r, id, sub)
	h.metrics.Answered(classOf(res, r.Method), time.Since(began))
}

func (h *handler) refused(code string) {
	if h.metrics != nil {
		h.metrics.Refused(code)
	}
}

// showMetrics is GET /metrics, in the text format of Prometheus.
func (h *handler) showMetrics(w http.ResponseWriter, r *http.Request, _, _ string) {
	if h.metrics == nil {
		refuse(w, http.StatusNotFound, wire.CodeNotFound, "this server keeps no metrics")
		return
	}
	h.metrics.ServeHTTP(w, r)
}
