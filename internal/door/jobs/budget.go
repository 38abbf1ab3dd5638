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
	Allocation member[int64]       `json:"allocation"`
	Strategy   member[strategyAsk] `json:"strategy"`
}

type strategyAsk struct {
	Type       member[string]  `json:"type"`
	DurationMS member[spanned] `json:"duration_ms"`
	Burst      member[int64]   `json:"burst"`
}

// edit writes what is given to a budget: what is left out stays, and null clears
// the burst. path is where it stands. The error joins one for each problem.
func (a *BudgetPatch) edit(b *job.Budget, path string) error {
	bad := []error{notNull(path+"allocation", &a.Allocation), notNull(path+"strategy", &a.Strategy)}
	if a.Allocation.value != nil {
		b.Allocation = *a.Allocation.value
		bad = append(bad, Within(path+"allocation", b.Allocation, 1, job.BudgetUnits))
	}
	s := a.Strategy.value
	if s == nil {
		return errors.Join(bad...)
	}
	path += "strategy."
	bad = append(bad, notNull(path+"type", &s.Type))
	var err error
	if s.Type.value != nil {
		if b.Strategy, err = WordOf(path+"type", *s.Type.value, job.WhileInFlight, job.TimeBased); b.Strategy == job.WhileInFlight {
			b.Duration, b.Burst = 0, 0
		}
		bad = append(bad, err)
	}
	if s.Type.or("") != job.WhileInFlight.String() { // which has none
		bad = append(bad, notNull(path+"duration_ms", &s.DurationMS))
	}
	b.Duration, err = millis(path+"duration_ms", s.DurationMS.value, b.Duration)
	bad = append(bad, err)
	if s.Burst.given {
		if b.Burst = s.Burst.or(0); s.Burst.value != nil {
			bad = append(bad, Within(path+"burst", b.Burst, 1, job.BudgetUnits))
		}
	}
	return errors.Join(bad...)
}

// make is a new budget: what a change may leave out has to be there. The error joins
// one for each problem.
func (a *BudgetPatch) make(key, path string) (job.Budget, error) {
	b := job.Budget{Name: key}
	bad := beside(nil, errors.Join(missing(path+"allocation", a.Allocation.value != nil), missing(path+"strategy", a.Strategy.value != nil)))
	return b, errors.Join(beside(bad, a.edit(&b, path))...)
}

// Budget is the budget that is asked for; a key of the path wins. The error joins one
// for each problem.
func (a *BudgetAsk) Budget(key string) (job.Budget, error) {
	var bad error
	if key == "" && a.Key == nil {
		bad = missing("key", false)
	} else {
		if key == "" {
			key = *a.Key
		}
		bad = CheckName("key", key)
	}
	b, err := a.make(key, "")
	if err = errors.Join(bad, err); err == nil {
		err = b.Check()
	}
	return b, err
}

// Edit is the change of a budget that is asked for. It may be called more than once.
// The error joins one for each problem.
func (a *BudgetPatch) Edit() (func(*job.Budget), error) {
	return func(b *job.Budget) { _ = a.edit(b, "") }, a.edit(&job.Budget{}, "")
}

// BindingAsk is what a body says of one budget that a job is bound to.
type BindingAsk struct {
	Key        *string      `json:"key"`
	Cost       *int64       `json:"cost"`
	CreateWith *BudgetPatch `json:"create_with"`
}

// use is the binding that is asked for, at a path; a key of the call's path wins.
// create is the budget to be made if there is none. The error joins one for each
// problem.
func (a *BindingAsk) use(named, path string) (use job.BudgetUse, create []job.Budget, err error) {
	use = job.BudgetUse{Key: named, Cost: 1}
	var bad []error
	switch {
	case named == "" && a.Key == nil:
		bad = append(bad, missing(path+"key", false))
	case named == "":
		use.Key = *a.Key
		bad = append(bad, CheckName(path+"key", use.Key))
	}
	if a.Cost != nil {
		use.Cost = *a.Cost
		bad = append(bad, Within(path+"cost", use.Cost, 1, job.BudgetUnits))
	}
	if a.CreateWith != nil {
		create, err = a.CreateWith.made(use.Key, path+"create_with.")
	}
	return use, create, errors.Join(append(bad, err)...)
}

// made is the budget that is to be made for a binding.
func (a *BudgetPatch) made(key, path string) ([]job.Budget, error) {
	if !a.Strategy.given { // which it may leave out, other than the calls to budgets
		a.Strategy.value = &strategyAsk{}
	}
	b, err := a.make(key, path)
	if err != nil {
		err = unprocessable(OneRefusal(err))
	} else {
		err = b.Check()
	}
	return []job.Budget{b}, err
}

// budgets reads what a new job is bound to. Unlike BindingsAsk, it reads as fast
// as the rest of an enqueue.
func (r *Reader) budgets(n *engine.NewJob) {
	var list []job.BudgetUse
	r.array("budgets", job.JobBudgets, func() {
		use, made := r.binding()
		r.refused(once(list, use))
		list, n.Create = append(list, use), append(n.Create, made...)
	})
	if len(list) > 0 {
		extrasOf(&n.Job).Budgets = list
	}
}

func (r *Reader) binding() (use job.BudgetUse, create []job.Budget) {
	var with *BudgetPatch
	use.Cost = 1
	r.must("budgets", r.object("budgets", func(name []byte) {
		switch string(name) {
		case "key":
			own := ""
			use.Key = r.name("budgets.key", &own)
		case "cost":
			use.Cost = int64(r.number("budgets.cost", 1, job.BudgetUnits, 1))
		case "create_with":
			if raw := r.given(); raw != nil {
				with = new(BudgetPatch)
				r.refused(read(raw, with, "budgets.create_with", r.tell))
			}
		default:
			unknown[BindingAsk](r, name)
		}
	}))
	if r.must("budgets.key", use.Key != ""); with != nil && r.err == nil {
		made, err := with.made(use.Key, "budgets.create_with.")
		r.refused(err)
		create = made
	}
	return use, create
}

// once refuses a second binding to a budget.
func once(list []job.BudgetUse, use job.BudgetUse) error {
	if job.BudgetAt(list, use.Key) < 0 {
		return nil
	}
	return refuse("budgets", "budgets must not have the key "+strconv.Quote(use.Key)+" twice")
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
	if len(a.Budgets) > job.JobBudgets {
		return Bindings{}, refuse("budgets", "budgets must not have more than "+strconv.Itoa(job.JobBudgets)+" entries")
	}
	var list []job.BudgetUse
	var create []job.Budget
	var bad []error
	for i, ask := range a.Budgets {
		path := "budgets[" + strconv.Itoa(i) + "]"
		if ask == nil {
			bad = append(bad, missing(path, false))
			continue
		}
		use, made, err := ask.use("", path+".")
		if err == nil {
			err = once(list, use)
		}
		bad = append(bad, err)
		list, create = append(list, use), append(create, made...)
	}
	if err := errors.Join(bad...); err != nil {
		return Bindings{}, OneRefusal(err)
	}
	return rebinding(list, create, func([]job.BudgetUse) ([]job.BudgetUse, error) { return list, nil }), nil
}

// NoBindings is what DELETE /jobs/{id}/budgets asks for.
func NoBindings() Bindings {
	return rebinding(nil, nil, func([]job.BudgetUse) ([]job.BudgetUse, error) { return nil, nil })
}

// Bind is what POST and PUT /jobs/{id}/budgets/{key} ask for. A new binding is
// refused where there is one.
func (a *BindingAsk) Bind(key string, anew bool) (Bindings, error) {
	use, create, err := a.use(key, "")
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
	}), OneRefusal(err)
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
	return append(appendIDs(append(number(b, `{"changed":`, n), `,"blocked":`...), blocked), '}')
}
