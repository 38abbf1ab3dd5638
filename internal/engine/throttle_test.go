package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// threes is a breaker that opens after three failures in a row.
func threes() *job.Breaker {
	b := job.DefaultBreaker()
	b.Ratio, b.Consecutive = 0, 3
	return &b
}

func breaker(q *job.Queue) { q.Protection.Breaker, q.Retry.Curve = threes(), wait(job.Second) }
func groupBreaker(q *job.Queue) {
	q.Protection.GroupBreaker, q.Retry.Curve = threes(), wait(job.Second)
}

// throttle reads what slows a queue or a group down; blank if nothing does.
func (r *rig) throttle(queue, group string) job.Throttle {
	r.Helper()
	t := job.Throttle{Queue: queue, Group: group}
	err := r.Mem.View(r.Context(), func(v store.Reader) error {
		row, err := v.Row(job.Throttles, t.Key())
		if row != nil {
			t = *row.(*job.Throttle)
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return t
}

func (r *rig) breakerIs(queue, group string, want job.BreakerState) {
	r.Helper()
	synctest.Wait()
	if t := r.throttle(queue, group); t.State != want {
		r.Fatalf("the breaker of %q %q is %s, want %s", queue, group, t.State, want)
	}
}

// failAll ends several attempts at once.
func (s *stream) failAll(names ...string) {
	s.r.Helper()
	var list []engine.Settle
	for _, name := range names {
		d := s.held[name]
		list = append(list, engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: job.Retried, Failure: job.Failure{Message: "boom"}})
	}
	verdicts, err := s.r.Settle(s.r.Context(), list)
	if err != nil {
		s.r.Fatal(err)
	}
	for i, v := range verdicts {
		if v.Err != nil {
			s.r.Fatalf("%s: %v", names[i], v.Err)
		}
	}
}

func series(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}

func TestAnOpenBreakerParksItsQueueAndChargesNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", breaker)
		r.puts("q", series("a", 6)...)
		r.puts("other", "x")
		w := r.anonymous(3)
		w.gets("a0", "a1", "a2")
		w.failAll("a0", "a1", "a2")
		r.breakerIs("q", "", job.BreakerOpen)
		w.gets("x")
		w.ok("x")
		r.Pass(29 * job.Second)
		w.gets()
		if j := r.expect("a3", job.Ready); j.Attempts != 0 || j.Deliveries != 0 {
			r.Errorf("a parked job was charged: %+v", j)
		}
		r.Pass(job.Second)
		w.gets("a0") // one probe
		r.Pass(10 * job.Second)
		w.gets()
		w.fail("a0")
		r.breakerIs("q", "", job.BreakerOpen)
		r.Pass(59 * job.Second)
		w.gets()
		r.Pass(job.Second)
		w.gets("a0")
		w.ok("a0")
		r.breakerIs("q", "", job.BreakerRamping)
		w.gets("a1", "a2") // two at once to begin with
		r.Pass(job.Second)
		w.gets("a3")
		r.Pass(9 * job.Second)
		r.breakerIs("q", "", job.BreakerClosed)
		if r.rows(job.Throttles) != 0 {
			r.Error("a closed breaker is remembered")
		}
		if n := r.part.Guard.Opened(); n != 2 {
			r.Errorf("opened %d times", n)
		}
		w.ok("a1", "a2", "a3")
		w.gets("a4", "a5")
	})
}

func TestABreakerOfAGroupLeavesTheOthersAlone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", groupBreaker)
		for _, name := range []string{"a0", "a1", "a2", "a3", "b0", "b1"} {
			r.put("q", name, grouped(name[:1]))
		}
		w := r.anonymous(3)
		w.gets("a0", "a1", "a2")
		w.failAll("a0", "a1", "a2")
		r.breakerIs("q", "a", job.BreakerOpen)
		w.gets("b0", "b1")
		w.ok("b0", "b1")
		r.Pass(30 * job.Second)
		w.gets("a0")
		w.ok("a0")
		w.gets("a1", "a2")
		w.ok("a1", "a2")
		w.gets("a3")
		w.ok("a3")
		r.Pass(job.Minute)
		if r.rows(job.Throttles) != 0 {
			r.Error("a closed breaker is remembered")
		}
	})
}

func TestInAStrictGroupTheHeadIsTheProbe(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { groupBreaker(q); strict(q) })
		r.put("q", "a", grouped("g"))
		r.put("q", "b", grouped("g"))
		w := r.named("w", 1)
		for range 3 {
			w.gets("a")
			w.fail("a")
			r.Pass(job.Second)
		}
		r.breakerIs("q", "g", job.BreakerOpen)
		w.gets()
		r.Pass(30 * job.Second)
		w.gets("a")
		w.ok("a")
		w.gets("b")
		w.ok("b")
	})
}

func TestWhatDoesNotCountLeavesABreakerClosed(t *testing.T) { // core.md section 9
	scenario(t, func(r *rig) {
		r.queue("q", breaker)
		r.puts("q", "a")
		for range 5 { // released
			w := r.anonymous(1)
			w.gets("a")
			r.settle(w.held["a"], job.Released)
			w.close()
			w = r.anonymous(1) // the worker vanishes
			w.gets("a")
			w.close()
		}
		r.put("q", "graced", func(n *engine.NewJob) { n.Job.GraceUntil = r.Now() + job.Hour })
		w := r.anonymous(2)
		w.gets("a", "graced")
		for range 5 {
			w.fail("graced")
			r.Pass(6 * job.Second)
			w.gets("graced")
		}
		r.breakerIs("q", "", job.BreakerClosed)
		for range 3 { // timeouts do
			r.put("q", fmt.Sprint("t", r.Now()), func(n *engine.NewJob) { n.Job.RunTimeout = job.Second })
			v := r.anonymous(1)
			v.read()
			r.Pass(job.Second)
			v.close()
		}
		r.breakerIs("q", "", job.BreakerOpen)
	})
}

func TestABreakerSurvivesARestartAndItsWindowDoesNot(t *testing.T) {
	for _, end := range []func(*rig){func(r *rig) { r.Restart(10 * job.Second) }, func(r *rig) { r.PowerCut(); r.Pass(10 * job.Second) }} {
		scenario(t, func(r *rig) {
			r.queue("q", breaker)
			r.queue("p", breaker)
			r.puts("q", "a", "b", "c", "d")
			r.puts("p", "x", "y", "z")
			w := r.anonymous(3, "q")
			w.gets("a", "b", "c")
			w.failAll("a", "b", "c")
			v := r.anonymous(3, "p")
			v.gets("x", "y", "z")
			v.fail("x")
			v.fail("y")
			end(r)
			r.breakerIs("q", "", job.BreakerOpen)
			r.breakerIs("p", "", job.BreakerClosed)
			w = r.anonymous(5, "q")
			w.gets()
			r.Pass(19 * job.Second)
			w.gets()
			r.Pass(2 * job.Second)
			w.gets("a")
			v = r.anonymous(1, "p")
			v.gets("x")
			v.fail("x")
			r.breakerIs("p", "", job.BreakerClosed)
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
			must(r.part.Guard.ForceBreaker(ctx, "q", group, job.BreakerOpen, job.Actor{}))
			name := "a" + group
			r.put("q", name, grouped(group))
			w := r.anonymous(1)
			r.Pass(job.Hour)
			w.gets()
			r.Restart(0)
			w = r.anonymous(1)
			w.gets()
			must(r.part.Guard.ReleaseBreaker(ctx, "q", group, job.Actor{}))
			w.gets(name)
			w.ok(name)
			w.close()
		}
		if r.rows(job.Throttles) != 0 {
			r.Error("a breaker that was released is remembered")
		}
		r.queue("q", breaker)
		must(r.part.Guard.ForceBreaker(ctx, "q", "", job.BreakerClosed, job.Actor{}))
		r.puts("q", series("n", 5)...)
		w := r.anonymous(5)
		w.gets(series("n", 5)...)
		w.failAll(series("n", 5)...)
		r.breakerIs("q", "", job.BreakerClosed)
		if err := r.part.Guard.ForceBreaker(ctx, "q", "", job.BreakerRamping, job.Actor{}); job.KindOf(err) != job.Invalid {
			r.Errorf("forced to ramp: %v", err)
		}
	})
}

func TestABreakerThatIsTakenAwayLetsGo(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { breaker(q); q.Protection.GroupBreaker = threes() })
		for _, name := range series("a", 4) {
			r.put("q", name, grouped("g"))
		}
		w := r.anonymous(3)
		w.gets("a0", "a1", "a2")
		w.failAll("a0", "a1", "a2")
		w.gets()
		r.queue("q", func(q *job.Queue) { q.Protection = job.Protection{} })
		w.gets("a3")
		if r.rows(job.Throttles) != 0 {
			r.Error("it is remembered")
		}
	})
}

func TestTheBreakerOfAGroupWithoutWorkIsForgotten(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", groupBreaker)
		for _, name := range []string{"a", "b", "c"} {
			r.put("q", name, grouped("g"), retry(job.Retry{Limit: job.LimitOf(0)}))
		}
		w := r.anonymous(3)
		w.gets("a", "b", "c")
		w.failAll("a", "b", "c")
		r.breakerIs("q", "g", job.BreakerOpen)
		r.Pass(30 * job.Second)
		r.breakerIs("q", "g", job.BreakerHalfOpen)
		r.Pass(5 * job.Minute)
		if r.rows(job.Throttles) != 0 {
			r.Errorf("it is remembered: %+v", r.throttle("q", "g"))
		}
	})
}

func TestARateHoldsForAQueueAndForAGroup(t *testing.T) {
	for name, group := range map[string]string{"queue": "", "group": "g"} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.queue("q", func(q *job.Queue) {
					rate := job.Rate{PerSecond: 2, Burst: 3}
					if group == "" {
						q.Protection.Rate = rate
					} else {
						q.Protection.GroupRate = rate
					}
				})
				for _, name := range series("a", 12) {
					r.put("q", name, grouped(group))
				}
				r.puts("other", "x")
				w := r.anonymous(100)
				w.gets("a0", "a1", "a2", "x")
				r.Pass(499)
				w.gets()
				r.Pass(1)
				w.gets("a3")
				r.Pass(job.Second)
				w.gets("a4", "a5")
				r.queue("q", func(q *job.Queue) { q.Protection.Rate.PerSecond *= 2; q.Protection.GroupRate.PerSecond *= 2 })
				r.Pass(job.Second)
				w.gets("a6", "a7", "a8", "a9")
				r.queue("q", func(q *job.Queue) { q.Protection = job.Protection{} })
				w.gets("a10", "a11")
			})
		})
	}
}

func TestMaxRunningLimitsTheJobsInFlight(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.Protection.MaxRunning = 2 })
		r.puts("q", series("a", 6)...)
		v, w := r.anonymous(10, "q"), r.anonymous(10, "q")
		got := append(v.read(), w.read()...)
		slices.Sort(got)
		if strings.Join(got, " ") != "a0 a1" {
			r.Fatalf("delivered %v", got)
		}
		one := v
		if len(v.held) == 0 {
			one = w
		}
		one.ok("a0")
		one.ok("a1")
		if got := append(v.read(), w.read()...); len(got) != 2 {
			r.Fatalf("delivered %v after two were done", got)
		}
		r.queue("q", func(q *job.Queue) { q.Protection.MaxRunning = 3 })
		if got := append(v.read(), w.read()...); len(got) != 1 {
			r.Fatalf("delivered %v after the limit was raised", got)
		}
	})
}

func TestABudgetLetsRetriesWaitAndFreshJobsPass(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) {
			q.Protection.Budget = &job.RetryBudget{Share: 0.2, Floor: 1}
			q.Retry.Curve = wait(job.Second)
		})
		r.puts("q", series("a", 4)...)
		w := r.anonymous(10)
		w.gets(series("a", 4)...) // they earn 0.8
		w.failAll(series("a", 4)...)
		r.Pass(job.Second)
		w.gets("a0", "a1") // one by the floor, and its share makes the other
		r.puts("q", "fresh")
		w.gets("fresh")
		if j := r.expect("a2", job.Ready); j.Attempts != 1 {
			r.Errorf("waiting was charged: %+v", j)
		}
		r.Pass(999)
		w.gets()
		r.Pass(1)
		w.gets("a2")
		r.Pass(job.Second)
		w.gets("a3")
	})
}

// What one holder takes earns a retry that another one has room for.
func TestAShareThatAnotherHolderEarnsLetsARetryGo(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) {
			q.Protection.Budget = &job.RetryBudget{Share: 0.5}
			q.Retry.Curve = &job.Curve{Kind: job.CurveImmediate}
		})
		plain := r.anonymous(10)
		r.puts("q", "a")
		plain.gets("a") // earns a half
		plain.failAll("a")
		plain.gets()
		r.put("q", "b", func(n *engine.NewJob) {
			n.Job.Requires = []job.Requirement{{Property: "cpu", Op: ">=", Value: "8"}}
		})
		plain.gets()
		r.stream(engine.StreamOptions{Prefetch: 1, Properties: map[string]string{"cpu": "16"}}).gets("b") // the other half
		plain.gets("a")
	})
}

func TestStrictGroupsAreExemptFromBudgets(t *testing.T) { // core.md section 1
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) {
			strict(q)
			q.Protection.Budget, q.Retry.Curve = &job.RetryBudget{Floor: 0.001}, wait(job.Second)
		})
		r.put("q", "a", grouped("g"))
		w := r.named("w", 1)
		for range 5 {
			w.gets("a")
			w.fail("a")
			r.Pass(job.Second)
		}
		w.gets("a")
	})
}

func TestANoisyGroupDoesNotStarveTheRest(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.Protection.Fair = &job.FairShare{Weights: map[string]int{"gold": 3}} })
		for _, name := range series("noisy", 50) {
			r.put("q", name, grouped("noisy"))
		}
		for i := range 12 {
			r.put("q", fmt.Sprint("gold", i), grouped("gold"))
		}
		for i := range 4 {
			r.put("q", fmt.Sprint("small", i), grouped("small"))
			r.put("q", fmt.Sprint("alone", i))
		}
		w := r.anonymous(24)
		got := w.read()
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
			until, err := r.part.Guard.Hold(r.Context(), "q", group, r.Now()+5*job.Hour, job.Actor{})
			if err != nil || until != r.Now()+job.Hour {
				r.Fatalf("held until %d (now %d), %v", until, r.Now(), err)
			}
			name := "a" + group
			r.put("q", name, grouped(group))
			w := r.anonymous(1)
			w.gets()
			if err := r.part.Guard.Release(r.Context(), "q", group, job.Actor{}); err != nil {
				r.Fatal(err)
			}
			w.gets(name)
			w.ok(name)
			until, err = r.part.Guard.Hold(r.Context(), "q", group, r.Now()+10*job.Second, job.Actor{})
			if err != nil || until < r.Now()+10*job.Second || until > r.Now()+11*job.Second {
				r.Fatalf("held until %d (now %d), %v", until, r.Now(), err)
			}
			r.put("q", "b"+group, grouped(group))
			r.Pass(10*job.Second - 1)
			w.gets()
			r.Pass(job.Second + 1)
			w.gets("b" + group)
			w.ok("b" + group)
			w.close()
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
			_, err := r.part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { edit(&q.Protection); return nil }, job.Actor{})
			if job.KindOf(err) != job.Invalid || r.rows(job.Queues) != 0 {
				r.Errorf("%v", err)
			}
		}
	})
}
