package budget_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/budget"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// every makes a budget time-based.
func every(span job.Millis, burst int64) func(*job.Budget) {
	return func(b *job.Budget) { b.Strategy, b.Duration, b.Burst = job.TimeBased, span, burst }
}

func (r *rig) parked(label string) (names string) {
	r.Helper()
	err := r.Mem.View(r.Context(), func(v store.Reader) error {
		ids, err := v.IDs(store.Parked(label), 1000)
		var list []string
		for _, id := range ids {
			list = append(list, r.Names[id])
		}
		names = strings.Join(list, " ")
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return names
}

func (r *rig) waits(key, want string) {
	r.Helper()
	r.Pass(0)
	if got := r.parked(rule.BudgetPark(key)); got != want {
		r.Fatalf("for budget %s wait [%s], want [%s]", key, got, want)
	}
}

func TestABudgetBoundsWhatRunsAtOnceAndTheNextCandidateIsTried(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 2)
		for _, name := range []string{"a", "b", "c", "d"} {
			r.Add("q", name, costs("k", 1))
		}
		r.AddAll("q", "free")
		w := r.Anonymous(9)
		w.Gets("a", "b", "free")
		r.Spent("k", 2, 4)
		r.waits("k", "c d")
		if j := r.Expect("c", job.Ready); j.Attempts != 0 || j.Deliveries != 0 {
			r.Errorf("who waits was charged: %+v", j)
		}
		w.OK("a")
		w.Gets("c")
		w.Fails("b") // any end of a lease gives back
		w.Gets("d")
		r.Spent("k", 2, 3)
		r.waits("k", "")
	})
}

func TestUnitsComeBackAtEveryEndOfALease(t *testing.T) {
	ends := map[string]func(r *rig, s *stream){
		"ok":      func(_ *rig, s *stream) { s.OK("a") },
		"failure": func(_ *rig, s *stream) { s.Fails("a") },
		"dead":    func(r *rig, s *stream) { r.Settled(s.Held["a"], job.Died) },
		"release": func(r *rig, s *stream) {
			r.Settled(s.Held["a"], job.Released, func(x *engine.Settle) { x.Delay = job.Hour })
		},
		"disconnect": func(r *rig, s *stream) { s.End(); r.Spent("k", 1, 2) },
		"delete": func(r *rig, _ *stream) {
			if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a"]); err != nil {
				r.Fatal(err)
			}
		},
		"cancel":  func(r *rig, _ *stream) { r.Operate("a", cancel) },
		"timeout": func(r *rig, _ *stream) { r.Pass(job.Second) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.Budget("k", 3)
				s := r.Anonymous(1, "q")
				r.Add("q", "a", costs("k", 3), func(n *engine.NewJob) { n.Job.RunTimeout = job.Second })
				s.Gets("a")
				other := r.Anonymous(1, "other")
				r.Add("other", "b", costs("k", 1))
				other.Gets()
				r.waits("k", "b")
				r.Spent("k", 3, 2)
				end(r, s)
				other.Gets("b")
				if got := r.BudgetState("k").Out; got != 1 {
					r.Errorf("%d units are out, want those of b", got)
				}
			})
		})
	}
}

func TestAJobTakesAllItsBudgetsAtOnceOrNone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 1)
		r.Budget("l", 1)
		w := r.Anonymous(9)
		r.Add("q", "a", costs("l", 1))
		w.Gets("a")
		r.Add("q", "both", costs("k", 1, "l", 1))
		w.Gets()
		r.waits("l", "both")
		r.Spent("k", 0, 1)
		r.Add("q", "c", costs("k", 1))
		w.Gets("c") // what waits for l holds nothing of k
		w.OK("a")
		w.Gets()
		r.waits("k", "both")
		w.OK("c")
		w.Gets("both")
	})
}

func TestWhoWaitsForABudgetIsNotPassedByBehind(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 4)
		w := r.Anonymous(9)
		r.Add("q", "a", costs("k", 1))
		r.Add("q", "big", costs("k", 4))
		w.Gets("a")
		r.Add("q", "small", costs("k", 1))
		w.Gets() // it would fit, and big would never
		r.waits("k", "big small")
		r.Add("q", "urgent", costs("k", 1), func(n *engine.NewJob) { n.Job.Priority = 1 })
		w.Gets("urgent")
		w.OK("a", "urgent")
		w.Gets("big")
		w.OK("big")
		w.Gets("small")
	})
}

func TestABudgetThatComesWithTimeGivesBurstAndDripToTheMillisecond(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 2, every(job.Second, 3))
		for _, name := range series("a", 6) {
			r.Add("q", name, costs("k", 1))
		}
		w := r.Anonymous(9)
		w.Gets("a0", "a1", "a2")
		w.OK("a0", "a1", "a2")
		w.Gets() // what comes with time does not come back
		r.Pass(499)
		w.Gets()
		r.Pass(1)
		w.Gets("a3")
		r.Pass(500)
		w.Gets("a4")
		r.Add("q", "big", costs("k", 3), func(n *engine.NewJob) { n.Job.Priority = 1 })
		w.Gets()
		r.Pass(1499)
		w.Gets()
		r.Pass(1)
		w.Gets("big")
		r.Pass(500)
		w.Gets("a5")
	})
}

func TestUnitsThatAQueueWithoutAWorkerDoesNotTakeGoToTheNext(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 1)
		w, gone := r.Anonymous(1, "q"), r.Anonymous(1, "gone")
		r.Add("q", "a", costs("k", 1))
		w.Gets("a")
		for _, name := range series("x", 70) {
			r.Add("gone", name, costs("k", 1))
		}
		gone.Gets()
		gone.End()
		other := r.Anonymous(1, "other")
		r.Add("other", "b", costs("k", 1))
		other.Gets()
		w.OK("a")
		other.Gets("b")
		r.waits("k", "")
	})
}

func TestABlockedHeadBlocksItsStrictGroupAndNoOther(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", strict)
		r.Budget("k", 1)
		w := r.Named("w", 9)
		r.Add("p", "runs", costs("k", 1))
		w.Gets("runs")
		r.Add("q", "a1", grouped("a"), costs("k", 1))
		r.Add("q", "a2", grouped("a"))
		r.Add("q", "b1", grouped("b"))
		w.Gets("b1")
		r.waits("k", "a1")
		w.OK("runs")
		w.Gets("a1")
		w.OK("a1")
		w.Gets("a2")
	})
}

func TestWhatIsOutAndWhoWaitsSurvivesARestartAndAPowerCut(t *testing.T) {
	for name, again := range map[string]func(r *rig){
		"restart":   func(r *rig) { r.Restart(job.Second) },
		"power cut": func(r *rig) { r.PowerCut() },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.Budget("k", 2)
				w := r.Named("w", 9)
				r.Add("q", "a", costs("k", 2))
				r.Add("q", "b", costs("k", 1))
				w.Gets("a")
				r.waits("k", "b")
				r.SetQueue("q", func(q *job.Queue) { q.NonIdempotent = true }) // which syncs
				again(r)
				w = r.Named("w", 9)
				if got := w.Read(); !slices.Equal(got, []string{"a"}) {
					r.Fatalf("offered %v", got)
				}
				r.Spent("k", 2, 2)
				w.OK("a")
				w.Gets("b")
				r.Spent("k", 1, 1)
			})
		})
	}
}

func TestALeaseThatEndsAtTheStartCountsNoMore(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 1)
		w := r.Anonymous(9)
		r.Add("q", "a", costs("k", 1))
		r.Add("q", "b", costs("k", 1))
		w.Gets("a")
		r.Restart(0)
		r.Spent("k", 0, 2)
		w = r.Anonymous(9)
		w.Gets("a")
		w.OK("a")
		w.Gets("b")
		w.OK("b")
		r.Spent("k", 0, 0)
	})
}

func TestChangesOfABudgetHoldAtOnce(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 1)
		w := r.Anonymous(9)
		for _, name := range []string{"a", "b", "c"} {
			r.Add("q", name, costs("k", 1))
		}
		w.Gets("a")
		if s := r.Budget("k", 2); s.Jobs != 3 {
			r.Errorf("a change forgot the jobs: %+v", s.Budget)
		}
		w.Gets("b")
		r.Budget("k", 1)
		w.OK("a")
		w.Gets() // b is still out
		w.OK("b")
		w.Gets("c")
		r.Add("q", "d", costs("k", 1))
		r.Budget("k", 1, every(job.Second, 0))
		w.Gets("d")
	})
}

func TestACostAboveWhatABudgetWasLoweredToTakesAllOfIt(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 4)
		w := r.Anonymous(9)
		r.Add("q", "b", costs("k", 4))
		w.Gets("b")
		r.Settled(w.Held["b"], job.Died)
		r.Budget("k", 2) // it is dead, and no reason to refuse that
		if _, err := r.Part.Dead.Revive(r.Context(), r.IDs["b"], deadset.Revival{}, ann); err != nil {
			r.Fatal(err)
		}
		w.Gets("b")
		r.Add("q", "c", costs("k", 1))
		w.Gets()
		w.OK("b")
		w.Gets("c")
	})
}

func TestRefusalsOfBudgetsChangeNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 2)
		refused := func(what string, err error, kind job.Kind, text string) {
			r.Helper()
			if err == nil || job.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
				r.Errorf("%s: %v, want kind %d with %q", what, err, kind, text)
			}
		}
		put := func(edits ...func(*engine.NewJob)) error {
			made := func(n *engine.NewJob) { n.Create = []job.Budget{{Name: "new", Allocation: 1}} }
			_, err := r.Put(r.Context(), []engine.NewJob{
				newNamed("q", "good", made, costs("new", 1)), newNamed("q", "bad", edits...),
			})
			return err
		}
		refused("unknown", put(costs("x", 1)), job.Unprocessable, "budget 'x' does not exist")
		refused("above", put(costs("k", 3)), job.Unprocessable, "the cost 3 is above the capacity 2 of budget 'k'")
		if _, err := r.Part.Budgets.Get(r.Context(), "new"); job.KindOf(err) != job.NotFound {
			r.Errorf("a refused call made a budget: %v", err)
		}
		if n, _ := r.Count(r.Context(), all); n != 0 {
			r.Errorf("a refused call took %d jobs in", n)
		}
		_, err := r.Part.Budgets.Add(r.Context(), job.Budget{Name: "k", Allocation: 1}, job.Actor{})
		refused("there", err, job.Exists, "budget 'k' already exists")
		_, err = r.Part.Budgets.Patch(r.Context(), "x", job.Actor{}, func(*job.Budget) {})
		refused("not there", err, job.NotFound, "budget 'x' not found")
		_, err = r.Part.Budgets.Set(r.Context(), job.Budget{Name: "k", Allocation: 0}, job.Actor{})
		refused("nothing", err, job.Unprocessable, "allocation must be between 1 and 1000000")
		refused("delete", r.Part.Budgets.Delete(r.Context(), "x", job.Actor{}), job.NotFound, "not found")
		if err := put(costs("k", 1)); err != nil {
			r.Fatal(err)
		}
		refused("delete", r.Part.Budgets.Delete(r.Context(), "k", job.Actor{}), job.Exists, "referred to by unfinished jobs (1)")
		if _, err := r.Part.Desk.Reset(r.Context()); err != nil || r.Rows(job.Budgets) != 0 {
			r.Errorf("after a reset there are %d budgets, %v", r.Rows(job.Budgets), err)
		}
	})
}

func TestABudgetIsEnoughForItsJobs(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 5)
		r.Budget("t", 2, every(job.Second, 9))
		w := r.Anonymous(1)
		r.Add("q", "small", costs("k", 1))
		r.Add("q", "large", costs("k", 4, "t", 7))
		shrink := func(key string, edit func(*job.Budget), text string) {
			r.Helper()
			_, err := r.Part.Budgets.Patch(r.Context(), key, job.Actor{}, edit)
			if (err == nil) != (text == "") || err != nil && (job.KindOf(err) != job.Unprocessable || !strings.Contains(err.Error(), text)) {
				r.Errorf("%v, want %q", err, text)
			}
		}
		units := func(n int64) func(*job.Budget) { return func(b *job.Budget) { b.Allocation = n } }
		shrink("k", units(3), "budget 'k' cannot have a capacity of 3: job ")
		shrink("k", units(3), "costs 4; finish, delete or rebind it first")
		shrink("t", func(b *job.Budget) { b.Burst = 0 }, "budget 't' cannot have a capacity of 2: job ")
		shrink("t", units(1), "")
		shrink("k", units(4), "")
		if _, err := r.Part.Budgets.Set(r.Context(), job.Budget{Name: "k", Allocation: 1}, job.Actor{}); job.KindOf(err) != job.Unprocessable {
			r.Errorf("replaced: %v", err)
		}
		w.Gets("small")
		w.OK("small")
		w.Gets("large")
		shrink("k", units(3), "costs 4") // it runs
		w.OK("large")
		shrink("k", units(1), "")
	})
}

// A budget that is made again is enough for what was replayed meanwhile.
func TestABudgetThatIsMadeAgainIsEnoughForItsJobs(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx := r.Context()
		r.Budget("k", 5)
		r.Dies("q", job.Failure{Type: "T"}, []string{"dead"}, costs("k", 4))
		if err := r.Part.Budgets.Delete(ctx, "k", job.Actor{}); err != nil {
			t.Fatal(err)
		}
		r.Operate("dead", revive)
		small := job.Budget{Name: "k", Allocation: 3}
		for name, make := range map[string]func(context.Context, job.Budget, job.Actor) (budget.State, error){"added": r.Part.Budgets.Add, "set": r.Part.Budgets.Set} {
			if _, err := make(ctx, small, job.Actor{}); job.KindOf(err) != job.Unprocessable || !strings.Contains(err.Error(), "capacity of 3: job "+r.IDs["dead"].String()+" costs 4") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if list, err := r.Part.Budgets.List(ctx); err != nil || len(list) != 0 {
			t.Errorf("a refused budget is there: %+v, %v", list, err)
		}
		_, err := r.Part.Budgets.Patch(ctx, "k", job.Actor{}, func(b *job.Budget) { b.Allocation = 3 })
		r.IsRefused(job.NotFound, err)
		r.Budget("k", 4)
		r.IsRefused(job.Exists, func() error { _, err := r.Part.Budgets.Add(ctx, small, job.Actor{}); return err }())
	})
}

func TestARefusalNamesTheJobWhoseBudgetThereIsNot(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 1)
		w := r.Anonymous(1)
		r.Add("q", "a", keyed("1"), costs("k", 1))
		w.Gets("a")
		w.OK("a")
		if err := r.Part.Budgets.Delete(r.Context(), "k", job.Actor{}); err != nil {
			r.Fatal(err)
		}
		// The first one is here already, and needs the budget no more.
		_, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "a", keyed("1"), costs("k", 1)), newNamed("q", "b", keyed("2"), costs("k", 1))})
		if e, ok := errors.AsType[*job.NoBudget](err); !ok || *e != (job.NoBudget{Key: "k", Job: 1}) {
			r.Errorf("%#v", err)
		}
	})
}

func TestThereAreSoManyBudgetsAndNoMore(t *testing.T) {
	scenario(t, func(r *rig) {
		n := newNamed("q", "a", costs("k0", 1))
		for i := range job.BudgetsMax {
			n.Create = append(n.Create, job.Budget{Name: fmt.Sprint("k", i), Allocation: 1})
		}
		if _, err := r.Put(r.Context(), []engine.NewJob{n}); err != nil {
			r.Fatal(err)
		}
		_, err := r.Part.Budgets.Add(r.Context(), job.Budget{Name: "more", Allocation: 1}, job.Actor{})
		if job.KindOf(err) != job.OverLimit {
			r.Errorf("one too many: %v", err)
		}
		if err := r.Part.Budgets.Delete(r.Context(), "k1", job.Actor{}); err != nil {
			r.Fatal(err)
		}
		r.Budget("more", 1)
	}, func(r *rig) { r.Twice = false })
}

func TestWaitingJobsAreBoundAnewAndRunningOnesAreNot(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 1)
		r.Budget("l", 9)
		w := r.Anonymous(9)
		r.Add("q", "a", costs("k", 1))
		r.Add("q", "b", costs("k", 1))
		w.Gets("a")
		to := func(list ...job.BudgetUse) budget.Rebinding {
			return budget.Rebinding{Change: func([]job.BudgetUse) ([]job.BudgetUse, error) { return list, nil }}
		}
		l := to(job.BudgetUse{Key: "l", Cost: 2})
		if _, err := r.Part.Budgets.Rebind(r.Context(), job.Actor{}, r.IDs["a"], l); job.KindOf(err) != job.WrongState {
			r.Errorf("a running job was bound anew: %v", err)
		}
		if _, err := r.Part.Budgets.Rebind(r.Context(), job.Actor{}, r.IDs["b"], to(job.BudgetUse{Key: "l", Cost: 10})); job.KindOf(err) != job.Unprocessable {
			r.Errorf("a cost above the capacity: %v", err)
		}
		if _, err := r.Part.Budgets.Rebind(r.Context(), job.Actor{}, r.IDs["b"], l); err != nil {
			r.Fatal(err)
		}
		w.Gets("b")
		r.Spent("k", 1, 1)
		r.Spent("l", 2, 1)
		r.Add("q", "c", costs("k", 1))
		w.Gets()
		n, blocked, err := r.Part.Budgets.RebindAll(r.Context(), query.Search{}, to())
		if err != nil || n != 1 || len(blocked) != 2 {
			r.Fatalf("%d changed, %v blocked, %v", n, blocked, err)
		}
		w.Gets("c")
	})
}

func TestAJobThatWaitsForABudgetSaysSo(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 1, every(job.Minute, 0))
		r.Add("q", "a", costs("k", 1))
		r.Add("q", "b", costs("k", 1))
		w := r.Anonymous(9)
		w.Gets("a")
		e, err := r.Explain(r.Context(), r.IDs["b"])
		if err != nil || len(e.Reasons) != 1 {
			r.Fatalf("%+v, %v", e.Reasons, err)
		}
		if got, want := e.Reasons[0], (rule.Reason{Is: rule.BudgetShort, Label: "k", Limit: 1, Until: r.Now() + job.Minute}); got != want {
			r.Errorf("told %+v, want %+v", got, want)
		}
	})
}

func TestADeadJobDoesNotKeepABudget(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx := r.Context()
		r.Budget("k", 2)
		r.Dies("q", job.Failure{Type: "T"}, []string{"dead"}, costs("k", 1))
		open := r.Add("q", "open", costs("k", 1))
		r.IsRefused(job.Exists, r.Part.Budgets.Delete(ctx, "k", job.Actor{}))
		if _, err := r.Part.Desk.Do(ctx, job.Actor{}, desk.Delete, open); err != nil {
			t.Fatal(err)
		}
		if err := r.Part.Budgets.Delete(ctx, "k", job.Actor{}); err != nil {
			t.Fatal(err)
		}
		r.StartReplay(job.Replay{})
		r.Pass(job.Second)
		w := r.Opened(engine.StreamOptions{Queues: []string{"q"}, Prefetch: 1})
		w.Gets("dead") // without it
		w.End()
	})
}

// A dead job refers to its budget as long as it is there. The budget may go and come
// back meanwhile: what it counts is right again, over a restart too.
func TestABudgetThatIsMadeAgainCountsTheJobsThatReferToIt(t *testing.T) {
	for name, again := range map[string]func(*rig){
		"at once":         func(*rig) {},
		"after a restart": func(r *rig) { r.Restart(0) },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				ctx := r.Context()
				is := func(jobs, out int64) {
					t.Helper()
					s, err := r.Part.Budgets.Get(ctx, "k")
					if err != nil || s.Jobs != jobs || s.Out != out || s.Left != max(0, s.Allocation-out) {
						t.Fatalf("%+v, %v; want %d jobs and %d out", s, err, jobs, out)
					}
				}
				drop := func() {
					t.Helper()
					if err := r.Part.Budgets.Delete(ctx, "k", job.Actor{}); err != nil {
						t.Fatal(err)
					}
					again(r)
					if list, err := r.Part.Budgets.List(ctx); err != nil || len(list) != 0 {
						t.Fatalf("it is there: %+v, %v", list, err)
					}
					r.IsRefused(job.NotFound, r.Part.Budgets.Delete(ctx, "k", job.Actor{}))
					_, err := r.Put(ctx, []engine.NewJob{newNamed("q", "x", costs("k", 1))})
					r.IsRefused(job.Unprocessable, err)
				}
				r.Budget("k", 2)
				r.Dies("q", job.Failure{Type: "T"}, []string{"dead"}, costs("k", 1))
				drop()
				r.Budget("k", 2)
				is(1, 0)
				r.Add("other", "open", costs("k", 1))
				is(2, 0)
				r.IsRefused(job.Exists, r.Part.Budgets.Delete(ctx, "k", job.Actor{})) // for the open one, whatever is dead
				if _, err := r.Part.Desk.Do(ctx, job.Actor{}, desk.Delete, r.IDs["open"]); err != nil {
					t.Fatal(err)
				}
				drop()
				r.Operate("dead", revive)
				w := r.Named("w", 1)
				w.Gets("dead") // without it
				again(r)
				r.Budget("k", 2) // while it runs
				is(1, 1)
				r.IsRefused(job.Exists, r.Part.Budgets.Delete(ctx, "k", job.Actor{}))
				r.Settled(w.Held["dead"], job.OK)
				is(0, 0)
				if err := r.Part.Budgets.Delete(ctx, "k", job.Actor{}); err != nil || r.Rows(job.Budgets) != 0 {
					t.Errorf("%d rows of budgets are left, %v", r.Rows(job.Budgets), err)
				}
			})
		})
	}
}

// The last job that refers to a budget that is gone takes what is left of it along.
func TestABudgetThatIsGoneLeavesNothingBehind(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 2)
		r.Dies("q", job.Failure{Type: "T"}, []string{"dead"}, costs("k", 1))
		if err := r.Part.Budgets.Delete(r.Context(), "k", job.Actor{}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["dead"]); err != nil || r.Rows(job.Budgets) != 0 {
			t.Errorf("%d rows of budgets are left, %v", r.Rows(job.Budgets), err)
		}
	})
}
