package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// Header values are shared by all answers; net/http only reads them.
var (
	typeJSON   = []string{mediaJSON}
	typeNDJSON = []string{mediaNDJSON}
	retryAfter = []string{"1"} // seconds
)

const (
	// Up to lengthSelf bytes net/http counts a body itself (h2: up to 4096),
	// without the memory that a header of ours costs.
	lengthSelf = 2048
	// From slowBytes on an answer may have to wait for its reader, but not for
	// ever.
	slowBytes = 64 << 10
	writeMax  = 30 * time.Second
)

// send answers with a body of JSON, in the format that was negotiated.
func send(w http.ResponseWriter, status int, body []byte) {
	if p, ok := w.(packing); ok {
		p.send(status, body)
		return
	}
	sendAs(w, status, typeJSON, body)
}

func sendAs(w http.ResponseWriter, status int, media []string, body []byte) {
	head := w.Header()
	head["Content-Type"] = media
	if len(body) > lengthSelf {
		head["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	if len(body) > slowBytes {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * writeMax))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left gets no answer
}

// refusal is a refusal that is about HTTP itself.
type refusal struct {
	status int
	code   string
	text   string
}

func (e *refusal) Error() string { return e.text }

// errMedia refuses a body whose format is not known here.
var errMedia = &refusal{http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia, "unsupported media type"}

func refuse(w http.ResponseWriter, status int, code, text string) {
	send(w, status, jobs.AppendError(nil, code, text))
}

// refuseFormat answers 406 and 415, always as JSON.
func refuseFormat(w http.ResponseWriter, status int, code, text, supported string) {
	sendAs(w, status, typeJSON, []byte(`{"error":"`+text+`","supported":[`+supported+`],"code":"`+code+`"}`))
}

func notAcceptable(w http.ResponseWriter, supported string) {
	refuseFormat(w, http.StatusNotAcceptable, wire.CodeNotAcceptable, "not acceptable", supported)
}

// problem answers with an error. Workers are never told 429: on their calls a
// client takes a 4xx as final.
func (h *core) problem(w http.ResponseWriter, r *http.Request, err error) {
	fault, text := jobs.FaultOf(err), jobs.TextOf(err)
	status, code := fault.Status, fault.Code
	if own, ok := err.(*refusal); ok { //nolint:errorlint // made here and never wrapped
		status, code, text = own.status, own.code, own.text
	}
	h.refused(code)
	switch status {
	case http.StatusUnsupportedMediaType:
		refuseFormat(w, status, code, text, supported)
		return
	case http.StatusInternalServerError:
		h.log.ErrorContext(r.Context(), "a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	case http.StatusRequestTimeout:
		if !mayHear429(r) { // what a worker says must be said again
			status, code = http.StatusServiceUnavailable, wire.CodeUnavailable
			w.Header()["Retry-After"] = retryAfter
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header()["Retry-After"] = retryAfter
		if !mayHear429(r) {
			status = http.StatusServiceUnavailable
		}
	}
	refuse(w, status, code, text)
}

// mayHear429 holds for calls that no worker sends, to which 408 and 429 are final.
func mayHear429(r *http.Request) bool {
	if isEnqueue(r) || r.Method == http.MethodPatch || r.Method == http.MethodPut {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return r.Method == http.MethodPost && slices.Contains(operators, first)
}

// operators have these resources to themselves, together with producers.
var operators = []string{"budgets", "crons", "dead", "queues", "sessions", "tokens"}

func isEnqueue(r *http.Request) bool {
	return r.Method == http.MethodPost && (r.URL.Path == "/jobs" || r.URL.Path == "/jobs/bulk" || strings.HasPrefix(r.URL.Path, "/inboxes/") && strings.Contains(r.URL.Path, "/messages"))
}

// errNoJob is what Zizq says of a job that does not exist.
var errNoJob = job.Errorf(job.NotFound, "job not found")

// jobID reads the id of a path. What cannot be one is not found.
func jobID(s string) (job.ID, error) {
	id, err := job.ParseID(s)
	if err != nil {
		return id, errNoJob
	}
	return id, nil
}
