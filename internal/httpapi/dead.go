package httpapi

import (
	"net/http"
	"strconv"
	"unicode"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/wire"
)

// actorMax bounds the name in the header that says who asks.
const actorMax = 128

// actorOf is who asks, as far as the request tells.
func actorOf(r *http.Request) (job.Actor, error) {
	if g, ok := r.Context().Value(grantKey{}).(*auth.Grant); ok {
		return job.Actor{Name: g.Name, From: remote(r), Admin: g.Scopes&job.ScopeAdmin != 0}, nil // what else the request says, nobody vouches for
	}
	name := r.Header.Get(wire.HeaderActor)
	for _, c := range name {
		if len(name) > actorMax || !unicode.IsPrint(c) {
			return job.Actor{}, &job.Error{
				Kind: job.Invalid, Field: wire.HeaderActor,
				Text: "the header " + wire.HeaderActor + " must be a name of at most " + strconv.Itoa(actorMax) + " printable bytes",
			}
		}
	}
	return job.Actor{Name: name, From: remote(r)}, nil
}

// dead is GET /dead.
func (h *handler) dead(w http.ResponseWriter, r *http.Request, _, _ string) {
	q, err := jobs.ReadDeadQuery(r.URL.RawQuery)
	room := h.room(r)
	defer room.leave()
	var rows jobs.Found[deadset.Dead]
	if err == nil {
		rows, err = q.Find(r.Context(), h.engine, room.take)
	}
	h.answer(w, r, err, func(b []byte) []byte { return q.AppendPage(b, rows) })
}

// showDead is GET /dead/{id}.
func (h *handler) showDead(w http.ResponseWriter, r *http.Request, text, _ string) {
	id, err := jobID(text)
	var d deadset.Dead
	if err == nil {
		d, err = h.engine.Dead.Job(r.Context(), id)
	}
	h.answer(w, r, err, func(b []byte) []byte { return jobs.AppendDead(b, d) })
}

// removeDead is DELETE /dead/{id}.
func (h *handler) removeDead(w http.ResponseWriter, r *http.Request, text, _ string) {
	by, err := actorOf(r)
	id, bad := jobID(text)
	if err == nil {
		err = bad
	}
	if err == nil {
		err = h.engine.Dead.Delete(r.Context(), id, by)
	}
	if err != nil {
		h.answer(w, r, err, nil)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// replayOne is POST /dead/{id}/replay. It answers with the job.
func (h *handler) replayOne(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		var body wire.DeadOne
		id, err := jobID(text)
		if err == nil {
			err = optional(s, &body)
		}
		if err != nil {
			return err
		}
		ask, err := jobs.OneAsked(&body)
		if err != nil {
			return err
		}
		v, err := h.engine.Dead.Revive(r.Context(), id, ask, by)
		if job.KindOf(err) == job.Exists && h.limited(r) != nil {
			err = job.Errorf(job.Exists, "job %s was put with a unique key that another job has now", id) // whose, is not told
		}
		if err != nil {
			return err
		}
		s.out = jobs.AppendVerdictJob(s.out, id, v)
		send(w, http.StatusOK, s.out)
		return nil
	})
}

// operation is what an operator asks for with a body.
func (h *handler) operation(w http.ResponseWriter, r *http.Request, do func(s *scratch, by job.Actor) error) {
	h.withBody(w, r, func(s *scratch) error {
		by, err := actorOf(r)
		if err != nil {
			return err
		}
		return do(s, by)
	})
}

// optional reads a body that may be left out.
func optional(s *scratch, into any) error {
	if s.Body.Len() == 0 {
		return nil
	}
	return plain(s.Body.Bytes(), into, true)
}

// replayMany is POST /dead/replay.
func (h *handler) replayMany(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		var body wire.DeadReplay
		if err := optional(s, &body); err != nil {
			return err
		}
		if err := h.reachQueues(r, "filter.queue", len(body.Filter.Queues), func(i int) string { return body.Filter.Queues[i] }); err != nil {
			return err
		}
		ask, err := jobs.ReplayAsked(&body)
		if err != nil {
			return err
		}
		return h.run(w, r, s, ask, body.DryRun, by)
	})
}

// deleteMany is POST /dead/delete.
func (h *handler) deleteMany(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		var body wire.DeadDelete
		if err := optional(s, &body); err != nil {
			return err
		}
		if err := h.reachQueues(r, "filter.queue", len(body.Filter.Queues), func(i int) string { return body.Filter.Queues[i] }); err != nil {
			return err
		}
		ask, err := jobs.DeleteAsked(&body)
		if err != nil {
			return err
		}
		return h.run(w, r, s, ask, body.DryRun, by)
	})
}

// run begins a run through the dead set, or only says what it would do.
func (h *handler) run(w http.ResponseWriter, r *http.Request, s *scratch, ask job.Replay, dry bool, by job.Actor) error {
	if dry {
		p, err := jobs.PreviewRun(r.Context(), h.engine, &ask.Select)
		if err != nil {
			return err
		}
		s.out = jobs.AppendDryRun(s.out, p)
		send(w, http.StatusOK, s.out)
		return nil
	}
	ask.By = by
	p, err := jobs.StartRun(r.Context(), h.engine, ask)
	if err != nil {
		return err
	}
	h.sendPlainAs(w, r, http.StatusAccepted, jobs.ReplayOf(p))
	return nil
}

// groups is GET /dead/groups.
func (h *handler) groups(w http.ResponseWriter, r *http.Request, _, _ string) {
	q, err := jobs.GroupsQuery(r.URL.RawQuery)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	page, all, err := h.engine.Dead.Groups(r.Context(), q)
	out := wire.DeadGroups{Groups: []wire.DeadGroup{}, Total: all}
	for i := range page {
		out.Groups = append(out.Groups, jobs.GroupOf(&page[i]))
	}
	if end := q.Offset + len(page); end < all {
		out.Next = following(r, "offset", strconv.Itoa(end))
	}
	h.sendPlain(w, r, out, err)
}

// following is the address of the next page: the one of this with another
// value of a parameter.
func following(r *http.Request, name, value string) *string {
	values := r.URL.Query()
	values.Set(name, value)
	next := r.URL.Path + "?" + values.Encode()
	return &next
}

// oneGroup is GET /dead/groups/{fingerprint}.
func (h *handler) oneGroup(w http.ResponseWriter, r *http.Request, text, _ string) {
	print, err := fingerprint(text)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	q, _ := jobs.GroupsQuery("")
	q.Prints, q.Muted = []job.Fingerprint{print}, nil
	page, _, err := h.engine.Dead.Groups(r.Context(), q)
	if err == nil && len(page) == 0 {
		err = job.Errorf(job.NotFound, "no dead job has the fingerprint %s", print)
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	h.sendPlain(w, r, jobs.GroupOf(&page[0]), nil)
}

// setGroup is PATCH /dead/groups/{fingerprint}.
func (h *handler) setGroup(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		print, err := fingerprint(text)
		if err != nil {
			return err
		}
		var body wire.Mark
		if err := optional(s, &body); err != nil {
			return err
		}
		edit, err := jobs.MarkAsked(&body)
		if err != nil {
			return err
		}
		m, err := h.engine.Dead.Mark(r.Context(), print, edit, by)
		if err != nil {
			return err
		}
		h.sendPlain(w, r, jobs.MarkOf(m), nil)
		return nil
	})
}

func fingerprint(text string) (job.Fingerprint, error) {
	print, err := job.ParseFingerprint(text)
	if err != nil {
		return 0, &job.Error{Kind: job.Invalid, Field: "fingerprint", Text: err.Error()}
	}
	return print, nil
}

var ndjson = []string{"application/x-ndjson"}

// export is GET /dead/export: a dead job a line, a page in memory at a time. An
// answer that could not be finished is broken off.
func (h *handler) export(w http.ResponseWriter, r *http.Request, _, _ string) {
	q, err := jobs.ReadExportQuery(r.URL.RawQuery)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	const burst = 64 << 10
	var b []byte
	flush := func() error {
		w.Header()["Content-Type"] = ndjson
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
