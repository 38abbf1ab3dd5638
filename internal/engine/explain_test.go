package engine_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
)

// why wants a job to be explained by exactly these obstacles.
func (r *rig) why(name string, want ...rule.Obstacle) query.Explanation {
	r.Helper()
	e, err := r.Explain(r.Context(), r.ids[name])
	if err != nil {
		r.Fatal(err)
	}
	var got, words []string
	for _, reason := range e.Reasons {
		got = append(got, reason.Is.String())
	}
	for _, o := range want {
		words = append(words, o.String())
	}
	if strings.Join(got, " ") != strings.Join(words, " ") {
		r.Fatalf("%s: %v, want %v", name, got, words)
	}
	r.lists(name, e)
	return e
}

func TestExplainFindsWhatKeepsAJobFromRunning(t *testing.T) { // retry.md section 5
	for name, play := range map[string]func(r *rig){
		"no worker": func(r *rig) {
			r.puts("q", "a")
			r.anonymous(1, "other")
			r.why("a", rule.NoWorker)
		},
		"none fits, none free": func(r *rig) {
			r.put("q", "a", func(n *engine.NewJob) { n.Job.Requires = []job.Requirement{{Property: "gpu", Op: "=", Value: "yes"}} })
			r.puts("q", "b", "c")
			w := r.anonymous(1)
			w.gets("b")
			r.why("a", rule.NoFittingWorker)
			r.why("c", rule.NoFreeWorker)
			r.why("b")
		},
		"the server's limit": func(r *rig) {
			r.puts("q", "a", "b", "c", "d", "e")
			w := r.anonymous(9)
			w.gets("a", "b", "c", "d")
			r.why("e", rule.ServerLimit)
		},
		"not due, paused, held": func(r *rig) {
			r.put("q", "a", due(r.Now()+job.Hour), grouped("g"))
			if e := r.why("a", rule.NotDue); e.Reasons[0].Until != r.Now()+job.Hour || e.Retry != nil {
				r.Errorf("%+v", e)
			}
			r.queue("q", func(q *job.Queue) { q.Paused, q.HoldUntil = true, r.Now()+job.Minute })
			if _, err := r.part.Guard.Hold(r.Context(), "q", "g", r.Now()+job.Minute, job.Actor{}); err != nil {
				r.Fatal(err)
			}
			r.why("a", rule.NotDue, rule.Paused, rule.Held, rule.Held)
			r.Pass(2 * job.Minute)
			r.why("a", rule.NotDue, rule.Paused)
		},
		"behind its head": func(r *rig) {
			r.queue("q", strict)
			r.put("q", "a", grouped("g"), due(r.Now()+job.Hour))
			r.put("q", "b", grouped("g"))
			r.anonymous(1)
			e := r.why("b", rule.BehindHead)
			if head := e.Reasons[0].Head; head == nil || head.ID != r.ids["a"] {
				r.Errorf("%+v", e.Reasons)
			}
		},
		"parked and blocked by a dead head": func(r *rig) {
			for queue, on := range map[string]job.OnDead{"p": job.DeadPark, "b": job.DeadBlock} {
				r.queue(queue, func(q *job.Queue) { strict(q); q.OnDead = on })
				r.put(queue, "dead "+queue, grouped("g"))
				r.put(queue, "next "+queue, grouped("g"))
				w := r.stream(engine.StreamOptions{Name: "w" + queue, Prefetch: 1, Queues: []string{queue}})
				w.read()
				for name, d := range w.held {
					r.settle(d, job.Died)
					delete(w.held, name)
				}
			}
			r.why("next p", rule.GroupParked)
			r.why("next b", rule.BehindHead)
			r.why("dead b")
		},
		"limits": func(r *rig) {
			r.queue("q", func(q *job.Queue) { q.Concurrency, q.Protection.MaxRunning = 1, 2 })
			for _, name := range []string{"a1", "a2", "b1", "c1"} {
				r.put("q", name, grouped(name[:1]))
			}
			w := r.anonymous(9)
			w.gets("a1", "b1")
			r.why("a2", rule.GroupLimit, rule.QueueLimit)
			r.why("c1", rule.QueueLimit)
		},
		"rates": func(r *rig) {
			r.queue("q", func(q *job.Queue) { q.Protection.GroupRate.PerSecond = 0.1 })
			r.queue("p", func(q *job.Queue) { q.Protection.Rate.PerSecond = 0.1 })
			r.put("q", "a", grouped("g"))
			r.put("q", "b", grouped("g"))
			r.puts("p", "x", "y")
			w := r.anonymous(9)
			w.gets("a", "x")
			for _, name := range []string{"b", "y"} {
				if e := r.why(name, rule.RateUsed); e.Reasons[0].Until != r.Now()+10*job.Second {
					r.Errorf("%s: until %d, now %d", name, e.Reasons[0].Until, r.Now())
				}
			}
		},
		"breaker and budget": func(r *rig) {
			r.queue("q", func(q *job.Queue) {
				breaker(q)
				q.Protection.Budget = &job.RetryBudget{Share: 0.01}
			})
			r.puts("q", "a", "b", "c", "d")
			w := r.anonymous(3)
			w.gets("a", "b", "c")
			w.failAll("a")
			w.gets("d")
			r.Pass(job.Second)
			w.ok("d")
			r.why("a", rule.BudgetUsed)
			w.failAll("b", "c")
			e := r.why("b", rule.NotDue)
			if e.Retry == nil || e.Retry.From != rule.FromQueue || e.Retry.Drew != job.Second {
				r.Errorf("%+v", e.Retry)
			}
			r.puts("q", "e")
			w.gets("e")
			w.failAll("e")
			r.puts("q", "h")
			if e = r.why("h", rule.BreakerShut); e.Reasons[0].Until != r.Now()+30*job.Second || e.Reasons[0].Group {
				r.Errorf("%+v", e.Reasons)
			}
		},
		"finished, gone": func(r *rig) {
			r.puts("q", "a", "b")
			w := r.anonymous(2)
			w.gets("a", "b")
			w.ok("a")
			r.why("a")
			if _, err := r.Explain(r.Context(), job.ID{1}); job.KindOf(err) != job.NotFound {
				r.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, play, func(r *rig) {
				if strings.Contains(name, "server") {
					r.Opts.InFlightMax = 4
				}
			})
		})
	}
}

func TestAsidesListWhatIsHeldOrSlowedDown(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx := r.Context()
		r.queue("q", func(q *job.Queue) { groupBreaker(q); q.HoldUntil = r.Now() + job.Second })
		r.queue("qq", groupBreaker)
		for _, group := range []string{"h", "a"} {
			if _, err := r.part.Guard.Hold(ctx, "q", group, r.Now()+job.Minute, job.Actor{}); err != nil {
				r.Fatal(err)
			}
		}
		for _, queue := range []string{"q", "qq"} {
			if err := r.part.Guard.ForceBreaker(ctx, queue, "b", job.BreakerOpen, job.Actor{}); err != nil {
				r.Fatal(err)
			}
		}
		for n, want := range map[int]string{0: "", 2: " a b", 9: " a b h"} {
			list, err := r.part.Guard.Asides(ctx, "q", n)
			if err != nil {
				r.Fatal(err)
			}
			var got []string
			for _, a := range list {
				got = append(got, a.Group)
				if (a.Throttle != nil) != (a.Group == "b") || (a.Hold > 0) == (a.Group == "b") {
					r.Errorf("%+v", a)
				}
			}
			if strings.Join(got, " ") != want {
				r.Errorf("%d: %q, want %q", n, got, want)
			}
		}
	})
}
