package jobs

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/budget"
	"github.com/reprisehq/reprise/wire"
)

// BudgetAsk is the body of POST and PUT /budgets/{key}, and of POST /budgets,
// which has the key in it.
type BudgetAsk struct {
	Key *string `json:"key"`
	BudgetPatch
}

// BudgetPatch is the body of PATCH /budgets/{key}.
type BudgetPatch struct {
	Allocation *int64       `json:"allocation"`
	Strategy   *strategyAsk `json:"strategy"`
}

type strategyAsk struct {
	Type       *string       `json:"type"`
	DurationMS *uint64       `json:"duration_ms"`
	Burst      member[int64] `json:"burst"`
}

// edit writes what is given to a budget: what is left out stays, and null clears
// the burst. path is where it stands.
func (a *BudgetPatch) edit(b *job.Budget, path string) error {
	var bad []error
	if a.Allocation != nil {
		b.Allocation = *a.Allocation
		bad = append(bad, Within(path+"allocation", b.Allocation, 1, job.BudgetUnits))
	}
	s := a.Strategy
	if s == nil {
		return errors.Join(bad...)
	}
	path += "strategy."
	var err error
	if s.Type != nil {
		if b.Strategy, err = WordOf(path+"type", *s.Type, job.WhileInFlight, job.TimeBased); b.Strategy == job.WhileInFlight {
			b.Duration, b.Burst = 0, 0
		}
		bad = append(bad, err)
	}
	b.Duration, err = millis(path+"duration_ms", s.DurationMS, 1, b.Duration)
	bad = append(bad, err)
	if s.Burst.given {
		if b.Burst = s.Burst.or(0); s.Burst.value != nil {
			bad = append(bad, Within(path+"burst", b.Burst, 1, job.BudgetUnits))
		}
	}
	return errors.Join(bad...)
}

// Budget is the budget that is asked for; a key of the path wins.
func (a *BudgetAsk) Budget(key string) (job.Budget, error) {
	b := job.Budget{Name: key}
	bad := []error{nil, missing("allocation", a.Allocation != nil), missing("strategy", a.Strategy != nil), a.edit(&b, "")}
	if key == "" && a.Key != nil {
		b.Name = *a.Key
	}
	if key == "" && a.Key == nil {
		bad[0] = missing("key", false)
	} else {
		bad[0] = CheckName("key", b.Name)
	}
	if err := errors.Join(bad...); err != nil {
		return b, unprocessable(OneRefusal(err))
	}
	return b, b.Check()
}

// Edit is the change of a budget that is asked for. It may be called more than once.
func (a *BudgetPatch) Edit() (func(*job.Budget), error) {
	err := a.edit(&job.Budget{}, "")
	return func(b *job.Budget) { _ = a.edit(b, "") }, unprocessable(OneRefusal(err))
}

// BindingAsk is what a body says of one budget that a job is bound to.
type BindingAsk struct {
	Key        *string      `json:"key"`
	Cost       *int64       `json:"cost"`
	CreateWith *BudgetPatch `json:"create_with"`
}

// use is the binding that is asked for; a key of the path wins. create is the
// budget to be made if there is none.
func (a *BindingAsk) use(named string) (use job.BudgetUse, create []job.Budget, err error) {
	use = job.BudgetUse{Key: named, Cost: 1}
	var bad []error
	if named == "" && a.Key != nil {
		use.Key = *a.Key
		bad = append(bad, CheckName("budgets.key", use.Key))
	}
	bad = append(bad, missing("budgets.key", use.Key != "" || a.Key != nil))
	if a.Cost != nil {
		use.Cost = *a.Cost
		bad = append(bad, Within("budgets.cost", use.Cost, 1, job.BudgetUnits))
	}
	if err := OneRefusal(errors.Join(bad...)); err != nil || a.CreateWith == nil {
		return use, nil, err
	}
	made := job.Budget{Name: use.Key}
	if err = a.CreateWith.edit(&made, "budgets.create_with."); err == nil {
		err = made.Check()
	}
	return use, []job.Budget{made}, unprocessable(OneRefusal(err))
}

// uses are the bindings of a list. No two are to the same budget.
func uses(asks []*BindingAsk) (list []job.BudgetUse, create []job.Budget, err error) {
	if len(asks) > job.JobBudgets {
		return nil, nil, refuse("budgets", "budgets must not have more than "+strconv.Itoa(job.JobBudgets)+" entries")
	}
	for _, ask := range asks {
		if ask == nil {
			return nil, nil, missing("budgets", false)
		}
		use, made, err := ask.use("")
		if err == nil && job.BudgetAt(list, use.Key) >= 0 {
			err = refuse("budgets", "budgets must not have the key "+strconv.Quote(use.Key)+" twice")
		}
		if err != nil {
			return nil, nil, err
		}
		list, create = append(list, use), append(create, made...)
	}
	return list, create, nil
}

// budgets reads what a new job is bound to.
func (r *Reader) budgets(n *engine.NewJob) {
	var asks []*BindingAsk
	r.array("budgets", job.JobBudgets, func() {
		var ask *BindingAsk
		if raw := r.value(); raw != nil {
			r.refused(read(raw, &ask, "budgets", r.tell))
		}
		asks = append(asks, ask)
	})
	if r.err != nil || asks == nil {
		return
	}
	list, create, err := uses(asks)
	r.refused(err)
	if n.Create = create; len(list) > 0 {
		extrasOf(&n.Job).Budgets = list
	}
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

// BindingsAsk is the body of PUT /jobs/{id}/budgets.
type BindingsAsk struct {
	Budgets []*BindingAsk `json:"budgets"`
}

// All is what it asks for: these, and no others.
func (a *BindingsAsk) All() (Bindings, error) {
	if a.Budgets == nil {
		return Bindings{}, missing("budgets", false)
	}
	list, create, err := uses(a.Budgets)
	return rebinding(list, create, func([]job.BudgetUse) ([]job.BudgetUse, error) { return list, nil }), err
}

// NoBindings is what DELETE /jobs/{id}/budgets asks for.
func NoBindings() Bindings {
	return rebinding(nil, nil, func([]job.BudgetUse) ([]job.BudgetUse, error) { return nil, nil })
}

// Bind is what POST and PUT /jobs/{id}/budgets/{key} ask for. A new binding is
// refused where there is one.
func (a *BindingAsk) Bind(key string, anew bool) (Bindings, error) {
	use, create, err := a.use(key)
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

// BindingCost is the body of PATCH /jobs/{id}/budgets/{key}.
type BindingCost struct {
	Cost *int64 `json:"cost"`
}

// Change is what it asks for.
func (a *BindingCost) Change(key string) (Bindings, error) {
	if a.Cost == nil {
		return Bindings{}, missing("cost", false)
	}
	use := job.BudgetUse{Key: key, Cost: *a.Cost}
	return rebinding([]job.BudgetUse{use}, nil, func(list []job.BudgetUse) ([]job.BudgetUse, error) {
		at := job.BudgetAt(list, key)
		if at < 0 {
			return nil, notBound(key)
		}
		list = slices.Clone(list)
		list[at] = use
		return list, nil
	}), Within("cost", use.Cost, 1, job.BudgetUnits)
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
