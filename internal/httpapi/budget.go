package httpapi

import (
	"cmp"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// budgetRoom serves budgets, and what jobs are bound to.
type budgetRoom struct{ *core }

func (h *budgetRoom) routes() []route {
	const one, ofJob, ofMany = "/budgets/{key}", "/jobs/{id}/budgets", "/jobs/budgets"
	list := []route{
		get("/budgets", reads, wholeServer, h.bare(h.list)),
		post("/budgets", operates, wholeServer, h.raw(h.add)),
		get(one, reads, wholeServer, h.bare(h.show)), // jobs of any queue use it
		post(one, operates, wholeServer, h.raw(h.add)),
		put(one, operates, wholeServer, h.raw(h.set)),
		patch(one, operates, wholeServer, h.raw(h.change)),
		del(one, operates, wholeServer, h.bare(h.remove)),
		put(ofJob, operates, pathJob, h.optional(h.one((*scratch).bindAll))),
		del(ofJob, operates, pathJob, h.bare(h.one(unbindAll))),
		del(ofMany, operates, queryQueues, h.bare(h.many(unbindAll))),
	}
	// What is done to one job, and to many, with one budget.
	for _, x := range []struct {
		route func(path string, oneOf job.Scopes, of reach, by endpoint) route
		reads func(served) endpoint
		read  func(s *scratch, key string) (jobs.Bindings, error)
	}{
		{post, h.optional, func(s *scratch, key string) (jobs.Bindings, error) { return s.Bind(key, true) }},
		{put, h.optional, func(s *scratch, key string) (jobs.Bindings, error) { return s.Bind(key, false) }},
		{patch, h.optional, func(s *scratch, key string) (jobs.Bindings, error) { return s.Cost(key) }},
		{del, h.bare, func(_ *scratch, key string) (jobs.Bindings, error) { return jobs.Unbind(key), nil }},
	} {
		read := func(s *scratch, key string) (jobs.Bindings, error) {
			b, err := x.read(s, key)
			return b, cmp.Or(jobs.CheckName("budgets.key", key), err)
		}
		list = append(list, x.route(ofJob+"/{key}", operates, pathJob, x.reads(h.one(read))), x.route(ofMany+"/{key}", operates, queryQueues, x.reads(h.many(read))))
	}
	return list
}

func (s *scratch) bindAll(string) (jobs.Bindings, error) { return s.AllBindings() }
func unbindAll(*scratch, string) (jobs.Bindings, error)  { return jobs.NoBindings(), nil }

var budget = shown(jobs.BudgetOf)

// list is GET /budgets.
func (h *budgetRoom) list(c *call) (any, error) {
	list, err := h.engine.Budgets.List(c.Context())
	out := wire.Budgets{Budgets: make([]wire.BudgetState, len(list))}
	for i := range list {
		out.Budgets[i] = jobs.BudgetOf(list[i])
	}
	return out, err
}

// add is POST /budgets/{key}, and POST /budgets with the key in the body.
func (h *budgetRoom) add(c *call) (any, error) {
	ask, err := c.s.Budget(c.id)
	if err != nil {
		return nil, err
	}
	return c.made(budget(h.engine.Budgets.Add(c.Context(), ask, c.by)))
}

// show is GET /budgets/{key}.
func (h *budgetRoom) show(c *call) (any, error) {
	return budget(h.engine.Budgets.Get(c.Context(), c.id))
}

// set is PUT /budgets/{key}.
func (h *budgetRoom) set(c *call) (any, error) {
	ask, err := c.s.Budget(c.id)
	if err != nil {
		return nil, err
	}
	return budget(h.engine.Budgets.Set(c.Context(), ask, c.by))
}

// change is PATCH /budgets/{key}.
func (h *budgetRoom) change(c *call) (any, error) {
	edit, err := c.s.BudgetPatch()
	if err != nil {
		return nil, err
	}
	return budget(h.engine.Budgets.Patch(c.Context(), c.id, c.by, edit))
}

// remove is DELETE /budgets/{key}.
func (h *budgetRoom) remove(c *call) (any, error) {
	return nil, h.engine.Budgets.Delete(c.Context(), c.id, c.by)
}

// one changes what a job is bound to: PUT and DELETE /jobs/{id}/budgets, and
// POST, PUT, PATCH and DELETE /jobs/{id}/budgets/{key}.
func (h *budgetRoom) one(read func(s *scratch, key string) (jobs.Bindings, error)) served {
	return func(c *call) (any, error) {
		id, err := jobID(c.id)
		if err != nil {
			return nil, err
		}
		b, err := h.reachable(c)(read(c.s, c.sub))
		if err != nil {
			return nil, err
		}
		j, err := h.engine.Budgets.Rebind(c.Context(), c.by, id, b.Rebinding)
		if bad, ok := err.(*job.Error); ok && bad.Kind == job.NotFound && bad.Field == "" { //nolint:errorlint // made by the engine and never wrapped
			err = errNoJob
		}
		return appended(func(out []byte) []byte { return jobs.AppendJob(out, j) }), err
	}
}

// many changes it for jobs that a query chooses: DELETE /jobs/budgets, and POST,
// PUT, PATCH and DELETE /jobs/budgets/{key}.
func (h *budgetRoom) many(read func(s *scratch, key string) (jobs.Bindings, error)) served {
	return func(c *call) (any, error) {
		q, err := jobs.BulkQuery(c.URL.RawQuery)
		if err == nil {
			err = h.guarded("delete", q.All || q.Narrow())
		}
		if err != nil {
			return nil, err
		}
		b, err := h.reachable(c)(read(c.s, c.id))
		if err == nil {
			err = h.engine.Budgets.Check(c.Context(), b.List, b.Create)
		}
		if err != nil {
			return nil, err
		}
		n, blocked, err := q.Rebind(c.Context(), h.engine, b.OfMany())
		err = h.noteBulk(c, "rebind jobs", q.Subject()+" budgets/"+c.id, n, err)
		return appended(func(out []byte) []byte { return jobs.AppendRebound(out, n, blocked) }), err
	}
}

// reachable passes on what was read, if the token of the call is for it.
func (h *budgetRoom) reachable(c *call) func(jobs.Bindings, error) (jobs.Bindings, error) {
	return func(b jobs.Bindings, err error) (jobs.Bindings, error) {
		if g := h.limited(c.Request); err == nil && g != nil {
			err = reachBudgets(g, b.List)
		}
		return b, err
	}
}
