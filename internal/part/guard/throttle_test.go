package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

func TestAnOpenBreakerParksItsQueueAndChargesNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", breaker)
		r.AddAll("q", series("a", 6)...)
		r.AddAll("other", "x")
		w := r.Anonymous(3)
		w.Gets("a0", "a1", "a2")
		w.FailAll("a0", "a1", "a2")
		r.BreakerIs("q", "", job.BreakerOpen)
		w.Gets("x")
		w.OK("x")
		r.Pass(29 * job.Second)
		w.Gets()
		if j := r.Expect("a3", job.Ready); j.Attempts != 0 || j.Deliveries != 0 {
			r.Errorf("a parked job was charged: %+v", j)
		}
		r.Pass(job.Second)
		w.Gets("a0") // one probe
		r.Pass(10 * job.Second)
		w.Gets()
		w.Fails("a0")
		r.BreakerIs("q", "", job.BreakerOpen)
		r.Pass(59 * job.Second)
		w.Gets()
		r.Pass(job.Second)
		w.Gets("a0")
		w.OK("a0")
		r.BreakerIs("q", "", job.BreakerRamping)
		w.Gets("a1", "a2") // two at once to begin with
		r.Pass(job.Second)
		w.Gets("a3")
		r.Pass(9 * job.Second)
		r.BreakerIs("q", "", job.BreakerClosed)
		if r.Rows(job.Throttles) != 0 {
			r.Error("a closed breaker is remembered")
		}
		if n := r.Part.Guard.Opened(); n != 2 {
			r.Errorf("opened %d times", n)
		}
		w.OK("a1", "a2", "a3")
		w.Gets("a4", "a5")
	})
}

func TestABreakerOfAGroupLeavesTheOthersAlone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", groupBreaker)
		for _, name := range []string{"a0", "a1", "a2", "a3", "b0", "b1"} {
			r.Add("q", name, grouped(name[:1]))
		}
		w := r.Anonymous(3)
		w.Gets("a0", "a1", "a2")
		w.FailAll("a0", "a1", "a2")
		r.BreakerIs("q", "a", job.BreakerOpen)
		w.Gets("b0", "b1")
		w.OK("b0", "b1")
		r.Pass(30 * job.Second)
		w.Gets("a0")
		w.OK("a0")
		w.Gets("a1", "a2")
		w.OK("a1", "a2")
		w.Gets("a3")
		w.OK("a3")
		r.Pass(job.Minute)
		if r.Rows(job.Throttles) != 0 {
			r.Error("a closed breaker is remembered")
		}
	})
}

func TestInAStrictGroupTheHeadIsTheProbe(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { groupBreaker(q); strict(q) })
		r.Add("q", "a", grouped("g"))
		r.Add("q", "b", grouped("g"))
		w := r.Named("w", 1)
		for range 3 {
			w.Gets("a")
			w.Fails("a")
			r.Pass(job.Second)
		}
		r.BreakerIs("q", "g", job.BreakerOpen)
		w.Gets()
		r.Pass(30 * job.Second)
		w.Gets("a")
		w.OK("a")
		w.Gets("b")
		w.OK("b")
	})
}

func TestWhatDoesNotCountLeavesABreakerClosed(t *testing.T) { // core.md section 9
	scenario(t, func(r *rig) {
		r.SetQueue("q", breaker)
		r.AddAll("q", "a")
		for range 5 { // released
			w := r.Anonymous(1)
			w.Gets("a")
			r.Settled(w.Held["a"], job.Released)
			w.End()
			w = r.Anonymous(1) // the worker vanishes
			w.Gets("a")
			w.End()
		}
		r.Add("q", "graced", func(n *engine.NewJob) { n.Job.GraceUntil = r.Now() + job.Hour })
		w := r.Anonymous(2)
		w.Gets("a", "graced")
		for range 5 {
			w.Fails("graced")
			r.Pass(6 * job.Second)
			w.Gets("graced")
		}
		r.BreakerIs("q", "", job.BreakerClosed)
		for range 3 { // timeouts do
			r.Add("q", fmt.Sprint("t", r.Now()), func(n *engine.NewJob) { n.Job.RunTimeout = job.Second })
			v := r.Anonymous(1)
			v.Read()
			r.Pass(job.Second)
			v.End()
		}
		r.BreakerIs("q", "", job.BreakerOpen)
	})
}

func TestABreakerSurvivesARestartAndItsWindowDoesNot(t *testing.T) {
	for _, end := range []func(*rig){func(r *rig) { r.Restart(10 * job.Second) }, func(r *rig) { r.PowerCut(); r.Pass(10 * job.Second) }} {
		scenario(t, func(r *rig) {
			r.SetQueue("q", breaker)
			r.SetQueue("p", breaker)
			r.AddAll("q", "a", "b", "c", "d")
			r.AddAll("p", "x", "y", "z")
			w := r.Anonymous(3, "q")
			w.Gets("a", "b", "c")
			w.FailAll("a", "b", "c")
			v := r.Anonymous(3, "p")
			v.Gets("x", "y", "z")
			v.Fails("x")
			v.Fails("y")
			end(r)
			r.BreakerIs("q", "", job.BreakerOpen)
			r.BreakerIs("p", "", job.BreakerClosed)
			w = r.Anonymous(5, "q")
			w.Gets()
			r.Pass(19 * job.Second)
			w.Gets()
			r.Pass(2 * job.Second)
			w.Gets("a")
			v = r.Anonymous(1, "p")
			v.Gets("x")
			v.Fails("x")
			r.BreakerIs("p", "", job.BreakerClosed)
		})
	}
}

func TestABreakerCanBeForcedAndReleased(t *testing.T) {
	scenario(t, func(r *rig) {
		must := func(err error) {
			r.Helper()
			if err != nil {
				r.Fatal(err)
			}
		}
		ctx := r.Context()
		for _, group := range []string{"", "g"} { // without any settings
			must(r.Part.Guard.ForceBreaker(ctx, "q", group, job.BreakerOpen, job.Actor{}))
			name := "a" + group
			r.Add("q", name, grouped(group))
			w := r.Anonymous(1)
			r.Pass(job.Hour)
			w.Gets()
			r.Restart(0)
			w = r.Anonymous(1)
			w.Gets()
			must(r.Part.Guard.ReleaseBreaker(ctx, "q", group, job.Actor{}))
			w.Gets(name)
			w.OK(name)
			w.End()
		}
		if r.Rows(job.Throttles) != 0 {
			r.Error("a breaker that was released is remembered")
		}
		r.SetQueue("q", breaker)
		must(r.Part.Guard.ForceBreaker(ctx, "q", "", job.BreakerClosed, job.Actor{}))
		r.AddAll("q", series("n", 5)...)
		w := r.Anonymous(5)
		w.Gets(series("n", 5)...)
		w.FailAll(series("n", 5)...)
		r.BreakerIs("q", "", job.BreakerClosed)
		if err := r.Part.Guard.ForceBreaker(ctx, "q", "", job.BreakerRamping, job.Actor{}); job.KindOf(err) != job.Invalid {
			r.Errorf("forced to ramp: %v", err)
		}
	})
}

func TestABreakerThatIsTakenAwayLetsGo(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { breaker(q); q.Protection.GroupBreaker = threes() })
		for _, name := range series("a", 4) {
			r.Add("q", name, grouped("g"))
		}
		w := r.Anonymous(3)
		w.Gets("a0", "a1", "a2")
		w.FailAll("a0", "a1", "a2")
		w.Gets()
		r.SetQueue("q", func(q *job.Queue) { q.Protection = job.Protection{} })
		w.Gets("a3")
		if r.Rows(job.Throttles) != 0 {
			r.Error("it is remembered")
		}
	})
}

func TestTheBreakerOfAGroupWithoutWorkIsForgotten(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", groupBreaker)
		for _, name := range []string{"a", "b", "c"} {
			r.Add("q", name, grouped("g"), retry(job.Retry{Limit: job.LimitOf(0)}))
		}
		w := r.Anonymous(3)
		w.Gets("a", "b", "c")
		w.FailAll("a", "b", "c")
		r.BreakerIs("q", "g", job.BreakerOpen)
		r.Pass(30 * job.Second)
		r.BreakerIs("q", "g", job.BreakerHalfOpen)
		r.Pass(5 * job.Minute)
		if r.Rows(job.Throttles) != 0 {
			r.Errorf("it is remembered: %+v", r.Throttle("q", "g"))
		}
	})
}

func TestARateHoldsForAQueueAndForAGroup(t *testing.T) {
	for name, group := range map[string]string{"queue": "", "group": "g"} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.SetQueue("q", func(q *job.Queue) {
					rate := job.Rate{PerSecond: 2, Burst: 3}
					if group == "" {
						q.Protection.Rate = rate
					} else {
						q.Protection.GroupRate = rate
					}
				})
				for _, name := range series("a", 12) {
					r.Add("q", name, grouped(group))
				}
				r.AddAll("other", "x")
				w := r.Anonymous(100)
				w.Gets("a0", "a1", "a2", "x")
				r.Pass(499)
				w.Gets()
				r.Pass(1)
				w.Gets("a3")
				r.Pass(job.Second)
				w.Gets("a4", "a5")
				r.SetQueue("q", func(q *job.Queue) { q.Protection.Rate.PerSecond *= 2; q.Protection.GroupRate.PerSecond *= 2 })
				r.Pass(job.Second)
				w.Gets("a6", "a7", "a8", "a9")
				r.SetQueue("q", func(q *job.Queue) { q.Protection = job.Protection{} })
				w.Gets("a10", "a11")
			})
		})
	}
}

func TestMaxRunningLimitsTheJobsInFlight(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.Protection.MaxRunning = 2 })
		r.AddAll("q", series("a", 6)...)
		v, w := r.Anonymous(10, "q"), r.Anonymous(10, "q")
		got := append(v.Read(), w.Read()...)
		slices.Sort(got)
		if strings.Join(got, " ") != "a0 a1" {
			r.Fatalf("delivered %v", got)
		}
		one := v
		if len(v.Held) == 0 {
			one = w
		}
		one.OK("a0")
		one.OK("a1")
		if got := append(v.Read(), w.Read()...); len(got) != 2 {
			r.Fatalf("delivered %v after two were done", got)
		}
		r.SetQueue("q", func(q *job.Queue) { q.Protection.MaxRunning = 3 })
		if got := append(v.Read(), w.Read()...); len(got) != 1 {
			r.Fatalf("delivered %v after the limit was raised", got)
		}
	})
}

func TestABudgetLetsRetriesWaitAndFreshJobsPass(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) {
			q.Protection.Budget = &job.RetryBudget{Share: 0.2, Floor: 1}
			q.Retry.Curve = wait(job.Second)
		})
		r.AddAll("q", series("a", 4)...)
		w := r.Anonymous(10)
		w.Gets(series("a", 4)...) // they earn 0.8
		w.FailAll(series("a", 4)...)
		r.Pass(job.Second)
		w.Gets("a0", "a1") // one by the floor, and its share makes the other
		r.AddAll("q", "fresh")
		w.Gets("fresh")
		if j := r.Expect("a2", job.Ready); j.Attempts != 1 {
			r.Errorf("waiting was charged: %+v", j)
		}
		r.Pass(999)
		w.Gets()
		r.Pass(1)
		w.Gets("a2")
		r.Pass(job.Second)
		w.Gets("a3")
	})
}

// What one holder takes earns a retry that another one has room for.
func TestAShareThatAnotherHolderEarnsLetsARetryGo(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) {
			q.Protection.Budget = &job.RetryBudget{Share: 0.5}
			q.Retry.Curve = &job.Curve{Kind: job.CurveImmediate}
		})
		plain := r.Anonymous(10)
		r.AddAll("q", "a")
		plain.Gets("a") // earns a half
		plain.FailAll("a")
		plain.Gets()
		r.Add("q", "b", func(n *engine.NewJob) {
			n.Job.Requires = []job.Requirement{{Property: "cpu", Op: ">=", Value: "8"}}
		})
		plain.Gets()
		r.Opened(engine.StreamOptions{Prefetch: 1, Properties: map[string]string{"cpu": "16"}}).Gets("b") // the other half
		plain.Gets("a")
	})
}

func TestStrictGroupsAreExemptFromBudgets(t *testing.T) { // core.md section 1
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) {
			strict(q)
			q.Protection.Budget, q.Retry.Curve = &job.RetryBudget{Floor: 0.001}, wait(job.Second)
		})
		r.Add("q", "a", grouped("g"))
		w := r.Named("w", 1)
		for range 5 {
			w.Gets("a")
			w.Fails("a")
			r.Pass(job.Second)
		}
		w.Gets("a")
	})
}

func TestANoisyGroupDoesNotStarveTheRest(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.Protection.Fair = &job.FairShare{Weights: map[string]int{"gold": 3}} })
		for _, name := range series("noisy", 50) {
			r.Add("q", name, grouped("noisy"))
		}
		for i := range 12 {
			r.Add("q", fmt.Sprint("gold", i), grouped("gold"))
		}
		for i := range 4 {
			r.Add("q", fmt.Sprint("small", i), grouped("small"))
			r.Add("q", fmt.Sprint("alone", i))
		}
		w := r.Anonymous(24)
		got := w.Read()
		counts := map[string]int{}
		for _, name := range got {
			counts[strings.TrimRight(name, "0123456789")]++
		}
		if counts["gold"] != 12 || counts["small"] != 4 || counts["alone"] != 4 || counts["noisy"] != 4 {
			r.Errorf("of 24 places: %v", counts)
		}
		r.Restart(0)
	})
}

func TestHoldsAreBoundedAndCanBeReleased(t *testing.T) {
	scenario(t, func(r *rig) {
		for _, group := range []string{"", "g"} {
			until, err := r.Part.Guard.Hold(r.Context(), "q", group, r.Now()+5*job.Hour, job.Actor{})
			if err != nil || until != r.Now()+job.Hour {
				r.Fatalf("held until %d (now %d), %v", until, r.Now(), err)
			}
			name := "a" + group
			r.Add("q", name, grouped(group))
			w := r.Anonymous(1)
			w.Gets()
			if err := r.Part.Guard.Release(r.Context(), "q", group, job.Actor{}); err != nil {
				r.Fatal(err)
			}
			w.Gets(name)
			w.OK(name)
			until, err = r.Part.Guard.Hold(r.Context(), "q", group, r.Now()+10*job.Second, job.Actor{})
			if err != nil || until < r.Now()+10*job.Second || until > r.Now()+11*job.Second {
				r.Fatalf("held until %d (now %d), %v", until, r.Now(), err)
			}
			r.Add("q", "b"+group, grouped(group))
			r.Pass(10*job.Second - 1)
			w.Gets()
			r.Pass(job.Second + 1)
			w.Gets("b" + group)
			w.OK("b" + group)
			w.End()
		}
	})
}

func TestWrongProtectionIsRefusedAndChangesNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		for _, edit := range []func(*job.Protection){
			func(p *job.Protection) { p.Breaker = &job.Breaker{} },
			func(p *job.Protection) { p.Rate.PerSecond = -1 },
			func(p *job.Protection) { p.MaxRunning = -1 },
			func(p *job.Protection) { p.Budget = &job.RetryBudget{Share: 2} },
			func(p *job.Protection) { p.Fair = &job.FairShare{Weights: map[string]int{"g": -1}} },
		} {
			_, err := r.Part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { edit(&q.Protection); return nil }, job.Actor{})
			if job.KindOf(err) != job.Invalid || r.Rows(job.Queues) != 0 {
				r.Errorf("%v", err)
			}
		}
	})
}
