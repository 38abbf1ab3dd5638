package httpapi

import (
	"net/http"
	"strconv"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// answer sends what a call without a body found out.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, err error, body func(b []byte) []byte) {
	if err != nil {
		if job.KindOf(err) == job.NotFound && err != errNoRecord { //nolint:errorlint // made here and never wrapped
			err = errNoJob
		}
		h.problem(w, r, err)
		return
	}
	s := scratches.Get().(*scratch)
	defer s.release(false)
	s.out = body(s.out)
	send(w, http.StatusOK, s.out)
}

// show is GET /jobs/{id}.
func (h *handler) show(w http.ResponseWriter, r *http.Request, text, _ string) {
	id, err := jobID(text)
	var found engine.Listed
	if err == nil {
		found.Job, found.Payload, err = h.engine.Get(r.Context(), id)
	}
	var result []byte
	if err == nil {
		result, err = h.engine.Result(found.Job)
	}
	if err == nil {
		found = jobs.Waiting(r.Context(), h.engine, []engine.Listed{found})[0]
	}
	h.answer(w, r, err, func(b []byte) []byte { return jobs.AppendWhole(b, found, result) })
}

// remove is DELETE /jobs/{id}, in any state. Its answer has no body at all.
func (h *handler) remove(w http.ResponseWriter, r *http.Request, text, _ string) {
	by, err := actorOf(r)
	id, bad := jobID(text)
	if err == nil {
		err = bad
	}
	if err == nil {
		err = h.engine.Delete(r.Context(), id, by)
	}
	if err != nil {
		h.answer(w, r, err, nil)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// list is GET /jobs.
func (h *handler) list(w http.ResponseWriter, r *http.Request, _, _ string) {
	q, err := jobs.ListQuery(r.URL.RawQuery)
	room := h.room(r)
	defer room.leave()
	var rows jobs.Found[engine.Listed]
	if err == nil {
		rows, err = q.Find(r.Context(), h.engine, room.take)
	}
	h.answer(w, r, err, func(b []byte) []byte { return q.AppendList(b, rows) })
}

// count is GET /jobs/count.
func (h *handler) count(w http.ResponseWriter, r *http.Request, _, _ string) {
	q, err := jobs.CountQuery(r.URL.RawQuery)
	n := int64(0)
	if err == nil {
		n, err = q.Count(r.Context(), h.engine)
	}
	h.answer(w, r, err, func(b []byte) []byte { return append(strconv.AppendInt(append(b, `{"count":`...), n, 10), '}') })
}

// errors is GET /jobs/{id}/errors.
func (h *handler) errors(w http.ResponseWriter, r *http.Request, text, _ string) {
	id, err := jobID(text)
	q, bad := jobs.ErrorsQuery(id, r.URL.RawQuery)
	if bad != nil {
		err = bad
	}
	room := h.room(r)
	defer room.leave()
	var rows jobs.Found[job.Failure]
	if err == nil {
		rows, err = q.Failures(r.Context(), h.engine, id, room.take)
	}
	h.answer(w, r, err, func(b []byte) []byte { return q.AppendErrors(b, rows) })
}

var errNoRecord = job.Errorf(job.NotFound, "error record not found")

// oneError is GET /jobs/{id}/errors/{attempt}.
func (h *handler) oneError(w http.ResponseWriter, r *http.Request, text, number string) {
	id, err := jobID(text)
	n, bad := strconv.ParseUint(number, 10, 32)
	if bad != nil {
		err = job.Errorf(job.Invalid, "the number of the attempt must be a whole number")
	}
	var rows []job.Failure
	if err == nil {
		rows, err = h.engine.Failures(r.Context(), id, uint32(max(n, 1)-1), false, 1)
	}
	if err == nil && (len(rows) == 0 || uint64(rows[0].Number) != n) {
		err = errNoRecord
	}
	h.answer(w, r, err, func(b []byte) []byte { return jobs.AppendFailure(b, rows[0]) })
}

func (h *handler) health(w http.ResponseWriter, _ *http.Request, _, _ string) {
	send(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// root tells who came with a browser, or to the wrong port, what this is.
func (h *handler) root(w http.ResponseWriter, _ *http.Request, _, _ string) {
	send(w, http.StatusOK, []byte(`{"product":"reprise","what":"a durable work queue","look_at":["/openapi.json","/version","/health","/ready","/queues","/jobs","/dead","/metrics"],"command_line":"reprise --help"}`))
}

// ready tells whether work is taken in; why not is in the error.
func (h *handler) ready(w http.ResponseWriter, r *http.Request, _, _ string) {
	if err := h.engine.Ready(); err != nil {
		w.Header()["Retry-After"] = retryAfter
		refuse(w, http.StatusServiceUnavailable, wire.CodeUnavailable, jobs.TextOf(err))
		return
	}
	send(w, http.StatusOK, []byte(`{"status":"ready"}`))
}

// zizqVersion is what Zizq's clients check: the minor whose calls we have.
const zizqVersion = "0.7.0"

func (h *handler) versions(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.sendPlain(w, r, wire.Version{Version: zizqVersion, Product: "reprise", Reprise: h.version}, nil)
}
