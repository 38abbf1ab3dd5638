package jobs

import (
	"context"
	"slices"
	"strconv"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/budget"
	"github.com/reprisehq/reprise/wire"
)

// budgets reads what a new job is bound to.
func (r *Reader) budgets(n *engine.NewJob) {
	list, create := r.bindings()
	n.Create = create
	if len(list) > 0 {
		extrasOf(&n.Job).Budgets = list
	}
}

// bindings reads a list of {key, cost, create_with}.
func (r *Reader) bindings() (list []job.BudgetUse, create []job.Budget) {
	r.array("budgets", job.JobBudgets, func() {
		use, made := r.binding("")
		if job.BudgetAt(list, use.Key) >= 0 {
			r.fail("budgets", "must not have the key "+strconv.Quote(use.Key)+" twice")
		}
		list, create = append(list, use), append(create, made...)
	})
	return list, create
}

// binding reads {key, cost, create_with}; a key of the path wins.
func (r *Reader) binding(named string) (use job.BudgetUse, create []job.Budget) {
	use = job.BudgetUse{Key: named, Cost: 1}
	var made *job.Budget
	r.must("budgets", r.object("budgets", func(name []byte) {
		switch string(name) {
		case "key":
			if own := ""; named == "" {
				use.Key = r.name("budgets.key", &own)
			} else {
				r.value()
			}
		case "cost":
			use.Cost = int64(r.number("budgets.cost", 1, job.BudgetUnits, 1))
		case "create_with":
			var b job.Budget
			if there := r.object("budgets.create_with", func(name []byte) { r.budgetField(&b, name, "budgets.create_with.") }); there {
				made = &b
			}
			r.unprocessable()
		default:
			unknown[wire.Binding](r, name)
		}
	}))
	r.must("budgets.key", use.Key != "")
	if made != nil {
		made.Name = use.Key
		r.checked(made)
		create = []job.Budget{*made}
	}
	return use, create
}

// checked refuses settings that cannot be.
func (r *Reader) checked(b *job.Budget) {
	if r.err == nil {
		r.err = b.Check()
	}
}

// budgetField reads one member of a budget; strategies are merged.
func (r *Reader) budgetField(b *job.Budget, name []byte, prefix string) {
	switch string(name) {
	case "allocation":
		b.Allocation = int64(r.number(prefix+"allocation", 1, job.BudgetUnits, 0))
	case "strategy":
		r.must(prefix+"strategy", r.object(prefix+"strategy", func(name []byte) { r.strategyField(b, name, prefix+"strategy.") }))
	default:
		unknown[wire.Budget](r, name)
	}
}

func (r *Reader) strategyField(b *job.Budget, name []byte, prefix string) {
	switch string(name) {
	case "type":
		s, ok := oneOf(r, prefix+"type", job.WhileInFlight, job.TimeBased)
		if !ok && r.err == nil {
			r.fail(prefix+"type", "must not be null")
		}
		if b.Strategy = s; s == job.WhileInFlight {
			b.Duration, b.Burst = 0, 0
		}
	case "duration_ms":
		b.Duration = r.millis(prefix+"duration_ms", 1, 0)
	case "burst":
		b.Burst = int64(r.number(prefix+"burst", 1, job.BudgetUnits, 0))
	default:
		unknown[wire.BudgetStrategy](r, name)
	}
}

// Budget reads the body of POST /budgets, key "", and of POST and PUT
// /budgets/{key}, whose key wins.
func (r *Reader) Budget(key string) (job.Budget, error) {
	b, named, strategy := job.Budget{Name: key}, key != "", false
	r.whole(func(name []byte) {
		if own := ""; string(name) == "key" && !named {
			b.Name = r.name("key", &own)
			return
		}
		strategy = strategy || string(name) == "strategy"
		r.budgetField(&b, name, "")
	})
	r.must("key", b.Name != "")
	r.must("allocation", b.Allocation != 0)
	r.must("strategy", strategy)
	if named && r.err == nil {
		r.err = CheckName("key", key)
	}
	r.checked(&b)
	r.unprocessable()
	return b, r.end()
}

// BudgetPatch reads the body of PATCH /budgets/{key}: what is left out stays,
// and null clears the burst. What it returns may be called more than once.
func (r *Reader) BudgetPatch() (func(*job.Budget), error) {
	ask := job.Budget{Strategy: 255, Burst: -1}
	burst := false
	r.whole(func(name []byte) {
		switch string(name) {
		case "allocation":
			ask.Allocation = int64(r.number("allocation", 1, job.BudgetUnits, 0))
			r.must("allocation", ask.Allocation != 0)
		case "strategy":
			r.object("strategy", func(name []byte) {
				if string(name) == "burst" {
					burst = true
				}
				typed := ask
				r.strategyField(&typed, name, "strategy.")
				ask = typed
			})
		default:
			unknown[wire.Budget](r, name)
		}
	})
	r.unprocessable()
	return func(b *job.Budget) {
		if ask.Allocation != 0 {
			b.Allocation = ask.Allocation
		}
		if ask.Strategy != 255 {
			if b.Strategy = ask.Strategy; b.Strategy == job.WhileInFlight {
				b.Duration, b.Burst = 0, 0
			}
		}
		if ask.Duration != 0 {
			b.Duration = ask.Duration
		}
		if burst {
			b.Burst = ask.Burst
		}
	}, r.end()
}

// BudgetOf is a budget as the wire tells it, and beyond the reference how it is used.
func BudgetOf(s budget.State) wire.BudgetState {
	return wire.BudgetState{
		Key: s.Name, Budget: wire.Budget{
			Allocation: s.Allocation,
			Strategy:   wire.BudgetStrategy{Type: s.Strategy.String(), DurationMS: int64(s.Duration), Burst: s.Burst},
		},
		CreatedAt: int64(s.Created), UpdatedAt: int64(s.Updated), Jobs: s.Jobs, InFlight: s.Out, Available: s.Left, Waiting: s.Waiting,
	}
}

func appendUses(b []byte, list []job.BudgetUse) []byte {
	for i, u := range list {
		b = quote(append(b, [...]string{`,"budgets":[{"key":`, `,{"key":`}[min(i, 1)]...), "", u.Key)
		b = append(number(b, `,"cost":`, u.Cost), '}')
	}
	if len(list) > 0 {
		b = append(b, ']')
	}
	return b
}

// Bindings is a change of what jobs are bound to, as a request asks for it.
type Bindings struct {
	budget.Rebinding
	List []job.BudgetUse // that are bound, to be checked beforehand
}

func rebinding(list []job.BudgetUse, create []job.Budget, change func([]job.BudgetUse) ([]job.BudgetUse, error)) Bindings {
	return Bindings{budget.Rebinding{Change: change, Create: create}, list}
}

// AllBindings reads the body of PUT /jobs/{id}/budgets.
func (r *Reader) AllBindings() (Bindings, error) {
	var list []job.BudgetUse
	var create []job.Budget
	found := false
	r.whole(func(name []byte) {
		if found = found || string(name) == "budgets"; string(name) == "budgets" {
			list, create = r.bindings()
		} else {
			unknown[wire.Enqueue](r, name)
		}
	})
	r.must("budgets", found)
	return rebinding(list, create, func([]job.BudgetUse) ([]job.BudgetUse, error) { return list, nil }), r.end()
}

// NoBindings is what DELETE /jobs/{id}/budgets asks for.
func NoBindings() Bindings {
	return rebinding(nil, nil, func([]job.BudgetUse) ([]job.BudgetUse, error) { return nil, nil })
}

// Bind reads the body of POST and PUT /jobs/{id}/budgets/{key}, which may be
// empty. A new binding is refused where there is one.
func (r *Reader) Bind(key string, anew bool) (Bindings, error) {
	use, create := job.BudgetUse{Key: key, Cost: 1}, []job.Budget(nil)
	var err error
	if r.Body.Len() > 0 {
		r.start()
		use, create = r.binding(key)
		err = r.end()
	}
	return rebinding([]job.BudgetUse{use}, create, func(list []job.BudgetUse) ([]job.BudgetUse, error) {
		at := job.BudgetAt(list, key)
		switch {
		case at >= 0 && anew:
			return nil, job.Errorf(job.Exists, "the job is bound to budget '%s' already", key)
		case at < 0 && len(list) == job.JobBudgets:
			return nil, job.Errorf(job.WrongState, "a job may be bound to %d budgets", job.JobBudgets)
		case at < 0:
			return append(slices.Clip(list), use), nil
		}
		list = slices.Clone(list)
		list[at] = use
		return list, nil
	}), err
}

// Cost reads the body of PATCH /jobs/{id}/budgets/{key}.
func (r *Reader) Cost(key string) (Bindings, error) {
	use := job.BudgetUse{Key: key}
	r.whole(func(name []byte) {
		if string(name) == "cost" {
			use.Cost = int64(r.number("cost", 1, job.BudgetUnits, 0))
		} else {
			unknown[wire.Binding](r, name)
		}
	})
	r.must("cost", use.Cost != 0)
	return rebinding([]job.BudgetUse{use}, nil, func(list []job.BudgetUse) ([]job.BudgetUse, error) {
		at := job.BudgetAt(list, key)
		if at < 0 {
			return nil, notBound(key)
		}
		list = slices.Clone(list)
		list[at] = use
		return list, nil
	}), r.end()
}

// Unbind is what DELETE /jobs/{id}/budgets/{key} asks for.
func Unbind(key string) Bindings {
	return rebinding(nil, nil, func(list []job.BudgetUse) ([]job.BudgetUse, error) {
		at := job.BudgetAt(list, key)
		if at < 0 {
			return nil, notBound(key)
		}
		return slices.Delete(slices.Clone(list), at, at+1), nil
	})
}

func notBound(key string) error {
	e := job.Errorf(job.NotFound, "the job is not bound to budget '%s'", key)
	e.Field = "budgets"
	return e
}

// OfMany is the change as a call over many jobs makes it: jobs that it cannot
// be made to, because they are bound already or are not, stay as they are.
func (b Bindings) OfMany() budget.Rebinding {
	change := b.Change
	b.Change = func(list []job.BudgetUse) ([]job.BudgetUse, error) {
		switch changed, err := change(list); job.KindOf(err) {
		case job.NotFound, job.Exists:
			return list, nil
		default:
			return changed, err
		}
	}
	return b.Rebinding
}

// Rebind changes what the jobs are bound to that the query chooses.
func (b *Bulk) Rebind(ctx context.Context, e *part.Engine, r budget.Rebinding) (n int64, blocked []job.ID, err error) {
	err = bounded(ctx, b.sieve, func(ctx context.Context) error {
		n, blocked, err = e.Budgets.RebindAll(ctx, b.search(), r)
		return err
	})
	return n, blocked, soFar(err, "changed", n)
}

// AppendRebound appends the answer to a call that binds many jobs.
func AppendRebound(b []byte, n int64, blocked []job.ID) []byte {
	b = append(strconv.AppendInt(append(b, `{"changed":`...), n, 10), `,"blocked":[`...)
	for _, id := range blocked {
		b = append(id.AppendTo(append(comma(b), '"')), '"')
	}
	return append(b, `]}`...)
}
