package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// BudgetState is a budget and how much of it is out.
type BudgetState struct {
	*job.Budget
	Out     int64 // units of the runs that go on
	Left    int64 // units that a run may take now
	Waiting bool  // somebody waits for it
}

// Budgets lists all budgets by key.
func (e *Engine) Budgets(ctx context.Context) ([]BudgetState, error) {
	var out []BudgetState
	err := e.Do(ctx, 0, func(r *Tx) error {
		rows, err := r.tx.Rows(job.Budgets, "", job.BudgetsMax)
		out = make([]BudgetState, 0, len(rows))
		for _, row := range rows {
			if b := row.(*job.Budget); err == nil && !b.Gone {
				var s BudgetState
				s, err = r.budgetState(b)
				out = append(out, s)
			}
		}
		return err
	})
	return Answered(&out, err)
}

// Budget returns one budget, or NotFound.
func (e *Engine) Budget(ctx context.Context, key string) (BudgetState, error) {
	var out BudgetState
	err := e.Do(ctx, 0, func(r *Tx) error {
		b, err := r.budget(key)
		if err == nil && b == nil {
			err = noBudget(key)
		}
		if err != nil {
			return err
		}
		out, err = r.budgetState(b)
		return err
	})
	return Answered(&out, err)
}

func (r *Tx) budgetState(b *job.Budget) (BudgetState, error) {
	shown := *b
	shown.Jobs += r.spending.jobs[b.Name]
	u := *r.usage(b.Name)
	first, err := r.firstWaiting(b.Name)
	return BudgetState{Budget: &shown, Out: u.Out(), Left: u.Left(b, r.steady), Waiting: first != nil}, err
}

func noBudget(key string) *job.Error {
	return job.Errorf(job.NotFound, "budget '%s' not found", key)
}

// AddBudget makes a budget; Exists if there is one.
func (e *Engine) AddBudget(ctx context.Context, b job.Budget, by job.Actor) (BudgetState, error) {
	return e.changeBudget(ctx, b.Name, by, "add budget", func(old *job.Budget) (job.Budget, error) {
		if old != nil {
			return b, job.Errorf(job.Exists, "budget '%s' already exists", b.Name)
		}
		return b, nil
	})
}

// SetBudget makes a budget, or replaces its settings; what is out stays out.
func (e *Engine) SetBudget(ctx context.Context, b job.Budget, by job.Actor) (BudgetState, error) {
	return e.changeBudget(ctx, b.Name, by, "set budget", func(*job.Budget) (job.Budget, error) { return b, nil })
}

// PatchBudget changes settings of a budget, or NotFound. edit may run twice.
func (e *Engine) PatchBudget(ctx context.Context, key string, by job.Actor, edit func(*job.Budget)) (BudgetState, error) {
	return e.changeBudget(ctx, key, by, "set budget", func(old *job.Budget) (job.Budget, error) {
		if old == nil {
			return job.Budget{}, noBudget(key)
		}
		b := *old
		edit(&b)
		return b, nil
	})
}

func (e *Engine) changeBudget(ctx context.Context, key string, by job.Actor, action string, change func(old *job.Budget) (job.Budget, error)) (BudgetState, error) {
	var out BudgetState
	if err := e.enoughForJobs(ctx, key, change); err != nil {
		return out, err
	}
	err := e.Do(ctx, 0, func(r *Tx) error {
		old, err := r.budget(key)
		if err != nil {
			return err
		}
		b, err := change(old)
		if err == nil {
			err = b.Check()
		}
		if err == nil && old == nil {
			err = r.oneMoreBudget(0)
		}
		if err == nil && old != nil {
			err = r.enoughForLater(&b)
		}
		if err != nil {
			return err
		}
		if err := r.setBudget(old, &b); err != nil {
			return err
		}
		if err := r.Audit(by, action, key, 0, budgetChanges(old, &b)...); err != nil {
			return err
		}
		out, err = r.budgetState(&b)
		return err
	})
	return Answered(&out, err)
}

// budgetChanges names what differs, for the audit log; old nil = nothing was there.
func budgetChanges(old, b *job.Budget) (list []job.Change) {
	tell := func(field string, of func(*job.Budget) string) {
		from := "null"
		if old != nil {
			from = of(old)
		}
		if to := of(b); from != to {
			list = append(list, job.Change{Field: field, From: from, To: to})
		}
	}
	tell("allocation", func(b *job.Budget) string { return strconv.FormatInt(b.Allocation, 10) })
	tell("strategy.type", func(b *job.Budget) string { return `"` + b.Strategy.String() + `"` })
	tell("strategy.duration_ms", func(b *job.Budget) string { return orNull(int64(b.Duration)) })
	tell("strategy.burst", func(b *job.Budget) string { return orNull(b.Burst) })
	return list
}

func orNull(n int64) string {
	if n == 0 {
		return "null"
	}
	return strconv.FormatInt(n, 10)
}

// setBudget writes a budget in place of old, nil = a new one.
func (r *Tx) setBudget(old, b *job.Budget) error {
	b.Created, b.Updated, b.Jobs = r.now, r.now, 0
	if old != nil {
		b.Created, b.Jobs = old.Created, old.Jobs
	} else if gone, err := r.budgetRow(b.Name); err != nil {
		return err
	} else if gone != nil { // jobs refer to it yet
		b.Jobs = gone.Jobs
	} else {
		r.spending.rows++
	}
	r.touch(b.Name)
	r.tx.Durable()
	return r.tx.Set(b)
}

// oneMoreBudget refuses more budgets than may be; coming are about to be made.
func (r *Tx) oneMoreBudget(coming int) error {
	if r.c.budgets.rows+r.spending.rows+coming < job.BudgetsMax {
		return nil
	}
	return &job.Error{
		Kind: job.OverLimit, Field: "budgets",
		Text: job.Errorf(job.OverLimit, "there may be %d budgets; delete those that no job refers to", job.BudgetsMax).Text,
	}
}

// laterUse is how jobs that parts put later use a budget.
type laterUse struct {
	jobs    int
	cost    int64  // the highest
	example string // one with that cost
}

func (r *Tx) laterUse(key string) (u laterUse, err error) {
	list, err := r.e.parts.templates(r.tx)
	for _, t := range list {
		if cost := costOf(t.Job, key); cost > 0 {
			if u.jobs++; cost > u.cost {
				u.cost, u.example = cost, t.Name
			}
		}
	}
	return u, err
}

// enoughForLater refuses settings under which jobs that parts put later could never
// be enqueued.
func (r *Tx) enoughForLater(b *job.Budget) error {
	u, err := r.laterUse(b.Name)
	if err == nil && u.cost > b.Capacity() {
		err = &job.Error{Kind: job.Unprocessable, Field: "allocation", Text: fmt.Sprintf(
			"budget '%s' cannot have a capacity of %d: %s costs %d; change that first", b.Name, b.Capacity(), u.example, u.cost)}
	}
	return err
}

// enoughForJobs refuses a capacity below the cost of an unfinished job, as Zizq
// does. It looks before the change is made: a job that comes meanwhile takes all
// there is.
func (e *Engine) enoughForJobs(ctx context.Context, key string, change func(*job.Budget) (job.Budget, error)) error {
	var old *job.Budget
	var least, jobs int64 // of one that is gone, too: jobs may refer to it yet
	err := e.Do(ctx, 0, func(r *Tx) error {
		row, err := r.budgetRow(key)
		if old, least, jobs = nil, math.MaxInt64, 0; err != nil || row == nil {
			return err
		}
		if jobs = row.Jobs + r.spending.jobs[key]; !row.Gone {
			was := *row
			old, least = &was, was.Capacity()
		}
		return nil
	})
	if err != nil || jobs == 0 {
		return err
	}
	b, err := change(old)
	if err != nil || b.Check() != nil || b.Capacity() >= least {
		return nil //nolint:nilerr // the change itself says what is wrong
	}
	return e.Each(ctx, Search{
		Filter: Filter{States: []job.State{job.Scheduled, job.Ready, job.Leased}},
		Where:  func(j *job.Job) bool { return costOf(j, key) > b.Capacity() },
	}, func(l Listed) (bool, error) {
		return false, &job.Error{Kind: job.Unprocessable, Field: "allocation", Text: fmt.Sprintf(
			"budget '%s' cannot have a capacity of %d: job %s costs %d; finish, delete or rebind it first", key, b.Capacity(), l.Job.ID, costOf(l.Job, key))}
	})
}

// deadOf counts the dead jobs that a budget counts. They do not run unless
// somebody replays them.
func (e *Engine) deadOf(ctx context.Context, key string) (n int64, err error) {
	if b, err := e.Budget(ctx, key); err != nil || b.Jobs == 0 {
		return 0, err
	}
	err = e.Each(ctx, Search{
		Filter: Filter{States: []job.State{job.Dead}},
		Where:  func(j *job.Job) bool { return costOf(j, key) > 0 },
	}, func(Listed) (bool, error) { n++; return true, nil })
	return n, err
}

// DeleteBudget forgets a budget: NotFound, or Exists while unfinished jobs or
// cron entries use it. Dead jobs that are replayed later do without it, unless it is made again.
func (e *Engine) DeleteBudget(ctx context.Context, key string, by job.Actor) error {
	dead, err := e.deadOf(ctx, key)
	if err != nil {
		return err
	}
	return e.Do(ctx, 0, func(r *Tx) error {
		b, err := r.budget(key)
		if err == nil && b == nil {
			err = noBudget(key)
		}
		if err != nil {
			return err
		}
		if n := b.Jobs + r.spending.jobs[key] - dead; n > 0 {
			return job.Errorf(job.Exists, "budget '%s' is still referred to by unfinished jobs (%d); delete them, or wait until they are done", key, n)
		}
		if u, err := r.laterUse(key); err != nil || u.jobs > 0 {
			return cmp.Or(err, error(job.Errorf(job.Exists, "budget '%s' is still used by %d jobs that are enqueued later, such as that of %s; change or delete these first", key, u.jobs, u.example)))
		}
		if err := r.dropBudget(b); err != nil {
			return err
		}
		return r.Audit(by, "delete budget", key, 0)
	})
}

func (r *Tx) dropBudget(b *job.Budget) error {
	r.tx.Durable()
	r.usage(b.Name).Refill()
	r.touch(b.Name)
	if b.Jobs+r.spending.jobs[b.Name] > 0 {
		gone := *b
		gone.Gone = true
		return r.tx.Set(&gone)
	}
	r.spending.rows--
	return r.tx.Unset(job.Budgets, b.Name)
}

// resetBudgets forgets all budgets that no job refers to: after a reset those
// that are left came in meanwhile.
func (e *Engine) resetBudgets(ctx context.Context) error {
	for after, left := "", true; left; {
		last := after
		err := e.Do(ctx, 0, func(r *Tx) error {
			rows, err := r.tx.Rows(job.Budgets, after, searchPage)
			for _, row := range rows {
				b := row.(*job.Budget)
				if last = b.Name; b.Jobs+r.spending.jobs[last] > 0 {
					continue
				}
				if err := r.dropBudget(b); err != nil {
					return err
				}
			}
			left = len(rows) == searchPage
			return err
		})
		if err != nil {
			return err
		}
		after = last
	}
	return nil
}

// Rebinding changes what a job is bound to. It gets the list and may not change
// it in place; none = nothing. It may run twice. create holds budgets that are
// made if they do not exist.
type Rebinding struct {
	Change func(list []job.BudgetUse) ([]job.BudgetUse, error)
	Create []job.Budget
}

// errSame says that a job is bound already as it shall be.
var errSame = job.Errorf(job.WrongState, "nothing changes")

// Rebind changes what a waiting job is bound to; others are refused with
// WrongState, and so are unknown budgets and costs above a capacity.
func (e *Engine) Rebind(ctx context.Context, by job.Actor, id job.ID, b Rebinding) (*job.Job, error) {
	var out *job.Job
	err := e.Do(ctx, 0, func(r *Tx) error {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if !Visible(r.tx, j) {
			return NoJob(id)
		}
		out, err = r.rebind(j, &b)
		if err == errSame { //nolint:errorlint // ours, and never wrapped
			return nil
		}
		if err != nil {
			return err
		}
		return r.Audit(by, "rebind", id.String(), 1)
	})
	return Answered(&out, err)
}

func (r *Tx) rebind(j *job.Job, b *Rebinding) (*job.Job, error) {
	list, err := b.Change(j.Budgets())
	if err != nil {
		return j, err
	}
	if err := rule.MayRebind(j); err != nil {
		return j, err
	}
	if slices.Equal(list, j.Budgets()) {
		return j, errSame
	}
	make, err := r.admitBudgets(nil, list, b.Create)
	if err != nil {
		return j, err
	}
	if err := r.makeBudgets(make); err != nil {
		return j, err
	}
	r.tx.Durable()
	eff, err := r.Step(j, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) {
		if n.Extras = j.WithBudgets(list); rule.WaitsFor(n) != "" {
			n.Park = "" // it is tried again
		}
	}})
	return eff.Job, err
}

// RebindAll changes what every waiting job is bound to that the search chooses,
// see DeleteAll. Jobs that run are not changed; at most blockedMax of those
// that would have been are named.
func (e *Engine) RebindAll(ctx context.Context, s Search, b Rebinding) (changed int64, blocked []job.ID, err error) {
	stuck := map[job.ID]bool{}
	all := s.Where
	s.Where = func(j *job.Job) bool { return j.State.Open() && (all == nil || all(j)) }
	if len(b.Create) > 0 {
		err := e.Do(ctx, 0, func(r *Tx) error {
			make, err := r.admitBudgets(nil, nil, b.Create)
			if err != nil {
				return err
			}
			return r.makeBudgets(make)
		})
		if err != nil {
			return 0, nil, err
		}
	}
	changed, _, err = e.bulk(ctx, s, func(r *Tx, j *job.Job) error {
		if j.State == job.Leased {
			list, err := b.Change(j.Budgets())
			if err == nil && !slices.Equal(list, j.Budgets()) && len(stuck) < blockedMax {
				stuck[j.ID] = true
			}
			return errSame
		}
		_, err := r.rebind(j, &b)
		return err
	})
	for id := range stuck {
		blocked = append(blocked, id)
	}
	slices.SortFunc(blocked, func(a, b job.ID) int { return cmp.Compare(a.String(), b.String()) })
	return changed, blocked, err
}

// blockedMax bounds the jobs that RebindAll names.
const blockedMax = 10_000

// admitBudgets refuses a list of bindings that cannot be, and returns known
// with the budgets that are to be made for it.
func (r *Tx) admitBudgets(known map[string]*job.Budget, list []job.BudgetUse, create []job.Budget) (map[string]*job.Budget, error) {
	for i := range create {
		b := create[i]
		old, err := r.budget(b.Name)
		if err != nil {
			return known, err
		}
		if old != nil || known[b.Name] != nil {
			continue
		}
		if err := cmp.Or(b.Check(), r.oneMoreBudget(len(known))); err != nil {
			return known, err
		}
		if known == nil {
			known = map[string]*job.Budget{}
		}
		known[b.Name] = &b
	}
	for _, u := range list {
		b := known[u.Key]
		if b == nil {
			var err error
			if b, err = r.budget(u.Key); err != nil {
				return known, err
			}
		}
		if err := rule.ChecksOut(b, u); err != nil {
			return known, err
		}
	}
	return known, nil
}

func (r *Tx) makeBudgets(list map[string]*job.Budget) error {
	for _, key := range sortedKeys(list) {
		b := *list[key]
		if err := r.setBudget(nil, &b); err != nil {
			return err
		}
	}
	return nil
}

// CheckBinding refuses what RebindAll would refuse for every job.
func (e *Engine) CheckBinding(ctx context.Context, list []job.BudgetUse, create []job.Budget) error {
	return e.Do(ctx, 0, func(r *Tx) error {
		_, err := r.admitBudgets(nil, list, create)
		return err
	})
}
