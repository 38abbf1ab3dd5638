package engine_test

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

// costs binds a job: "k", 2, "l", 1.
func costs(list ...any) func(*engine.NewJob) {
	return func(n *engine.NewJob) {
		var uses []job.BudgetUse
		for i := 0; i < len(list); i += 2 {
			uses = append(uses, job.BudgetUse{Key: list[i].(string), Cost: int64(list[i+1].(int))})
		}
		n.Job.Extras = n.Job.WithBudgets(uses)
	}
}

func (r *rig) budget(key string, allocation int64, edits ...func(*job.Budget)) budget.State {
	r.Helper()
	b := job.Budget{Name: key, Allocation: allocation}
	for _, edit := range edits {
		edit(&b)
	}
	s, err := r.part.Budgets.Set(r.Context(), b, job.Actor{})
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// every makes a budget time-based.
func every(span job.Millis, burst int64) func(*job.Budget) {
	return func(b *job.Budget) { b.Strategy, b.Duration, b.Burst = job.TimeBased, span, burst }
}

func (r *rig) state(key string) budget.State {
	r.Helper()
	s, err := r.part.Budgets.Get(r.Context(), key)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// spent wants so many units out, and so many jobs that refer to the budget.
func (r *rig) spent(key string, out, jobs int64) {
	r.Helper()
	r.Pass(0)
	if s := r.state(key); s.Out != out || s.Jobs != jobs {
		r.Fatalf("budget %s: %d units are out and %d jobs refer to it, want %d and %d", key, s.Out, s.Jobs, out, jobs)
	}
}

func (r *rig) parked(label string) (names string) {
	r.Helper()
	err := r.Mem.View(r.Context(), func(v store.Reader) error {
		ids, err := v.IDs(store.Parked(label), 1000)
		var list []string
		for _, id := range ids {
			list = append(list, r.names[id])
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
		r.budget("k", 2)
		for _, name := range []string{"a", "b", "c", "d"} {
			r.put("q", name, costs("k", 1))
		}
		r.puts("q", "free")
		w := r.anonymous(9)
		w.gets("a", "b", "free")
		r.spent("k", 2, 4)
		r.waits("k", "c d")
		if j := r.expect("c", job.Ready); j.Attempts != 0 || j.Deliveries != 0 {
			r.Errorf("who waits was charged: %+v", j)
		}
		w.ok("a")
		w.gets("c")
		w.fail("b") // any end of a lease gives back
		w.gets("d")
		r.spent("k", 2, 3)
		r.waits("k", "")
	})
}

func TestUnitsComeBackAtEveryEndOfALease(t *testing.T) {
	ends := map[string]func(r *rig, s *stream){
		"ok":      func(_ *rig, s *stream) { s.ok("a") },
		"failure": func(_ *rig, s *stream) { s.fail("a") },
		"dead":    func(r *rig, s *stream) { r.settle(s.held["a"], job.Died) },
		"release": func(r *rig, s *stream) {
			r.settle(s.held["a"], job.Released, func(x *engine.Settle) { x.Delay = job.Hour })
		},
		"disconnect": func(r *rig, s *stream) { s.close(); r.spent("k", 1, 2) },
		"delete": func(r *rig, _ *stream) {
			if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.ids["a"]); err != nil {
				r.Fatal(err)
			}
		},
		"cancel":  func(r *rig, _ *stream) { r.operate("a", cancel) },
		"timeout": func(r *rig, _ *stream) { r.Pass(job.Second) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.budget("k", 3)
				s := r.anonymous(1, "q")
				r.put("q", "a", costs("k", 3), func(n *engine.NewJob) { n.Job.RunTimeout = job.Second })
				s.gets("a")
				other := r.anonymous(1, "other")
				r.put("other", "b", costs("k", 1))
				other.gets()
				r.waits("k", "b")
				r.spent("k", 3, 2)
				end(r, s)
				other.gets("b")
				if got := r.state("k").Out; got != 1 {
					r.Errorf("%d units are out, want those of b", got)
				}
			})
		})
	}
}

func TestAJobTakesAllItsBudgetsAtOnceOrNone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 1)
		r.budget("l", 1)
		w := r.anonymous(9)
		r.put("q", "a", costs("l", 1))
		w.gets("a")
		r.put("q", "both", costs("k", 1, "l", 1))
		w.gets()
		r.waits("l", "both")
		r.spent("k", 0, 1)
		r.put("q", "c", costs("k", 1))
		w.gets("c") // what waits for l holds nothing of k
		w.ok("a")
		w.gets()
		r.waits("k", "both")
		w.ok("c")
		w.gets("both")
	})
}

func TestWhoWaitsForABudgetIsNotPassedByBehind(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 4)
		w := r.anonymous(9)
		r.put("q", "a", costs("k", 1))
		r.put("q", "big", costs("k", 4))
		w.gets("a")
		r.put("q", "small", costs("k", 1))
		w.gets() // it would fit, and big would never
		r.waits("k", "big small")
		r.put("q", "urgent", costs("k", 1), func(n *engine.NewJob) { n.Job.Priority = 1 })
		w.gets("urgent")
		w.ok("a", "urgent")
		w.gets("big")
		w.ok("big")
		w.gets("small")
	})
}

func TestABudgetThatComesWithTimeGivesBurstAndDripToTheMillisecond(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 2, every(job.Second, 3))
		for _, name := range series("a", 6) {
			r.put("q", name, costs("k", 1))
		}
		w := r.anonymous(9)
		w.gets("a0", "a1", "a2")
		w.ok("a0", "a1", "a2")
		w.gets() // what comes with time does not come back
		r.Pass(499)
		w.gets()
		r.Pass(1)
		w.gets("a3")
		r.Pass(500)
		w.gets("a4")
		r.put("q", "big", costs("k", 3), func(n *engine.NewJob) { n.Job.Priority = 1 })
		w.gets()
		r.Pass(1499)
		w.gets()
		r.Pass(1)
		w.gets("big")
		r.Pass(500)
		w.gets("a5")
	})
}

func TestUnitsThatAQueueWithoutAWorkerDoesNotTakeGoToTheNext(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 1)
		w, gone := r.anonymous(1, "q"), r.anonymous(1, "gone")
		r.put("q", "a", costs("k", 1))
		w.gets("a")
		for _, name := range series("x", 70) {
			r.put("gone", name, costs("k", 1))
		}
		gone.gets()
		gone.close()
		other := r.anonymous(1, "other")
		r.put("other", "b", costs("k", 1))
		other.gets()
		w.ok("a")
		other.gets("b")
		r.waits("k", "")
	})
}

func TestABlockedHeadBlocksItsStrictGroupAndNoOther(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", strict)
		r.budget("k", 1)
		w := r.named("w", 9)
		r.put("p", "runs", costs("k", 1))
		w.gets("runs")
		r.put("q", "a1", grouped("a"), costs("k", 1))
		r.put("q", "a2", grouped("a"))
		r.put("q", "b1", grouped("b"))
		w.gets("b1")
		r.waits("k", "a1")
		w.ok("runs")
		w.gets("a1")
		w.ok("a1")
		w.gets("a2")
	})
}

func TestWhatIsOutAndWhoWaitsSurvivesARestartAndAPowerCut(t *testing.T) {
	for name, again := range map[string]func(r *rig){
		"restart":   func(r *rig) { r.Restart(job.Second) },
		"power cut": func(r *rig) { r.PowerCut() },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.budget("k", 2)
				w := r.named("w", 9)
				r.put("q", "a", costs("k", 2))
				r.put("q", "b", costs("k", 1))
				w.gets("a")
				r.waits("k", "b")
				r.queue("q", func(q *job.Queue) { q.NonIdempotent = true }) // which syncs
				again(r)
				w = r.named("w", 9)
				if got := w.read(); !slices.Equal(got, []string{"a"}) {
					r.Fatalf("offered %v", got)
				}
				r.spent("k", 2, 2)
				w.ok("a")
				w.gets("b")
				r.spent("k", 1, 1)
			})
		})
	}
}

func TestALeaseThatEndsAtTheStartCountsNoMore(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 1)
		w := r.anonymous(9)
		r.put("q", "a", costs("k", 1))
		r.put("q", "b", costs("k", 1))
		w.gets("a")
		r.Restart(0)
		r.spent("k", 0, 2)
		w = r.anonymous(9)
		w.gets("a")
		w.ok("a")
		w.gets("b")
		w.ok("b")
		r.spent("k", 0, 0)
	})
}

func TestChangesOfABudgetHoldAtOnce(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 1)
		w := r.anonymous(9)
		for _, name := range []string{"a", "b", "c"} {
			r.put("q", name, costs("k", 1))
		}
		w.gets("a")
		if s := r.budget("k", 2); s.Jobs != 3 {
			r.Errorf("a change forgot the jobs: %+v", s.Budget)
		}
		w.gets("b")
		r.budget("k", 1)
		w.ok("a")
		w.gets() // b is still out
		w.ok("b")
		w.gets("c")
		r.put("q", "d", costs("k", 1))
		r.budget("k", 1, every(job.Second, 0))
		w.gets("d")
	})
}

func TestACostAboveWhatABudgetWasLoweredToTakesAllOfIt(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 4)
		w := r.anonymous(9)
		r.put("q", "b", costs("k", 4))
		w.gets("b")
		r.settle(w.held["b"], job.Died)
		r.budget("k", 2) // it is dead, and no reason to refuse that
		if _, err := r.part.Dead.Revive(r.Context(), r.ids["b"], deadset.Revival{}, ann); err != nil {
			r.Fatal(err)
		}
		w.gets("b")
		r.put("q", "c", costs("k", 1))
		w.gets()
		w.ok("b")
		w.gets("c")
	})
}

func TestRefusalsOfBudgetsChangeNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 2)
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
		if _, err := r.part.Budgets.Get(r.Context(), "new"); job.KindOf(err) != job.NotFound {
			r.Errorf("a refused call made a budget: %v", err)
		}
		if n, _ := r.Count(r.Context(), all); n != 0 {
			r.Errorf("a refused call took %d jobs in", n)
		}
		_, err := r.part.Budgets.Add(r.Context(), job.Budget{Name: "k", Allocation: 1}, job.Actor{})
		refused("there", err, job.Exists, "budget 'k' already exists")
		_, err = r.part.Budgets.Patch(r.Context(), "x", job.Actor{}, func(*job.Budget) {})
		refused("not there", err, job.NotFound, "budget 'x' not found")
		_, err = r.part.Budgets.Set(r.Context(), job.Budget{Name: "k", Allocation: 0}, job.Actor{})
		refused("nothing", err, job.Unprocessable, "allocation must be between 1 and 1000000")
		refused("delete", r.part.Budgets.Delete(r.Context(), "x", job.Actor{}), job.NotFound, "not found")
		if err := put(costs("k", 1)); err != nil {
			r.Fatal(err)
		}
		refused("delete", r.part.Budgets.Delete(r.Context(), "k", job.Actor{}), job.Exists, "referred to by unfinished jobs (1)")
		if _, err := r.part.Desk.Reset(r.Context()); err != nil || r.rows(job.Budgets) != 0 {
			r.Errorf("after a reset there are %d budgets, %v", r.rows(job.Budgets), err)
		}
	})
}

func TestABudgetIsEnoughForItsJobs(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 5)
		r.budget("t", 2, every(job.Second, 9))
		w := r.anonymous(1)
		r.put("q", "small", costs("k", 1))
		r.put("q", "large", costs("k", 4, "t", 7))
		shrink := func(key string, edit func(*job.Budget), text string) {
			r.Helper()
			_, err := r.part.Budgets.Patch(r.Context(), key, job.Actor{}, edit)
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
		if _, err := r.part.Budgets.Set(r.Context(), job.Budget{Name: "k", Allocation: 1}, job.Actor{}); job.KindOf(err) != job.Unprocessable {
			r.Errorf("replaced: %v", err)
		}
		w.gets("small")
		w.ok("small")
		w.gets("large")
		shrink("k", units(3), "costs 4") // it runs
		w.ok("large")
		shrink("k", units(1), "")
	})
}

// A budget that is made again is enough for what was replayed meanwhile.
func TestABudgetThatIsMadeAgainIsEnoughForItsJobs(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx := r.Context()
		r.budget("k", 5)
		r.dies("q", job.Failure{Type: "T"}, []string{"dead"}, costs("k", 4))
		if err := r.part.Budgets.Delete(ctx, "k", job.Actor{}); err != nil {
			t.Fatal(err)
		}
		r.operate("dead", revive)
		small := job.Budget{Name: "k", Allocation: 3}
		for name, make := range map[string]func(context.Context, job.Budget, job.Actor) (budget.State, error){"added": r.part.Budgets.Add, "set": r.part.Budgets.Set} {
			if _, err := make(ctx, small, job.Actor{}); job.KindOf(err) != job.Unprocessable || !strings.Contains(err.Error(), "capacity of 3: job "+r.ids["dead"].String()+" costs 4") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if list, err := r.part.Budgets.List(ctx); err != nil || len(list) != 0 {
			t.Errorf("a refused budget is there: %+v, %v", list, err)
		}
		_, err := r.part.Budgets.Patch(ctx, "k", job.Actor{}, func(b *job.Budget) { b.Allocation = 3 })
		r.isRefused(job.NotFound, err)
		r.budget("k", 4)
		r.isRefused(job.Exists, func() error { _, err := r.part.Budgets.Add(ctx, small, job.Actor{}); return err }())
	})
}

func TestARefusalNamesTheJobWhoseBudgetThereIsNot(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 1)
		w := r.anonymous(1)
		r.put("q", "a", keyed("1"), costs("k", 1))
		w.gets("a")
		w.ok("a")
		if err := r.part.Budgets.Delete(r.Context(), "k", job.Actor{}); err != nil {
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
		_, err := r.part.Budgets.Add(r.Context(), job.Budget{Name: "more", Allocation: 1}, job.Actor{})
		if job.KindOf(err) != job.OverLimit {
			r.Errorf("one too many: %v", err)
		}
		if err := r.part.Budgets.Delete(r.Context(), "k1", job.Actor{}); err != nil {
			r.Fatal(err)
		}
		r.budget("more", 1)
	}, func(r *rig) { r.Twice = false })
}

func TestWaitingJobsAreBoundAnewAndRunningOnesAreNot(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 1)
		r.budget("l", 9)
		w := r.anonymous(9)
		r.put("q", "a", costs("k", 1))
		r.put("q", "b", costs("k", 1))
		w.gets("a")
		to := func(list ...job.BudgetUse) budget.Rebinding {
			return budget.Rebinding{Change: func([]job.BudgetUse) ([]job.BudgetUse, error) { return list, nil }}
		}
		l := to(job.BudgetUse{Key: "l", Cost: 2})
		if _, err := r.part.Budgets.Rebind(r.Context(), job.Actor{}, r.ids["a"], l); job.KindOf(err) != job.WrongState {
			r.Errorf("a running job was bound anew: %v", err)
		}
		if _, err := r.part.Budgets.Rebind(r.Context(), job.Actor{}, r.ids["b"], to(job.BudgetUse{Key: "l", Cost: 10})); job.KindOf(err) != job.Unprocessable {
			r.Errorf("a cost above the capacity: %v", err)
		}
		if _, err := r.part.Budgets.Rebind(r.Context(), job.Actor{}, r.ids["b"], l); err != nil {
			r.Fatal(err)
		}
		w.gets("b")
		r.spent("k", 1, 1)
		r.spent("l", 2, 1)
		r.put("q", "c", costs("k", 1))
		w.gets()
		n, blocked, err := r.part.Budgets.RebindAll(r.Context(), query.Search{}, to())
		if err != nil || n != 1 || len(blocked) != 2 {
			r.Fatalf("%d changed, %v blocked, %v", n, blocked, err)
		}
		w.gets("c")
	})
}

func TestAJobThatWaitsForABudgetSaysSo(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 1, every(job.Minute, 0))
		r.put("q", "a", costs("k", 1))
		r.put("q", "b", costs("k", 1))
		w := r.anonymous(9)
		w.gets("a")
		e, err := r.Explain(r.Context(), r.ids["b"])
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
		r.budget("k", 2)
		r.dies("q", job.Failure{Type: "T"}, []string{"dead"}, costs("k", 1))
		open := r.put("q", "open", costs("k", 1))
		r.isRefused(job.Exists, r.part.Budgets.Delete(ctx, "k", job.Actor{}))
		if _, err := r.part.Desk.Do(ctx, job.Actor{}, desk.Delete, open); err != nil {
			t.Fatal(err)
		}
		if err := r.part.Budgets.Delete(ctx, "k", job.Actor{}); err != nil {
			t.Fatal(err)
		}
		r.startReplay(job.Replay{})
		r.Pass(job.Second)
		w := r.stream(engine.StreamOptions{Queues: []string{"q"}, Prefetch: 1})
		w.gets("dead") // without it
		w.close()
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
					s, err := r.part.Budgets.Get(ctx, "k")
					if err != nil || s.Jobs != jobs || s.Out != out || s.Left != max(0, s.Allocation-out) {
						t.Fatalf("%+v, %v; want %d jobs and %d out", s, err, jobs, out)
					}
				}
				drop := func() {
					t.Helper()
					if err := r.part.Budgets.Delete(ctx, "k", job.Actor{}); err != nil {
						t.Fatal(err)
					}
					again(r)
					if list, err := r.part.Budgets.List(ctx); err != nil || len(list) != 0 {
						t.Fatalf("it is there: %+v, %v", list, err)
					}
					r.isRefused(job.NotFound, r.part.Budgets.Delete(ctx, "k", job.Actor{}))
					_, err := r.Put(ctx, []engine.NewJob{newNamed("q", "x", costs("k", 1))})
					r.isRefused(job.Unprocessable, err)
				}
				r.budget("k", 2)
				r.dies("q", job.Failure{Type: "T"}, []string{"dead"}, costs("k", 1))
				drop()
				r.budget("k", 2)
				is(1, 0)
				r.put("other", "open", costs("k", 1))
				is(2, 0)
				r.isRefused(job.Exists, r.part.Budgets.Delete(ctx, "k", job.Actor{})) // for the open one, whatever is dead
				if _, err := r.part.Desk.Do(ctx, job.Actor{}, desk.Delete, r.ids["open"]); err != nil {
					t.Fatal(err)
				}
				drop()
				r.operate("dead", revive)
				w := r.named("w", 1)
				w.gets("dead") // without it
				again(r)
				r.budget("k", 2) // while it runs
				is(1, 1)
				r.isRefused(job.Exists, r.part.Budgets.Delete(ctx, "k", job.Actor{}))
				r.settle(w.held["dead"], job.OK)
				is(0, 0)
				if err := r.part.Budgets.Delete(ctx, "k", job.Actor{}); err != nil || r.rows(job.Budgets) != 0 {
					t.Errorf("%d rows of budgets are left, %v", r.rows(job.Budgets), err)
				}
			})
		})
	}
}

// The last job that refers to a budget that is gone takes what is left of it along.
func TestABudgetThatIsGoneLeavesNothingBehind(t *testing.T) {
	scenario(t, func(r *rig) {
		r.budget("k", 2)
		r.dies("q", job.Failure{Type: "T"}, []string{"dead"}, costs("k", 1))
		if err := r.part.Budgets.Delete(r.Context(), "k", job.Actor{}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.ids["dead"]); err != nil || r.rows(job.Budgets) != 0 {
			t.Errorf("%d rows of budgets are left, %v", r.rows(job.Budgets), err)
		}
	})
}
