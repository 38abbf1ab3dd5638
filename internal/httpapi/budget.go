package httpapi

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// budgetRoom serves budgets, and what jobs are bound to.
type budgetRoom struct{ *core }

func (h *budgetRoom) routes() []route {
	const one, ofJob, ofMany = "/budgets/{key}", "/jobs/{id}/budgets", "/jobs/budgets"
	budgetOf := func(c *call, b *jobs.BudgetAsk) (job.Budget, error) { return b.Budget(c.id) }
	return slices.Concat([]route{
		get("/budgets", reads, wholeServer, h.bare(h.list)),
		post("/budgets", operates, wholeServer, asking(h.core, lenient, budgetOf, h.add)),
		get(one, reads, wholeServer, h.bare(h.show)), // jobs of any queue use it
		post(one, operates, wholeServer, asking(h.core, lenient, budgetOf, h.add)),
		put(one, operates, wholeServer, asking(h.core, lenient, budgetOf, h.set)),
		patch(one, operates, wholeServer, asking(h.core, lenient, fromBody((*jobs.BudgetPatch).Edit), h.change)),
		del(one, operates, wholeServer, h.bare(h.remove)),
		put(ofJob, operates, pathJob, leniently(h.core, h.bindAll)),
		del(ofJob, operates, pathJob, h.bare(func(c *call) (any, error) { return h.one(c, jobs.NoBindings(), nil) })),
		del(ofMany, operates, queryQueues, h.bare(func(c *call) (any, error) { return h.many(c, jobs.NoBindings(), nil) })),
	}, h.bindings(ofJob+"/{key}", pathJob, h.one), h.bindings(ofMany+"/{key}", queryQueues, h.many))
}

// rebind changes what one job, or many, are bound to, as was asked for.
type rebind func(c *call, b jobs.Bindings, err error) (any, error)

// bindings are the calls that bind to one budget: the same for one job and for many.
func (h *budgetRoom) bindings(path string, of reach, do rebind) []route {
	key := func(c *call) string { return cmp.Or(c.sub, c.id) } // the last variable segment
	bind := func(anew bool) endpoint {
		return optional(h.raw(func(c *call) (any, error) {
			var body jobs.BindingAsk
			if c.s.Body.Len() > 0 {
				if err := lenient(c.s, &body); err != nil {
					return nil, err
				}
			}
			b, err := body.Bind(key(c), anew)
			return do(c, b, err)
		}))
	}
	return []route{
		post(path, operates, of, bind(true)),
		put(path, operates, of, bind(false)),
		patch(path, operates, of, leniently(h.core, func(c *call, body *jobs.BindingCost) (any, error) {
			b, err := body.Change(key(c))
			return do(c, b, err)
		})),
		del(path, operates, of, h.bare(func(c *call) (any, error) { return do(c, jobs.Unbind(key(c)), nil) })),
	}
}

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
func (h *budgetRoom) add(c *call, ask job.Budget) (any, error) {
	return c.made(budget(h.engine.Budgets.Add(c.Context(), ask, c.by)))
}

// show is GET /budgets/{key}.
func (h *budgetRoom) show(c *call) (any, error) {
	return budget(h.engine.Budgets.Get(c.Context(), c.id))
}

// set is PUT /budgets/{key}.
func (h *budgetRoom) set(c *call, ask job.Budget) (any, error) {
	return budget(h.engine.Budgets.Set(c.Context(), ask, c.by))
}

// change is PATCH /budgets/{key}.
func (h *budgetRoom) change(c *call, edit func(*job.Budget)) (any, error) {
	return budget(h.engine.Budgets.Patch(c.Context(), c.id, c.by, edit))
}

// remove is DELETE /budgets/{key}.
func (h *budgetRoom) remove(c *call) (any, error) {
	return nil, h.engine.Budgets.Delete(c.Context(), c.id, c.by)
}

// bindAll is PUT /jobs/{id}/budgets.
func (h *budgetRoom) bindAll(c *call, body *jobs.BindingsAsk) (any, error) {
	b, err := body.All()
	return h.one(c, b, err)
}

// one changes what a job is bound to, as was asked for with or without a key.
func (h *budgetRoom) one(c *call, b jobs.Bindings, err error) (any, error) {
	id, unknown := jobID(c.id)
	if err = cmp.Or(unknown, h.bindable(c, c.sub, b, err)); err != nil {
		return nil, err
	}
	j, err := h.engine.Budgets.Rebind(c.Context(), c.by, id, b.Rebinding)
	if bad, ok := err.(*job.Error); ok && bad.Kind == job.NotFound && bad.Field == "" { //nolint:errorlint // made by the engine and never wrapped
		err = errNoJob
	}
	return appended(func(out []byte) []byte { return jobs.AppendJob(out, j) }), err
}

// many changes it for jobs that a query chooses.
func (h *budgetRoom) many(c *call, b jobs.Bindings, err error) (any, error) {
	q, bad := jobs.BulkQuery(c.URL.RawQuery)
	if bad == nil {
		bad = h.guarded("delete", q.All || q.Narrow())
	}
	if err = cmp.Or(bad, h.bindable(c, c.id, b, err)); err == nil {
		err = h.engine.Budgets.Check(c.Context(), b.List, b.Create)
	}
	if err != nil {
		return nil, err
	}
	n, blocked, err := q.Rebind(c.Context(), h.engine, b.OfMany())
	err = h.noteBulk(c, "rebind jobs", q.Subject()+" budgets/"+c.id, n, err)
	return appended(func(out []byte) []byte { return jobs.AppendRebound(out, n, blocked) }), err
}

// bindable refuses a key of the path that cannot be one, and what the token of
// the call is not for.
func (h *budgetRoom) bindable(c *call, key string, b jobs.Bindings, err error) error {
	if key != "" {
		err = cmp.Or(jobs.CheckName("budgets.key", key), err)
	}
	if g := h.limited(c.Request); err == nil && g != nil {
		err = reachBudgets(g, b.List)
	}
	return err
}
