package client

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// budget is what the fake knows of budgets: settings and who refers to them.
func (f *fake) budget(w http.ResponseWriter, r *http.Request, path []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(path) == 0 {
		f.write(w, 200, wire.Budgets{Budgets: slices.Clone(f.budgets)})
		return
	}
	at := slices.IndexFunc(f.budgets, func(b wire.BudgetState) bool { return b.Key == path[0] })
	if r.Method == "PUT" {
		if at < 0 {
			at = len(f.budgets)
			f.budgets = append(f.budgets, wire.BudgetState{Key: path[0]})
		}
		b := &f.budgets[at]
		b.Budget = wire.Budget{}
		f.read(r, &b.Budget)
		b.Available = b.Allocation
	}
	switch {
	case at < 0:
		f.fail(w, 404, wire.CodeNotFound)
	case r.Method == "DELETE" && slices.ContainsFunc(f.jobs, func(j *fakeJob) bool {
		return slices.ContainsFunc(j.Budgets, func(b wire.Binding) bool { return b.Key == path[0] })
	}):
		f.fail(w, 409, wire.CodeExists)
	case r.Method == "DELETE":
		f.budgets = slices.Delete(f.budgets, at, at+1)
		w.WriteHeader(204)
	default:
		f.write(w, 200, f.budgets[at])
	}
}

func TestBudgetsAreSetReadAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newFake(t, Options{})
		b, err := c.SetBudget(t.Context(), "api", Per(10, 1500*time.Microsecond))
		if err != nil || b.Key != "api" || b.Allocation != 10 || b.Strategy != (wire.BudgetStrategy{Type: "time_based", DurationMS: 2}) {
			t.Fatalf("%+v, %v", b, err)
		}
		if b, err = c.SetBudget(t.Context(), "api", AtOnce(3)); err != nil || b.Strategy != (wire.BudgetStrategy{Type: "while_in_flight"}) {
			t.Fatalf("%+v, %v", b, err)
		}
		if _, err := c.Enqueue(t.Context(), Job{Queue: "q", Type: "t", Budgets: []wire.Binding{{Key: "api", Cost: 2}}}); err != nil {
			t.Fatal(err)
		}
		n, err := c.Count(t.Context(), Filter{Budgets: []string{"api"}})
		if none, _ := c.Count(t.Context(), Filter{Budgets: []string{"other"}}); err != nil || n != 1 || none != 0 {
			t.Errorf("%d jobs are bound to api, %d to another, %v", n, none, err)
		}
		if err := c.DeleteBudget(t.Context(), "api"); CodeOf(err) != wire.CodeExists {
			t.Errorf("deleted under its jobs: %v", err)
		}
		list, err := c.Budgets(t.Context())
		if err != nil || len(list) != 1 || list[0].Key != "api" {
			t.Errorf("%+v, %v", list, err)
		}
		if _, err := c.Budget(t.Context(), "other"); CodeOf(err) != wire.CodeNotFound {
			t.Error(err)
		}
	})
}
