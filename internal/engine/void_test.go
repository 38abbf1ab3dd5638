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
		w, anonymous := r.Named("w", 5), r.Anonymous(5, "other")
		r.Add("q", "slow", func(n *engine.NewJob) { n.Job.RunTimeout = 1000 })
		r.Add("q", "twice", func(n *engine.NewJob) { n.Job.Copies = 2 })
		r.AddAll("q", "a", "b", "gone")
		w.Gets("slow", "twice", "a", "b", "gone")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.IDs["a"], rule.Command{Verb: rule.Cancel}); err != nil {
			t.Fatal(err)
		}
		w.Gets("a: cancel")
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["gone"]); err != nil {
			t.Fatal(err)
		}
		w.Gets("gone: cancel")
		second := r.Named("v", 1)
		second.Gets("twice")
		second.OK("twice")
		w.Gets("twice: supersede")
		w.OK("b") // what it ends itself is no news
		w.Gets()
		r.Pass(1000)
		w.Gets("slow: timeout")

		r.AddAll("other", "c")
		anonymous.Gets("c")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.IDs["c"], rule.Command{Verb: rule.Cancel}); err != nil {
			t.Fatal(err)
		}
		anonymous.Gets() // Zizq's clients take every line for a job
	})
}

func TestTheNewsOfAVoidFollowsItsDelivery(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.Named("w", 5)
		r.AddAll("q", "a")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.IDs["a"], rule.Command{Verb: rule.Cancel}); err != nil {
			t.Fatal(err)
		}
		w.Gets("a", "a: cancel")
		r.AddAll("q", "b")
		w.Gets("b")
		if j := r.Job("b"); j.State != job.Leased {
			t.Errorf("b is %s", j.State)
		}
	})
}

func TestACancelIsAudited(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		v, err := r.Part.Desk.Do(r.Context(), job.Actor{Name: "ann"}, desk.Cancel(job.Actor{Name: "ann"}, "withdrawn"), r.IDs["a"])
		if err != nil || v.State != job.Dead || v.Job.Reason != job.ReasonCancelled {
			t.Fatalf("%+v, %v", v, err)
		}
		r.Audited("ann cancel 1")
		if got := r.messages("a", false); len(got) != 1 || got[0] != "cancelled by ann: withdrawn" {
			t.Errorf("failures %v", got)
		}
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Cancel(job.Actor{}, ""), r.IDs["a"]); job.KindOf(err) != job.WrongState {
			t.Errorf("again: %v", err)
		}
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Cancel(job.Actor{}, ""), job.ID{1}); job.KindOf(err) != job.NotFound {
			t.Errorf("unknown: %v", err)
		}
	})
}
