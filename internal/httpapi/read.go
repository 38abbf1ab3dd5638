package httpapi

import (
	"strconv"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/wire"
)

// jobRoom serves what producers and operators do with jobs.
type jobRoom struct{ *core }

func (h *jobRoom) routes() []route {
	return []route{
		get("/jobs", reads, queryQueues, h.bare(h.list)),
		post("/jobs", enqueues, handlerAsks, endpoint{serve: h.enqueue}).as("enqueue"),
		patch("/jobs", operates, queryQueues, h.raw(h.patchMany)),
		del("/jobs", operates, queryQueues, h.bare(h.removeMany)),
		post("/jobs/bulk", enqueues, handlerAsks, endpoint{serve: h.bulk}).as("enqueue"),
		post("/jobs/cancel", operates, queryQueues, optionally(h.core, h.cancelMany)),
		get("/jobs/count", reads, queryQueues, h.bare(h.count)),
		get("/jobs/{id}", reads, pathJob, h.bare(ofJob(h.show))),
		patch("/jobs/{id}", operates, pathJob, h.raw(ofJob(h.patchOne))),
		del("/jobs/{id}", operates, pathJob, h.bare(ofJob(h.remove))),
		get("/jobs/{id}/errors", reads, pathJob, h.bare(h.errors)),
		get("/jobs/{id}/errors/{attempt}", reads, pathJob, h.bare(ofJob(h.oneError))),
		get("/jobs/{id}/explain", reads, pathJob, h.bare(ofJob(h.explain))),
		post("/jobs/{id}/cancel", operates, pathJob, optionally(h.core, h.cancel)),
	}
}

// noJob is an error of a call on one job. That there is none is said in Zizq's
// words.
func noJob(err error) error {
	if job.KindOf(err) == job.NotFound {
		return errNoJob
	}
	return err
}

// show is GET /jobs/{id}.
func (h *jobRoom) show(c *call, id job.ID) (any, error) {
	var found query.Listed
	var err error
	if found.Job, found.Payload, err = h.engine.Get(c.Context(), id); err != nil {
		return nil, noJob(err)
	}
	result, err := h.engine.Result(found.Job)
	if err != nil {
		return nil, noJob(err)
	}
	found = jobs.Waiting(c.Context(), h.engine, []query.Listed{found})[0]
	return appended(func(b []byte) []byte { return jobs.AppendWhole(b, found, result) }), nil
}

// remove is DELETE /jobs/{id}, in any state. Its answer has no body at all.
func (h *jobRoom) remove(c *call, id job.ID) (any, error) {
	_, err := h.engine.Desk.Do(c.Context(), c.by, desk.Delete, id)
	return nil, noJob(err)
}

// list is GET /jobs.
func (h *jobRoom) list(c *call) (any, error) {
	q, err := jobs.ListQuery(c.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	rows, err := q.Find(c.Context(), h.engine, c.room.take)
	return appended(func(b []byte) []byte { return q.AppendList(b, rows) }), noJob(err)
}

// count is GET /jobs/count.
func (h *jobRoom) count(c *call) (any, error) {
	q, err := jobs.CountQuery(c.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	n, err := q.Count(c.Context(), h.engine)
	return wire.Count{Count: n}, noJob(err)
}

// errors is GET /jobs/{id}/errors.
func (h *jobRoom) errors(c *call) (any, error) {
	id, unknown := jobID(c.id)
	q, err := jobs.ErrorsQuery(id, c.URL.RawQuery)
	if err == nil {
		err = unknown
	}
	if err != nil {
		return nil, err
	}
	rows, err := q.Failures(c.Context(), h.engine, id, c.room.take)
	return appended(func(b []byte) []byte { return q.AppendErrors(b, rows) }), noJob(err)
}

// oneError is GET /jobs/{id}/errors/{attempt}.
func (h *jobRoom) oneError(c *call, id job.ID) (any, error) {
	n, err := strconv.ParseUint(c.sub, 10, 32)
	if err != nil {
		return nil, job.Errorf(job.Invalid, "the number of the attempt must be a whole number")
	}
	rows, err := h.engine.Failures(c.Context(), id, uint32(max(n, 1)-1), false, 1)
	switch {
	case err != nil:
		return nil, noJob(err)
	case len(rows) == 0 || uint64(rows[0].Number) != n:
		return nil, job.Errorf(job.NotFound, "error record not found")
	}
	return appended(func(b []byte) []byte { return jobs.AppendFailure(b, rows[0]) }), nil
}

// explain is GET /jobs/{id}/explain.
func (h *jobRoom) explain(c *call, id job.ID) (any, error) {
	e, err := h.engine.Explain(c.Context(), id)
	if err != nil {
		return nil, noJob(err)
	}
	return h.explained(e), nil
}

// explained tells of a job in the words of the door that it came in by.
func (h *core) explained(e query.Explanation) jobs.Explained {
	if e.Job.Door == job.DoorGrid {
		return jobs.Explain(e, h.engine.Now(), grid.Why)
	}
	if h.inboxes != nil && h.inboxes.Get(e.Job.Queue) != nil {
		return jobs.Explain(e, h.engine.Now(), h.inboxes.Why)
	}
	return jobs.Explain(e, h.engine.Now(), nil)
}
