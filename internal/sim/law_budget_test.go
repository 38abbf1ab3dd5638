package sim_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// The laws of budgets (reference 1.17), written without package rule: never
// more units out than the allocation, never more in a window than burst and
// drip, nobody aside while a budget has what the first who waits needs.

const budgetLaw = "budgets"

// drawBudgets are those of a history: one of units at once, one of units in time.
func (w *world) drawBudgets() []job.Budget {
	return []job.Budget{
		{Name: "at once", Allocation: 1 + w.dice.Int64N(3)},
		{
			Name: "in time", Allocation: pick(w, []int64{1, 2}), Strategy: job.TimeBased,
			Duration: pick(w, []job.Millis{job.Second, 4 * job.Second}), Burst: w.dice.Int64N(4),
		},
	}
}

// bind binds a job that is drawn. Its budgets come with it, so it needs none to be there.
func (w *world) bind(put *engine.NewJob) {
	var list []job.BudgetUse
	for _, b := range w.setup.budgets {
		if w.oneIn(3) {
			list = append(list, job.BudgetUse{Key: b.Name, Cost: 1 + w.dice.Int64N(b.Capacity())})
		}
	}
	if list != nil {
		put.Create, put.Job.Extras = w.setup.budgets, put.Job.WithBudgets(list)
	}
}

// units are those that went out of a budget, on the steady clock.
type units struct {
	at  []job.Millis
	n   []int64
	own *job.Budget
}

// missing is what is still to come until the budget is full, in units times its duration.
func (u *units) missing(now job.Millis) (m int64) {
	last := job.Millis(0)
	for i, at := range u.at {
		m = max(0, m-int64(at-last)*u.own.Allocation) + u.n[i]*int64(u.own.Duration)
		last = at
	}
	return max(0, m-int64(now-last)*u.own.Allocation)
}

func (u *units) lets(cost int64, now job.Millis) bool {
	return u.missing(now)+cost*int64(u.own.Duration) <= u.own.Capacity()*int64(u.own.Duration)
}

// budgetOf is a budget of the history, and what went out of it.
func (x *judge) budgetOf(key string) (b *job.Budget, u *units) {
	i := slices.IndexFunc(x.w.setup.budgets, func(b job.Budget) bool { return b.Name == key })
	if i < 0 {
		broken(budgetLaw, "nobody asked for a budget %q", key)
	}
	b = &x.w.setup.budgets[i]
	if x.measured.units[key] == nil {
		x.measured.units[key] = &units{own: b}
	}
	return b, x.measured.units[key]
}

// out is the units of the runs that go on, by the leases there are.
func (x *judge) out(key string) (n int64) {
	for _, j := range x.book.jobs {
		for _, u := range j.Budgets() {
			if u.Key == key {
				n += u.Cost * int64(len(j.Leases))
			}
		}
	}
	return n
}

func (x *judge) gives(u job.BudgetUse) bool {
	b, went := x.budgetOf(u.Key)
	if b.Strategy == job.TimeBased {
		return went.lets(u.Cost, x.instant)
	}
	return x.out(u.Key)+u.Cost <= x.allotted(b)
}

// waitsFor is the budget that a job is aside for.
func waitsFor(j *job.Job) string {
	key, is := strings.CutPrefix(j.Park, "budget/")
	if !is {
		return ""
	}
	return key
}

// firstFor is who stands foremost among those that wait for a budget.
func (x *judge) firstFor(key string) (first *job.Job) {
	for _, j := range x.book.jobs {
		if waitsFor(j) == key && (first == nil || x.before(j, first)) {
			first = j
		}
	}
	return first
}

// short is the first budget that keeps a job from starting; "" = none.
func (x *judge) short(j *job.Job) string {
	for _, u := range j.Budgets() {
		first := x.firstFor(u.Key)
		if !x.gives(u) || first != nil && first.ID != j.ID && x.before(first, j) {
			return u.Key
		}
	}
	return ""
}

// spend counts a take against the budgets of the job, and holds it to them.
func (s *scene) spend(j *job.Job) {
	for _, u := range j.Budgets() {
		b, went := s.budgetOf(u.Key)
		if !s.gives(u) {
			broken(budgetLaw, "%s was given out for %d units of budget %q, which has not so many: %d are out of %d", s.name(j.ID), u.Cost, u.Key, s.out(u.Key), b.Capacity())
		}
		went.at, went.n = append(went.at, s.steady), append(went.n, u.Cost)
		if b.Strategy == job.TimeBased {
			sum := int64(0)
			for i := len(went.at) - 1; i >= 0; i-- {
				sum += went.n[i]
				if most := b.Capacity()*int64(b.Duration) + int64(s.steady-went.at[i])*b.Allocation; sum*int64(b.Duration) > most {
					broken(budgetLaw, "budget %q gave %d units in %s, and it is %+v", u.Key, sum, s.steady-went.at[i], *b)
				}
			}
		}
		s.coverage.feature("a budget used: " + b.Strategy.String())
	}
}

// budgeted is how a job is put aside for a budget, and comes back.
func (s *scene) budgeted() []*outcome {
	if len(s.old.Budgets()) == 0 || s.new == nil || s.old.Park == s.new.Park {
		return nil
	}
	j := s.old.Clone()
	o := &outcome{why: "its budgets", verb: rule.Patch, want: j, state: j.State}
	switch from, to := waitsFor(s.old), waitsFor(s.new); {
	case from != "" && s.new.Park == "":
		j.Park = ""
		if s.firstFor(from).ID != j.ID { // then somebody else must have asked for it
			return nil
		}
		o.note("returned for a budget")
	case to != "" && s.old.Park == "" && wants(s.old):
		if short := s.short(s.old); short != to {
			broken(budgetLaw, "%s is put aside for budget %q, and short is %q", s.name(j.ID), to, short)
		}
		j.Park = "budget/" + to
		o.note("put aside for a budget")
	default:
		return nil
	}
	return []*outcome{o}
}

// forgetBudget: who is scheduled waits for no budget.
func forgetBudget(o *outcome) {
	if o.want != nil && o.want.State == job.Scheduled && waitsFor(o.want) != "" {
		c := *o.want
		c.Park = ""
		o.want = &c
	}
}

// budgets holds what is kept of each against the jobs, and looks for who waits
// beside units that are free.
func (w *world) budgets() {
	refer := map[string]int64{}
	for _, j := range w.judge.book.jobs {
		for _, u := range j.Budgets() {
			if j.State != job.Done {
				refer[u.Key]++
			}
		}
	}
	for key, row := range w.judge.book.rows {
		if b, ok := row.(*job.Budget); ok && b.Jobs != refer[key.key] {
			broken(budgetLaw, "budget %q says that %d jobs refer to it, and %d do", b.Name, b.Jobs, refer[b.Name])
		}
	}
	if !w.up() {
		return
	}
	for _, b := range w.setup.budgets {
		if first := w.judge.firstFor(b.Name); first != nil {
			for _, u := range first.Budgets() {
				if u.Key == b.Name && w.judge.gives(u) {
					broken(budgetLaw, "%s is aside for budget %q, which has the %d units it needs", w.judge.name(first.ID), b.Name, u.Cost)
				}
			}
		}
	}
}

// budgetRow holds a write of a budget against what the history asks for.
func (x *judge) budgetRow(ch *change) {
	row, ok := ch.row.(*job.Budget)
	if !ok {
		broken(budgetLaw, "budget %q was dropped", ch.key)
	}
	want, _ := x.budgetOf(ch.key)
	same := *row
	same.Jobs, same.Created, same.Updated = 0, 0, 0
	if x.w.allots[same.Allocation] && same.Strategy == job.WhileInFlight {
		same.Allocation = want.Allocation // it was changed to that
	}
	if same != *want {
		broken(budgetLaw, "budget %q is %s, and %s was asked for", ch.key, fmt.Sprintf("%+v", same), fmt.Sprintf("%+v", *want))
	}
}

// hasKey reports whether a job asks for a key of its own.
func hasKey(j *job.Job) bool {
	return j.Extras != nil && (j.Extras.Unique != nil || j.Extras.Batch != nil)
}
