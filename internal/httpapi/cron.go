package httpapi

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// crons is GET /crons.
func (h *handler) crons(w http.ResponseWriter, r *http.Request, _, _ string) {
	names, err := h.engine.Crons.List(r.Context())
	h.shown(w, r, err, func(b []byte) []byte { return jobs.AppendCrons(b, names) })
}

// deleteCrons is DELETE /crons.
func (h *handler) deleteCrons(w http.ResponseWriter, r *http.Request, _, _ string) {
	by, err := actorOf(r)
	said, bad := jobs.SaidAll(r.URL.RawQuery)
	n := 0
	if err == nil {
		err = bad
	}
	if err == nil {
		err = h.guarded("delete", said)
	}
	if err == nil {
		n, err = h.engine.Crons.DeleteAll(r.Context(), by)
	}
	h.sendPlain(w, r, wire.CronsDeleted{Deleted: n}, err)
}

// showCron is GET /crons/{group}, and GET /crons/preview?expression=...
func (h *handler) showCron(w http.ResponseWriter, r *http.Request, name, _ string) {
	if name == "preview" && strings.Contains(r.URL.RawQuery, "expression=") { // a group may have that name
		h.previewCron(w, r)
		return
	}
	g, err := h.engine.Crons.Get(r.Context(), name)
	h.shown(w, r, err, func(b []byte) []byte { return jobs.AppendCron(b, g) })
}

func (h *handler) previewCron(w http.ResponseWriter, r *http.Request) {
	p, err := jobs.ReadCronPreview(r.URL.RawQuery)
	var ticks []job.Millis
	if err == nil {
		ticks, err = h.engine.Crons.Preview(p.Expression, p.Zone, p.N)
	}
	h.shown(w, r, err, func(b []byte) []byte { return jobs.AppendCronPreview(b, p, ticks) })
}

// setCron is PUT /crons/{group}.
func (h *handler) setCron(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		ask, err := s.CronGroup()
		if err = cmp.Or(jobs.CheckName("name", name), err); err != nil {
			return err
		}
		g, err := h.engine.Crons.Set(r.Context(), name, ask, by)
		return s.tell(w, http.StatusOK, err, func(b []byte) []byte { return jobs.AppendCron(b, g) })
	})
}

// patchCron is PATCH /crons/{group}.
func (h *handler) patchCron(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		ask, err := s.CronPatch()
		if err != nil {
			return err
		}
		g, err := h.engine.Crons.Patch(r.Context(), name, ask, by)
		return s.tell(w, http.StatusOK, err, func(b []byte) []byte { return jobs.AppendCron(b, g) })
	})
}

// deleteCron is DELETE /crons/{group}.
func (h *handler) deleteCron(w http.ResponseWriter, r *http.Request, name, _ string) {
	by, err := actorOf(r)
	if err == nil {
		err = h.engine.Crons.Delete(r.Context(), name, by)
	}
	h.gone(w, r, err)
}

// addCronEntry is POST /crons/{group}/entries.
func (h *handler) addCronEntry(w http.ResponseWriter, r *http.Request, group, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		ask, err := s.CronEntry("")
		if err = cmp.Or(jobs.CheckName("name", group), err); err != nil {
			return err
		}
		c, err := h.engine.Crons.AddEntry(r.Context(), group, ask, by)
		return s.tell(w, http.StatusCreated, err, func(b []byte) []byte { return jobs.AppendCronEntry(b, c) })
	})
}

// showCronEntry is GET /crons/{group}/entries/{entry}.
func (h *handler) showCronEntry(w http.ResponseWriter, r *http.Request, group, name string) {
	c, err := h.engine.Crons.Entry(r.Context(), group, name)
	h.shown(w, r, err, func(b []byte) []byte { return jobs.AppendCronEntry(b, c) })
}

// setCronEntry is PUT /crons/{group}/entries/{entry}.
func (h *handler) setCronEntry(w http.ResponseWriter, r *http.Request, group, name string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		ask, err := s.CronEntry(name)
		if err = cmp.Or(jobs.CheckName("name", group), jobs.CheckName("name", name), err); err != nil {
			return err
		}
		c, err := h.engine.Crons.SetEntry(r.Context(), group, ask, by)
		return s.tell(w, http.StatusOK, err, func(b []byte) []byte { return jobs.AppendCronEntry(b, c) })
	})
}

// pauseCronEntry is PATCH /crons/{group}/entries/{entry}.
func (h *handler) pauseCronEntry(w http.ResponseWriter, r *http.Request, group, name string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		paused, err := s.CronPause()
		if err != nil {
			return err
		}
		c, err := h.engine.Crons.PauseEntry(r.Context(), group, name, paused, by)
		return s.tell(w, http.StatusOK, err, func(b []byte) []byte { return jobs.AppendCronEntry(b, c) })
	})
}

// deleteCronEntry is DELETE /crons/{group}/entries/{entry}.
func (h *handler) deleteCronEntry(w http.ResponseWriter, r *http.Request, group, name string) {
	by, err := actorOf(r)
	if err == nil {
		err = h.engine.Crons.DeleteEntry(r.Context(), group, name, by)
	}
	h.gone(w, r, err)
}

// runCronEntry is POST /crons/{group}/entries/{entry}/run. It answers like an enqueue.
func (h *handler) runCronEntry(w http.ResponseWriter, r *http.Request, group, name string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		added, asked, err := h.engine.Crons.Run(r.Context(), group, name, by)
		return s.tell(w, created([]engine.Added{added}), err, func(b []byte) []byte { return jobs.AppendAdded(b, added, &asked) })
	})
}

// tell answers with what write appends, or passes the error on.
func (s *scratch) tell(w http.ResponseWriter, status int, err error, write func(b []byte) []byte) error {
	if err == nil {
		s.out = write(s.out)
		send(w, status, s.out)
	}
	return err
}

// shown answers with what write appends, or with the error.
func (h *handler) shown(w http.ResponseWriter, r *http.Request, err error, write func(b []byte) []byte) {
	if err != nil {
		h.problem(w, r, err)
		return
	}
	h.answer(w, r, nil, write)
}

// gone answers 204, or with the error.
func (h *handler) gone(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		h.problem(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
