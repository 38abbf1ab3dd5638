package model

import (
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/budget"
)

// The model knows of a budget what is out: the costs of the leases that live,
// counted anew each time. A job that lacks units keeps those units from all who
// stand behind it (zizq.md 1.17). Bound are jobs of one queue without groups, so
// that everybody who looks at one of them looks at all of them.

// canBind reports whether a job may be bound here.
func canBind(j *job.Job) bool {
	return j.Queue == "plain" && j.Group == "" && j.Copies <= 1 && (j.Extras == nil || j.Extras.Batch == nil)
}

// setBudgets changes what a job is bound to, and leaves its other extras.
func setBudgets(j *job.Job, list []job.BudgetUse) {
	x := job.Extras{Budgets: list}
	if o := j.Extras; o != nil {
		x.Unique, x.Batch, x.Progress, x.Result = o.Unique, o.Batch, o.Progress, o.Result
	}
	if j.Extras = &x; len(list) == 0 && x.Unique == nil && x.Batch == nil && x.Progress == nil && x.Result == nil {
		j.Extras = nil
	}
}

func (m *model) out(key string) (n int64) {
	for _, j := range m.jobs {
		for _, u := range j.Budgets() {
			if u.Key == key {
				n += u.Cost * int64(len(j.Leases))
			}
		}
	}
	return n
}

// lacks is the first budget that keeps a job from running: it has too little, or
// somebody before the job waits for it.
func (m *model) lacks(j *job.Job, waited map[string]bool) string {
	for _, u := range j.Budgets() {
		if units := m.budgets[u.Key]; waited[u.Key] || units-m.out(u.Key) < min(u.Cost, units) {
			return u.Key
		}
	}
	return ""
}

// firstWithUnits is the foremost job of a line that lacks nothing.
func (m *model) firstWithUnits(line []*job.Job) *job.Job {
	slices.SortFunc(line, before)
	waited := map[string]bool{}
	for _, j := range line {
		key := m.lacks(j, waited)
		if key == "" {
			return j
		}
		waited[key] = true
	}
	return nil
}

func (w *world) drawBudgets(t *rapid.T) []job.BudgetUse {
	return one(t, "budgets", nil, nil, nil,
		[]job.BudgetUse{{Key: "b", Cost: 1}}, []job.BudgetUse{{Key: "b", Cost: 2}},
		[]job.BudgetUse{{Key: "b", Cost: 1}, {Key: "c", Cost: 1}}, []job.BudgetUse{{Key: "c", Cost: 1}})
}

// noBudgets: a reset took them, too. They are made anew.
func (w *world) noBudgets() {
	list, err := w.Budgets.List(w.Context())
	w.must(err)
	if len(list) > 0 {
		w.Fatalf("%d budgets outlive a reset", len(list))
	}
	w.beginBudgets()
}

// beginBudgets makes the budgets of a history.
func (w *world) beginBudgets() {
	w.model.budgets = map[string]int64{}
	w.allocate("b", 2)
	w.allocate("c", 1)
}

func (w *world) allocate(key string, units int64) {
	_, err := w.Budgets.Set(w.Context(), job.Budget{Name: key, Allocation: units}, job.Actor{})
	w.must(err)
	w.model.budgets[key] = units
}

// setBudget changes a budget, or tries to delete it.
func (w *world) setBudget(t *rapid.T) {
	key := one(t, "key", "b", "c")
	open := w.model.openBound(key)
	if rapid.Bool().Draw(t, "delete") {
		want := accepted
		if open > 0 {
			want = job.Exists
		}
		if w.refused("delete budget", w.Budgets.Delete(w.Context(), key, job.Actor{}), want) {
			return
		}
	}
	w.allocate(key, one[int64](t, "units", 2, 3, 4))
}

// rebind binds a job anew.
func (w *world) rebind(t *rapid.T) {
	id, list := w.anyID(t), w.drawBudgets(t)
	j := w.model.jobs[id]
	if j != nil && !canBind(j) {
		t.SkipNow()
	}
	want := accepted
	switch {
	case j == nil:
		want = job.NotFound
	case j.State != job.Ready && j.State != job.Scheduled:
		want = job.WrongState
	}
	_, err := w.Budgets.Rebind(w.Context(), job.Actor{}, id, budget.Rebinding{
		Change: func([]job.BudgetUse) ([]job.BudgetUse, error) { return list, nil },
	})
	if !w.refused("rebind", err, want) {
		setBudgets(j, list)
	}
}

// bound is how many jobs refer to a budget.
func (m *model) bound(key string) (n int64) {
	for _, j := range m.jobs {
		if j.State != job.Done && job.BudgetAt(j.Budgets(), key) >= 0 {
			n++
		}
	}
	return n
}

// openBound is how many of them are not dead: those keep a budget from being deleted.
func (m *model) openBound(key string) (n int64) {
	for _, j := range m.jobs {
		if !j.State.Terminal() && job.BudgetAt(j.Budgets(), key) >= 0 {
			n++
		}
	}
	return n
}

// budgets compares how each budget is used.
func (w *world) budgets() {
	list, err := w.Budgets.List(w.Context())
	w.must(err)
	keys := slices.Sorted(maps.Keys(w.model.budgets))
	if len(list) != len(keys) {
		w.Fatalf("there are %d budgets, want %v", len(list), keys)
	}
	for i, key := range keys {
		b, out, units := list[i], w.model.out(key), w.model.budgets[key]
		if b.Name != key || b.Allocation != units || b.Out != out || b.Left != max(0, units-out) || b.Jobs != w.model.bound(key) {
			w.Fatalf("budget %s of %d has %d out, %d left and %d jobs; want %s of %d with %d out and %d jobs",
				b.Name, b.Allocation, b.Out, b.Left, b.Jobs, key, units, out, w.model.bound(key))
		}
	}
}
