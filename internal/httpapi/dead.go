package httpapi

import (
	"net/http"
	"strconv"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/wire"
)

// deadRoom serves the dead set and the runs through it.
type deadRoom struct{ *core }

func (h *deadRoom) routes() []route {
	return []route{
		get("/dead", reads, queryQueues, h.bare(h.list)),
		get("/dead/groups", reads, wholeServer, h.bare(h.groups)), // a group goes over queues
		get("/dead/groups/{fingerprint}", reads, wholeServer, h.bare(h.group)),
		patch("/dead/groups/{fingerprint}", operates, wholeServer, optionally(h.core, h.setGroup)),
		post("/dead/replay", operates, handlerAsks, optional(asking(h.core, ifGiven, fromBody(jobs.ReplayAsked), h.run))),
		post("/dead/delete", operates, handlerAsks, optional(asking(h.core, ifGiven, fromBody(jobs.DeleteAsked), h.run))),
		get("/dead/export", reads, queryQueues, endpoint{serve: h.export}).streaming(),
		get("/dead/{id}", reads, pathJob, h.bare(ofJob(h.show))),
		del("/dead/{id}", operates, pathJob, h.bare(ofJob(h.remove))),
		post("/dead/{id}/replay", operates, pathJob, optional(asking(h.core, ifGiven, fromBody(jobs.OneAsked), h.replayOne))),
		get("/replays", reads, wholeServer, h.bare(h.replays)),
		get("/replays/{id}", reads, wholeServer, h.bare(h.showReplay)),
		del("/replays/{id}", operates, wholeServer, h.bare(h.cancelReplay)),
	}
}

// list is GET /dead.
func (h *deadRoom) list(c *call) (any, error) {
	q, err := jobs.ReadDeadQuery(c.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	rows, err := q.Find(c.Context(), h.engine, c.room.take)
	return appended(func(b []byte) []byte { return q.AppendPage(b, rows) }), noJob(err)
}

// show is GET /dead/{id}.
func (h *deadRoom) show(c *call, id job.ID) (any, error) {
	d, err := h.engine.Dead.Job(c.Context(), id)
	return appended(func(b []byte) []byte { return jobs.AppendDead(b, d) }), noJob(err)
}

// remove is DELETE /dead/{id}.
func (h *deadRoom) remove(c *call, id job.ID) (any, error) {
	return nil, noJob(h.engine.Dead.Delete(c.Context(), id, c.by))
}

// replayOne is POST /dead/{id}/replay. It answers with the job.
func (h *deadRoom) replayOne(c *call, ask deadset.Revival) (any, error) {
	id, err := jobID(c.id)
	if err != nil {
		return nil, err
	}
	v, err := h.engine.Dead.Revive(c.Context(), id, ask, c.by)
	if job.KindOf(err) == job.Exists && h.limited(c.Request) != nil {
		err = job.Errorf(job.Exists, "job %s was put with a unique key that another job has now", id) // whose, is not told
	}
	return verdictJob(id, v), err
}

// run is POST /dead/replay and POST /dead/delete: it begins a run through the dead
// set, or only says what it would do.
func (h *deadRoom) run(c *call, ask jobs.Run) (any, error) {
	queues := ask.Select.Queues
	if err := h.reachQueues(c.Request, "filter.queue", len(queues), func(i int) string { return queues[i] }); err != nil {
		return nil, err
	}
	if ask.Dry {
		p, err := jobs.PreviewRun(c.Context(), h.engine, &ask.Select)
		return appended(func(b []byte) []byte { return jobs.AppendDryRun(b, p) }), err
	}
	ask.By = c.by
	c.status = http.StatusAccepted
	return shown(jobs.ReplayOf)(jobs.StartRun(c.Context(), h.engine, ask.Replay))
}

// groups is GET /dead/groups.
func (h *deadRoom) groups(c *call) (any, error) {
	q, err := jobs.GroupsQuery(c.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	page, all, err := h.engine.Dead.Groups(c.Context(), q)
	out := wire.DeadGroups{Groups: []wire.DeadGroup{}, Total: all}
	for i := range page {
		out.Groups = append(out.Groups, jobs.GroupOf(&page[i]))
	}
	if end := q.Offset + len(page); end < all {
		out.Next = c.following("offset", strconv.Itoa(end))
	}
	return out, err
}

// following is the address of the next page: the one of this with another
// value of a parameter.
func (c *call) following(name, value string) *string {
	values := c.URL.Query()
	values.Set(name, value)
	next := c.URL.Path + "?" + values.Encode()
	return &next
}

// group is GET /dead/groups/{fingerprint}.
func (h *deadRoom) group(c *call) (any, error) {
	print, err := fingerprint(c.id)
	if err != nil {
		return nil, err
	}
	q, _ := jobs.GroupsQuery("")
	q.Prints, q.Muted = []job.Fingerprint{print}, nil
	page, _, err := h.engine.Dead.Groups(c.Context(), q)
	if err == nil && len(page) == 0 {
		err = job.Errorf(job.NotFound, "no dead job has the fingerprint %s", print)
	}
	if err != nil {
		return nil, err
	}
	return jobs.GroupOf(&page[0]), nil
}

// setGroup is PATCH /dead/groups/{fingerprint}.
func (h *deadRoom) setGroup(c *call, body *wire.Mark) (any, error) {
	print, err := fingerprint(c.id)
	if err != nil {
		return nil, err
	}
	edit, err := jobs.MarkAsked(body)
	if err != nil {
		return nil, err
	}
	return shown(jobs.MarkOf)(h.engine.Dead.Mark(c.Context(), print, edit, c.by))
}

func fingerprint(text string) (job.Fingerprint, error) {
	print, err := job.ParseFingerprint(text)
	if err != nil {
		return 0, &job.Error{Kind: job.Invalid, Field: "fingerprint", Text: err.Error()}
	}
	return print, nil
}

// export is GET /dead/export: a dead job a line, a page in memory at a time. An
// answer that could not be finished is broken off.
func (h *deadRoom) export(w http.ResponseWriter, r *http.Request, _, _ string) {
	q, err := jobs.ReadExportQuery(r.URL.RawQuery)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	const burst = 64 << 10
	var b []byte
	flush := func() error {
		w.Header()["Content-Type"] = typeNDJSON
		_, err := w.Write(b)
		b = b[:0]
		return err
	}
	err = q.Each(r.Context(), h.engine, func(d deadset.Dead) (bool, error) {
		if b = append(jobs.AppendDead(b, d), '\n'); len(b) < burst {
			return true, nil
		}
		return true, flush()
	})
	if err == nil {
		err = flush()
	}
	switch begun := len(w.Header()["Content-Type"]) > 0; {
	case err != nil && !begun:
		h.problem(w, r, err)
	case err != nil:
		h.log.WarnContext(r.Context(), "an export of the dead set was broken off", "error", err)
		panic(http.ErrAbortHandler)
	}
}
