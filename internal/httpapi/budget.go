package httpapi

import (
	"cmp"
	"net/http"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
)

var (
	oneBudget = &resource{get: (*handler).showBudget, post: (*handler).addBudget, put: (*handler).setBudget, patch: (*handler).patchBudget, del: (*handler).deleteBudget}
	binding   = &resource{post: (*handler).bind, put: (*handler).bind, patch: (*handler).bind, del: (*handler).bind}
	bindings  = &resource{post: (*handler).bindMany, put: (*handler).bindMany, patch: (*handler).bindMany, del: (*handler).bindMany}
)

// budgets is GET /budgets.
func (h *handler) budgets(w http.ResponseWriter, r *http.Request, _, _ string) {
	list, err := h.engine.Budgets.List(r.Context())
	h.shown(w, r, err, func(b []byte) []byte { return jobs.AppendBudgets(b, list) })
}

// addBudget is POST /budgets/{key}, and POST /budgets with the key in the body.
func (h *handler) addBudget(w http.ResponseWriter, r *http.Request, key, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		ask, err := s.Budget(key)
		if err != nil {
			return err
		}
		b, err := h.engine.Budgets.Add(r.Context(), ask, by)
		return s.tell(w, http.StatusCreated, err, func(out []byte) []byte { return jobs.AppendBudget(out, b) })
	})
}

// showBudget is GET /budgets/{key}.
func (h *handler) showBudget(w http.ResponseWriter, r *http.Request, key, _ string) {
	b, err := h.engine.Budgets.Get(r.Context(), key)
	h.shown(w, r, err, func(out []byte) []byte { return jobs.AppendBudget(out, b) })
}

// setBudget is PUT /budgets/{key}.
func (h *handler) setBudget(w http.ResponseWriter, r *http.Request, key, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		ask, err := s.Budget(key)
		if err != nil {
			return err
		}
		b, err := h.engine.Budgets.Set(r.Context(), ask, by)
		return s.tell(w, http.StatusOK, err, func(out []byte) []byte { return jobs.AppendBudget(out, b) })
	})
}

// patchBudget is PATCH /budgets/{key}.
func (h *handler) patchBudget(w http.ResponseWriter, r *http.Request, key, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		edit, err := s.BudgetPatch()
		if err != nil {
			return err
		}
		b, err := h.engine.Budgets.Patch(r.Context(), key, by, edit)
		return s.tell(w, http.StatusOK, err, func(out []byte) []byte { return jobs.AppendBudget(out, b) })
	})
}

// deleteBudget is DELETE /budgets/{key}.
func (h *handler) deleteBudget(w http.ResponseWriter, r *http.Request, key, _ string) {
	by, err := actorOf(r)
	if err == nil {
		err = h.engine.Budgets.Delete(r.Context(), key, by)
	}
	h.gone(w, r, err)
}

// binds are the calls that bind jobs: the same ones for one job and for many.
var binds = map[string]func(s *scratch, key string) (jobs.Bindings, error){
	http.MethodPost:   func(s *scratch, key string) (jobs.Bindings, error) { return s.Bind(key, true) },
	http.MethodPut:    func(s *scratch, key string) (jobs.Bindings, error) { return s.Bind(key, false) },
	http.MethodPatch:  func(s *scratch, key string) (jobs.Bindings, error) { return s.Cost(key) },
	http.MethodDelete: func(_ *scratch, key string) (jobs.Bindings, error) { return jobs.Unbind(key), nil },
}

// bind is POST, PUT, PATCH and DELETE /jobs/{id}/budgets/{key}.
func (h *handler) bind(w http.ResponseWriter, r *http.Request, text, key string) {
	h.rebind(w, r, text, func(s *scratch) (jobs.Bindings, error) {
		b, err := binds[r.Method](s, key)
		return b, cmp.Or(jobs.CheckName("budgets.key", key), err)
	})
}

// bindAll is PUT /jobs/{id}/budgets.
func (h *handler) bindAll(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.rebind(w, r, text, func(s *scratch) (jobs.Bindings, error) { return s.AllBindings() })
}

// unbindAll is DELETE /jobs/{id}/budgets.
func (h *handler) unbindAll(w http.ResponseWriter, r *http.Request, text, _ string) {
	h.rebind(w, r, text, func(*scratch) (jobs.Bindings, error) { return jobs.NoBindings(), nil })
}

func (h *handler) rebind(w http.ResponseWriter, r *http.Request, text string, read func(*scratch) (jobs.Bindings, error)) {
	h.rebinding(w, r, func(s *scratch, by job.Actor) error {
		id, err := jobID(text)
		if err != nil {
			return err
		}
		b, err := read(s)
		if g := h.limited(r); err == nil && g != nil {
			err = reachBudgets(g, b.List)
		}
		if err != nil {
			return err
		}
		j, err := h.engine.Budgets.Rebind(r.Context(), by, id, b.Rebinding)
		if bad, ok := err.(*job.Error); ok && bad.Kind == job.NotFound && bad.Field == "" { //nolint:errorlint // made by the engine and never wrapped
			err = errNoJob
		}
		return s.tell(w, http.StatusOK, err, func(out []byte) []byte { return jobs.AppendJob(out, j) })
	})
}

// bindMany is POST, PUT, PATCH and DELETE /jobs/budgets/{key}.
func (h *handler) bindMany(w http.ResponseWriter, r *http.Request, key, _ string) {
	h.rebindMany(w, r, key, func(s *scratch) (jobs.Bindings, error) {
		b, err := binds[r.Method](s, key)
		return b, cmp.Or(jobs.CheckName("budgets.key", key), err)
	})
}

// unbindMany is DELETE /jobs/budgets.
func (h *handler) unbindMany(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.rebindMany(w, r, "", func(*scratch) (jobs.Bindings, error) { return jobs.NoBindings(), nil })
}

func (h *handler) rebindMany(w http.ResponseWriter, r *http.Request, key string, read func(*scratch) (jobs.Bindings, error)) {
	h.rebinding(w, r, func(s *scratch, by job.Actor) error {
		q, err := jobs.BulkQuery(r.URL.RawQuery)
		if err == nil {
			err = h.guarded("delete", q.All || q.Narrow())
		}
		if err != nil {
			return err
		}
		b, err := read(s)
		if g := h.limited(r); err == nil && g != nil {
			err = reachBudgets(g, b.List)
		}
		if err == nil {
			err = h.engine.Budgets.Check(r.Context(), b.List, b.Create)
		}
		if err != nil {
			return err
		}
		n, blocked, err := q.Rebind(r.Context(), h.engine, b.OfMany())
		if err = h.noteBulk(r, by, "rebind jobs", q.Subject()+" budgets/"+key, n, err); err != nil {
			return err
		}
		s.out = jobs.AppendRebound(s.out, n, blocked)
		send(w, http.StatusOK, s.out)
		return nil
	})
}

// rebinding reads a body where there is one: a DELETE has none, whatever its
// Content-Type says.
func (h *handler) rebinding(w http.ResponseWriter, r *http.Request, do func(s *scratch, by job.Actor) error) {
	if r.ContentLength == 0 || r.Method == http.MethodDelete {
		r.Header.Del("Content-Type")
	}
	h.operation(w, r, do)
}
