package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// State is a budget and how much of it is out.
type State struct {
	*job.Budget
	Out     int64 // units of the runs that go on
	Left    int64 // units that a run may take now
	Waiting bool  // somebody waits for it
}

// List lists all budgets by key.
func (s *Budgets) List(ctx context.Context) ([]State, error) {
	var out []State
	err := s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		budgets, err := store.Rows[*job.Budget](tx.Store(), "", job.BudgetsMax)
		out = make([]State, 0, len(budgets))
		for _, b := range budgets {
			if err == nil && !b.Gone {
				var is State
				is, err = s.state(tx, b)
				out = append(out, is)
			}
		}
		return err
	})
	return engine.Answered(&out, err)
}

// Get returns one budget, or NotFound.
func (s *Budgets) Get(ctx context.Context, key string) (State, error) {
	var out State
	err := s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		b, err := find(tx, key)
		if err == nil && b == nil {
			err = noBudget(key)
		}
		if err != nil {
			return err
		}
		out, err = s.state(tx, b)
		return err
	})
	return engine.Answered(&out, err)
}

func (s *Budgets) state(tx *engine.Tx, b *job.Budget) (State, error) {
	shown := *b
	shown.Jobs += s.staged.jobs[b.Name]
	u := *s.used(b.Name)
	first, err := firstWaiting(tx, b.Name)
	return State{Budget: &shown, Out: u.Out(), Left: u.Left(b, tx.Steady()), Waiting: first != nil}, err
}

func noBudget(key string) *job.Error {
	return job.Errorf(job.NotFound, "budget '%s' not found", key)
}

// Add makes a budget; Exists if there is one.
func (s *Budgets) Add(ctx context.Context, b job.Budget, by job.Actor) (State, error) {
	return s.change(ctx, b.Name, by, "add budget", func(old *job.Budget) (job.Budget, error) {
		if old != nil {
			return b, job.Errorf(job.Exists, "budget '%s' already exists", b.Name)
		}
		return b, nil
	})
}

// Set makes a budget, or replaces its settings; what is out stays out.
func (s *Budgets) Set(ctx context.Context, b job.Budget, by job.Actor) (State, error) {
	return s.change(ctx, b.Name, by, "set budget", func(*job.Budget) (job.Budget, error) { return b, nil })
}

// Patch changes settings of a budget, or NotFound. edit may run twice.
func (s *Budgets) Patch(ctx context.Context, key string, by job.Actor, edit func(*job.Budget)) (State, error) {
	return s.change(ctx, key, by, "set budget", func(old *job.Budget) (job.Budget, error) {
		if old == nil {
			return job.Budget{}, noBudget(key)
		}
		b := *old
		edit(&b)
		return b, nil
	})
}

func (s *Budgets) change(ctx context.Context, key string, by job.Actor, action string, change func(old *job.Budget) (job.Budget, error)) (State, error) {
	var out State
	if err := s.enoughForJobs(ctx, key, change); err != nil {
		return out, err
	}
	err := s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		old, err := find(tx, key)
		if err != nil {
			return err
		}
		b, err := change(old)
		if err == nil {
			err = b.Check()
		}
		if err == nil && old == nil {
			err = s.oneMore(0)
		}
		if err == nil && old != nil {
			err = s.enoughForLater(tx, &b)
		}
		if err != nil {
			return err
		}
		if err := s.set(tx, old, &b); err != nil {
			return err
		}
		if err := tx.Audit(by, action, key, 0, budgetChanges(old, &b)...); err != nil {
			return err
		}
		out, err = s.state(tx, &b)
		return err
	})
	return engine.Answered(&out, err)
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

// set writes a budget in place of old, nil = a new one.
func (s *Budgets) set(tx *engine.Tx, old, b *job.Budget) error {
	now := tx.Now()
	b.Created, b.Updated, b.Jobs = now, now, 0
	if old != nil {
		b.Created, b.Jobs = old.Created, old.Jobs
	} else if gone, err := row(tx, b.Name); err != nil {
		return err
	} else if gone != nil { // jobs refer to it yet
		b.Jobs = gone.Jobs
	} else {
		s.staged.rows++
	}
	s.touch(b.Name)
	tx.Store().Durable()
	return tx.Store().Set(b)
}

// oneMore refuses more budgets than may be; coming are about to be made.
func (s *Budgets) oneMore(coming int) error {
	if s.rows+s.staged.rows+coming < job.BudgetsMax {
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

func (s *Budgets) laterUse(tx *engine.Tx, key string) (u laterUse, err error) {
	list, err := tx.Templates()
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
func (s *Budgets) enoughForLater(tx *engine.Tx, b *job.Budget) error {
	u, err := s.laterUse(tx, b.Name)
	if err == nil && u.cost > b.Capacity() {
		err = &job.Error{Kind: job.Unprocessable, Field: "allocation", Text: fmt.Sprintf(
			"budget '%s' cannot have a capacity of %d: %s costs %d; change that first", b.Name, b.Capacity(), u.example, u.cost)}
	}
	return err
}

// enoughForJobs refuses a capacity below the cost of an unfinished job, as Zizq
// does. It looks before the change is made: a job that comes meanwhile takes all
// there is.
func (s *Budgets) enoughForJobs(ctx context.Context, key string, change func(*job.Budget) (job.Budget, error)) error {
	var old *job.Budget
	var least, jobs int64 // of one that is gone, too: jobs may refer to it yet
	err := s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		row, err := row(tx, key)
		if old, least, jobs = nil, math.MaxInt64, 0; err != nil || row == nil {
			return err
		}
		if jobs = row.Jobs + s.staged.jobs[key]; !row.Gone {
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
	return query.Of(s.engine).Each(ctx, query.Search{
		Filter: engine.Filter{States: []job.State{job.Scheduled, job.Ready, job.Leased}},
		Where:  func(j *job.Job) bool { return costOf(j, key) > b.Capacity() },
	}, func(l query.Listed) (bool, error) {
		return false, &job.Error{Kind: job.Unprocessable, Field: "allocation", Text: fmt.Sprintf(
			"budget '%s' cannot have a capacity of %d: job %s costs %d; finish, delete or rebind it first", key, b.Capacity(), l.Job.ID, costOf(l.Job, key))}
	})
}

// deadOf counts the dead jobs that a budget counts. They do not run unless
// somebody replays them.
func (s *Budgets) deadOf(ctx context.Context, key string) (n int64, err error) {
	if b, err := s.Get(ctx, key); err != nil || b.Jobs == 0 {
		return 0, err
	}
	err = query.Of(s.engine).Each(ctx, query.Search{
		Filter: engine.Filter{States: []job.State{job.Dead}},
		Where:  func(j *job.Job) bool { return costOf(j, key) > 0 },
	}, func(query.Listed) (bool, error) { n++; return true, nil })
	return n, err
}

// Delete forgets a budget: NotFound, or Exists while unfinished jobs or
// cron entries use it. Dead jobs that are replayed later do without it, unless it is made again.
func (s *Budgets) Delete(ctx context.Context, key string, by job.Actor) error {
	dead, err := s.deadOf(ctx, key)
	if err != nil {
		return err
	}
	return s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		b, err := find(tx, key)
		if err == nil && b == nil {
			err = noBudget(key)
		}
		if err != nil {
			return err
		}
		if n := b.Jobs + s.staged.jobs[key] - dead; n > 0 {
			return job.Errorf(job.Exists, "budget '%s' is still referred to by unfinished jobs (%d); delete them, or wait until they are done", key, n)
		}
		if u, err := s.laterUse(tx, key); err != nil || u.jobs > 0 {
			return cmp.Or(err, error(job.Errorf(job.Exists, "budget '%s' is still used by %d jobs that are enqueued later, such as that of %s; change or delete these first", key, u.jobs, u.example)))
		}
		if err := s.drop(tx, b); err != nil {
			return err
		}
		return tx.Audit(by, "delete budget", key, 0)
	})
}

func (s *Budgets) drop(tx *engine.Tx, b *job.Budget) error {
	tx.Store().Durable()
	s.used(b.Name).Refill()
	s.touch(b.Name)
	if b.Jobs+s.staged.jobs[b.Name] > 0 {
		gone := *b
		gone.Gone = true
		return tx.Store().Set(&gone)
	}
	s.staged.rows--
	return tx.Store().Unset(job.Budgets, b.Name)
}

// wipe forgets all budgets that no job refers to: after a reset those that are left
// came in meanwhile.
func (s *Budgets) wipe(tx *engine.Tx, _ int) (left bool, err error) {
	return false, store.EachRow(tx.Store(), "", func(b *job.Budget) error {
		if b.Jobs+s.staged.jobs[b.Name] > 0 {
			return nil
		}
		return s.drop(tx, b)
	})
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
func (s *Budgets) Rebind(ctx context.Context, by job.Actor, id job.ID, b Rebinding) (*job.Job, error) {
	var out *job.Job
	err := s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		j, err := engine.JobOf(tx.Store(), id)
		if err != nil {
			return err
		}
		out, err = s.rebind(tx, j, &b)
		if err == errSame { //nolint:errorlint // ours, and never wrapped
			return nil
		}
		if err != nil {
			return err
		}
		return tx.Audit(by, "rebind", id.String(), 1)
	})
	return engine.Answered(&out, err)
}

func (s *Budgets) rebind(tx *engine.Tx, j *job.Job, b *Rebinding) (*job.Job, error) {
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
	make, err := s.admit(tx, nil, list, b.Create)
	if err != nil {
		return j, err
	}
	if err := s.make(tx, make); err != nil {
		return j, err
	}
	tx.Store().Durable()
	eff, err := tx.Step(j, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) {
		if n.Extras = j.WithBudgets(list); rule.WaitsFor(n) != "" {
			n.Park = "" // it is tried again
		}
	}})
	return eff.Job, err
}

// RebindAll changes what every waiting job is bound to that the search chooses,
// see DeleteAll. Jobs that run are not changed; at most blockedMax of those
// that would have been are named.
func (s *Budgets) RebindAll(ctx context.Context, q query.Search, b Rebinding) (changed int64, blocked []job.ID, err error) {
	stuck := map[job.ID]bool{}
	all := q.Where
	q.Where = func(j *job.Job) bool { return j.State.Open() && (all == nil || all(j)) }
	if len(b.Create) > 0 {
		err := s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
			make, err := s.admit(tx, nil, nil, b.Create)
			if err != nil {
				return err
			}
			return s.make(tx, make)
		})
		if err != nil {
			return 0, nil, err
		}
	}
	changed, _, err = query.Of(s.engine).Bulk(ctx, q, func(tx *engine.Tx, j *job.Job) error {
		if j.State == job.Leased {
			list, err := b.Change(j.Budgets())
			if err == nil && !slices.Equal(list, j.Budgets()) && len(stuck) < blockedMax {
				stuck[j.ID] = true
			}
			return errSame
		}
		_, err := s.rebind(tx, j, &b)
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

// intake looks at the budgets of the jobs of one call.
func (s *Budgets) intake(tx *engine.Tx) engine.Intake {
	var coming map[string]*job.Budget // that are to be made
	return engine.Intake{
		Field: "budgets",
		Admit: func(i int, n *engine.NewJob) (err error) {
			used := n.Job.Budgets()
			if used == nil {
				return nil
			}
			coming, err = s.admit(tx, coming, used, n.Create)
			if missing, ok := errors.AsType[*job.NoBudget](err); ok {
				return &job.NoBudget{Key: missing.Key, Job: i}
			}
			return err
		},
		Make: func() error { return s.make(tx, coming) },
	}
}

// admit refuses a list of bindings that cannot be, and returns known
// with the budgets that are to be made for it.
func (s *Budgets) admit(tx *engine.Tx, known map[string]*job.Budget, list []job.BudgetUse, create []job.Budget) (map[string]*job.Budget, error) {
	for i := range create {
		b := create[i]
		old, err := find(tx, b.Name)
		if err != nil {
			return known, err
		}
		if old != nil || known[b.Name] != nil {
			continue
		}
		if err := cmp.Or(b.Check(), s.oneMore(len(known))); err != nil {
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
			if b, err = find(tx, u.Key); err != nil {
				return known, err
			}
		}
		if err := rule.ChecksOut(b, u); err != nil {
			return known, err
		}
	}
	return known, nil
}

func (s *Budgets) make(tx *engine.Tx, list map[string]*job.Budget) error {
	for _, key := range sorted(list) {
		b := *list[key]
		if err := s.set(tx, nil, &b); err != nil {
			return err
		}
	}
	return nil
}

// Check refuses what RebindAll would refuse for every job.
func (s *Budgets) Check(ctx context.Context, list []job.BudgetUse, create []job.Budget) error {
	return s.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		_, err := s.admit(tx, nil, list, create)
		return err
	})
}
