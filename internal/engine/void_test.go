package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/rule"
)

func TestANamedWorkerHearsWhatIsOverForIt(t *testing.T) { // spec/jobs.md, cancel
	scenario(t, func(r *rig) {
		w, anonymous := r.named("w", 5), r.anonymous(5, "other")
		r.put("q", "slow", func(n *engine.NewJob) { n.Job.RunTimeout = 1000 })
		r.put("q", "twice", func(n *engine.NewJob) { n.Job.Copies = 2 })
		r.puts("q", "a", "b", "gone")
		w.gets("slow", "twice", "a", "b", "gone")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.ids["a"], rule.Command{Verb: rule.Cancel}); err != nil {
			t.Fatal(err)
		}
		w.gets("a: cancel")
		if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.ids["gone"]); err != nil {
			t.Fatal(err)
		}
		w.gets("gone: cancel")
		second := r.named("v", 1)
		second.gets("twice")
		second.ok("twice")
		w.gets("twice: supersede")
		w.ok("b") // what it ends itself is no news
		w.gets()
		r.Pass(1000)
		w.gets("slow: timeout")

		r.puts("other", "c")
		anonymous.gets("c")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.ids["c"], rule.Command{Verb: rule.Cancel}); err != nil {
			t.Fatal(err)
		}
		anonymous.gets() // Zizq's clients take every line for a job
	})
}

func TestTheNewsOfAVoidFollowsItsDelivery(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.named("w", 5)
		r.puts("q", "a")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.ids["a"], rule.Command{Verb: rule.Cancel}); err != nil {
			t.Fatal(err)
		}
		w.gets("a", "a: cancel")
		r.puts("q", "b")
		w.gets("b")
		if j := r.job("b"); j.State != job.Leased {
			t.Errorf("b is %s", j.State)
		}
	})
}

func TestACancelIsAudited(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		v, err := r.part.Desk.Do(r.Context(), job.Actor{Name: "ann"}, desk.Cancel(job.Actor{Name: "ann"}, "withdrawn"), r.ids["a"])
		if err != nil || v.State != job.Dead || v.Job.Reason != job.ReasonCancelled {
			t.Fatalf("%+v, %v", v, err)
		}
		r.audited("ann cancel 1")
		if got := r.messages("a", false); len(got) != 1 || got[0] != "cancelled by ann: withdrawn" {
			t.Errorf("failures %v", got)
		}
		if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Cancel(job.Actor{}, ""), r.ids["a"]); job.KindOf(err) != job.WrongState {
			t.Errorf("again: %v", err)
		}
		if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Cancel(job.Actor{}, ""), job.ID{1}); job.KindOf(err) != job.NotFound {
			t.Errorf("unknown: %v", err)
		}
	})
}
