package engine_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

func TestExplainFindsWhatKeepsAJobFromRunning(t *testing.T) { // retry.md section 5
	for name, play := range map[string]func(r *rig){
		"no worker": func(r *rig) {
			r.AddAll("q", "a")
			r.Anonymous(1, "other")
			r.Why("a", rule.NoWorker)
		},
		"none fits, none free": func(r *rig) {
			r.Add("q", "a", func(n *engine.NewJob) { n.Job.Requires = []job.Requirement{{Property: "gpu", Op: "=", Value: "yes"}} })
			r.AddAll("q", "b", "c")
			w := r.Anonymous(1)
			w.Gets("b")
			r.Why("a", rule.NoFittingWorker)
			r.Why("c", rule.NoFreeWorker)
			r.Why("b")
		},
		"the server's limit": func(r *rig) {
			r.AddAll("q", "a", "b", "c", "d", "e")
			w := r.Anonymous(9)
			w.Gets("a", "b", "c", "d")
			r.Why("e", rule.ServerLimit)
		},
		"not due, paused, held": func(r *rig) {
			r.Add("q", "a", due(r.Now()+job.Hour), grouped("g"))
			if e := r.Why("a", rule.NotDue); e.Reasons[0].Until != r.Now()+job.Hour || e.Retry != nil {
				r.Errorf("%+v", e)
			}
			r.SetQueue("q", func(q *job.Queue) { q.Paused, q.HoldUntil = true, r.Now()+job.Minute })
			if _, err := r.Part.Guard.Hold(r.Context(), "q", "g", r.Now()+job.Minute, job.Actor{}); err != nil {
				r.Fatal(err)
			}
			r.Why("a", rule.NotDue, rule.Paused, rule.Held, rule.Held)
			r.Pass(2 * job.Minute)
			r.Why("a", rule.NotDue, rule.Paused)
		},
		"behind its head": func(r *rig) {
			r.SetQueue("q", strict)
			r.Add("q", "a", grouped("g"), due(r.Now()+job.Hour))
			r.Add("q", "b", grouped("g"))
			r.Anonymous(1)
			e := r.Why("b", rule.BehindHead)
			if head := e.Reasons[0].Head; head == nil || head.ID != r.IDs["a"] {
				r.Errorf("%+v", e.Reasons)
			}
		},
		"parked and blocked by a dead head": func(r *rig) {
			for queue, on := range map[string]job.OnDead{"p": job.DeadPark, "b": job.DeadBlock} {
				r.SetQueue(queue, func(q *job.Queue) { strict(q); q.OnDead = on })
				r.Add(queue, "dead "+queue, grouped("g"))
				r.Add(queue, "next "+queue, grouped("g"))
				w := r.Opened(engine.StreamOptions{Name: "w" + queue, Prefetch: 1, Queues: []string{queue}})
				w.Read()
				for name, d := range w.Held {
					r.Settled(d, job.Died)
					delete(w.Held, name)
				}
			}
			r.Why("next p", rule.GroupParked)
			r.Why("next b", rule.BehindHead)
			r.Why("dead b")
		},
		"limits": func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.Concurrency, q.Protection.MaxRunning = 1, 2 })
			for _, name := range []string{"a1", "a2", "b1", "c1"} {
				r.Add("q", name, grouped(name[:1]))
			}
			w := r.Anonymous(9)
			w.Gets("a1", "b1")
			r.Why("a2", rule.GroupLimit, rule.QueueLimit)
			r.Why("c1", rule.QueueLimit)
		},
		"rates": func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.Protection.GroupRate.PerSecond = 0.1 })
			r.SetQueue("p", func(q *job.Queue) { q.Protection.Rate.PerSecond = 0.1 })
			r.Add("q", "a", grouped("g"))
			r.Add("q", "b", grouped("g"))
			r.AddAll("p", "x", "y")
			w := r.Anonymous(9)
			w.Gets("a", "x")
			for _, name := range []string{"b", "y"} {
				if e := r.Why(name, rule.RateUsed); e.Reasons[0].Until != r.Now()+10*job.Second {
					r.Errorf("%s: until %d, now %d", name, e.Reasons[0].Until, r.Now())
				}
			}
		},
		"breaker and budget": func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) {
				breaker(q)
				q.Protection.Budget = &job.RetryBudget{Share: 0.01}
			})
			r.AddAll("q", "a", "b", "c", "d")
			w := r.Anonymous(3)
			w.Gets("a", "b", "c")
			w.FailAll("a")
			w.Gets("d")
			r.Pass(job.Second)
			w.OK("d")
			r.Why("a", rule.BudgetUsed)
			w.FailAll("b", "c")
			e := r.Why("b", rule.NotDue)
			if e.Retry == nil || e.Retry.From != rule.FromQueue || e.Retry.Drew != job.Second {
				r.Errorf("%+v", e.Retry)
			}
			r.AddAll("q", "e")
			w.Gets("e")
			w.FailAll("e")
			r.AddAll("q", "h")
			if e = r.Why("h", rule.BreakerShut); e.Reasons[0].Until != r.Now()+30*job.Second || e.Reasons[0].Group {
				r.Errorf("%+v", e.Reasons)
			}
		},
		"finished, gone": func(r *rig) {
			r.AddAll("q", "a", "b")
			w := r.Anonymous(2)
			w.Gets("a", "b")
			w.OK("a")
			r.Why("a")
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
