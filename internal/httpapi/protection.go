package httpapi

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

// asidesMax bounds the groups that one answer names.
const asidesMax = 1000

// asides is GET /queues/{name}/groups.
func (h *handler) asides(w http.ResponseWriter, r *http.Request, name, _ string) {
	err := jobs.CheckName("queue", name)
	out := wire.Asides{Groups: []wire.Aside{}}
	if err == nil {
		list, bad := h.engine.Guard.Asides(r.Context(), name, asidesMax)
		for _, a := range list {
			if a.Group != "" {
				out.Groups = append(out.Groups, jobs.AsideOf(a))
			}
		}
		err = bad
	}
	h.sendPlain(w, r, out, err)
}

// explain is GET /jobs/{id}/explain.
func (h *handler) explain(w http.ResponseWriter, r *http.Request, text, _ string) {
	id, err := jobID(text)
	if err != nil {
		h.answer(w, r, err, nil)
		return
	}
	e, err := h.engine.Explain(r.Context(), id)
	if err != nil {
		h.answer(w, r, err, nil)
		return
	}
	h.sendPlain(w, r, h.explained(e), nil)
}

// explained tells of a task in the words of the grid.
func (h *handler) explained(e engine.Explanation) jobs.Explained {
	if e.Job.Door == job.DoorGrid {
		return jobs.Explain(e, h.engine.Now(), grid.Why)
	}
	if h.inboxes != nil && h.inboxes.Get(e.Job.Queue) != nil {
		return jobs.Explain(e, h.engine.Now(), h.inboxes.Why)
	}
	return jobs.Explain(e, h.engine.Now(), nil)
}

// ofQueue reads the body of a call on a queue, strictly, and answers with what
// do says; nil is the state of the queue.
func (h *handler) ofQueue(w http.ResponseWriter, r *http.Request, name string, body any, do func(by job.Actor) (any, error)) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		if err := jobs.CheckName("queue", name); err != nil {
			return err
		}
		if len(s.Body.Bytes()) > 0 {
			if err := plain(s.Body.Bytes(), body, true); err != nil {
				return err
			}
		}
		answer, err := do(by)
		if err != nil {
			return err
		}
		if answer == nil {
			h.queue(w, r, name, "")
			return nil
		}
		h.sendPlain(w, r, answer, nil)
		return nil
	})
}

// hold is POST /queues/{name}/hold.
func (h *handler) hold(w http.ResponseWriter, r *http.Request, name, _ string) {
	var body wire.Hold
	h.ofQueue(w, r, name, &body, func(by job.Actor) (any, error) {
		until := job.Millis(body.Until)
		err := cmp.Or(within("until", body.Until, 0, int64(job.MaxMillis)), within("for_ms", body.ForMS, 0, int64(job.MaxMillis)))
		if err == nil && (body.Until == 0) == (body.ForMS == 0) {
			err = &job.Error{Kind: job.Invalid, Field: "until", Text: "exactly one of until and for_ms must be given"}
		}
		if err != nil {
			return nil, err
		}
		if body.ForMS > 0 {
			until = h.engine.Now().Add(job.Millis(body.ForMS))
		}
		end, err := h.engine.Guard.Hold(r.Context(), name, body.Group, until, by)
		return wire.Held{HoldUntil: int64(end)}, err
	})
}

// release is POST /queues/{name}/release.
func (h *handler) release(w http.ResponseWriter, r *http.Request, name, _ string) {
	var body wire.OfGroup
	h.ofQueue(w, r, name, &body, func(by job.Actor) (any, error) {
		return nil, h.engine.Guard.Release(r.Context(), name, body.Group, by)
	})
}

// forceBreaker is POST /queues/{name}/breaker.
func (h *handler) forceBreaker(w http.ResponseWriter, r *http.Request, name, _ string) {
	var body wire.ForceBreaker
	h.ofQueue(w, r, name, &body, func(by job.Actor) (any, error) {
		switch words := []string{wire.BreakerClosed, wire.BreakerOpen}; {
		case body.State == wire.BreakerAuto:
			return nil, h.engine.Guard.ReleaseBreaker(r.Context(), name, body.Group, by)
		case slices.Contains(words, body.State):
			return nil, h.engine.Guard.ForceBreaker(r.Context(), name, body.Group, job.BreakerState(slices.Index(words, body.State)), by)
		}
		return nil, &job.Error{Kind: job.Invalid, Field: "state", Text: "state must be one of closed open auto" + spell.Hint(body.State, []string{wire.BreakerClosed, wire.BreakerOpen, wire.BreakerAuto})}
	})
}
