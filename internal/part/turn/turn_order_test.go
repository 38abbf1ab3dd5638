package turn_test

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/turn"
)

// A member that went back untouched was not delivered: those before it that are
// tried again come in their order, and only who is really late is counted.
func TestWhatWentBackUntouchedPutsNobodyOutOfOrder(t *testing.T) { // I7, core.md 2, inbox.md 3
	ranked := func(n int64) func(*engine.NewJob) {
		return func(j *engine.NewJob) { j.Job.Ranked, j.Job.Rank = true, n }
	}
	for how, end := range map[string]func(r *rig, held map[string]engine.Delivery){
		"a failure":     func(r *rig, held map[string]engine.Delivery) { r.Settled(held["a1"], job.Retried) },
		"a release":     func(r *rig, held map[string]engine.Delivery) { r.Settled(held["a1"], job.Released) },
		"a power cut":   func(r *rig, _ map[string]engine.Delivery) { r.PowerCut() },
		"a lost worker": func(r *rig, _ map[string]engine.Delivery) {},
		"the second fails": func(r *rig, held map[string]engine.Delivery) {
			r.Settled(held["a1"], job.OK)
			r.Settled(held["a2"], job.Retried)
		},
	} {
		t.Run(how, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.SetQueue("in", failFirst)
				r.Member("a1", ranked(1))
				r.Member("a2", ranked(2))
				r.Member("a3", ranked(3))
				o := turn.Options{Members: -1, For: 10 * job.Second, Local: how == "a power cut"}
				end(r, r.Took(o, "a: a1 a2 a3"))
				r.Pass(10 * job.Second)
				rest := "a1 a2 a3"
				if how == "the second fails" {
					rest = "a2 a3"
				}
				r.runs("", rest)
				if s := r.Stats(); s.OutOfOrder != 0 {
					t.Errorf("%d out of order", s.OutOfOrder)
				}
				r.Member("a0", ranked(0))
				r.runs("", "a0")
				if s := r.Stats(); s.OutOfOrder != 0 { // the group was empty, and is another one
					t.Errorf("%d out of order in a new group", s.OutOfOrder)
				}
				r.Member("a5", ranked(5))
				r.Member("a7", ranked(7))
				held := r.Took(whole, "a: a5 a7")
				r.Settled(held["a5"], job.OK)
				r.Member("a6", ranked(6))
				r.Settled(held["a7"], job.OK)
				r.runs("", "a6")
				if s := r.Stats(); s.OutOfOrder != 1 {
					t.Errorf("%d out of order, one was late", s.OutOfOrder)
				}
			})
		})
	}
}

// One of them that waits for a budget leaves its place to the next.
func TestAJobThatWaitsForABudgetLeavesItsPlaceInATakeOfTurns(t *testing.T) { // core.md 1, zizq.md 1.17
	scenario(t, func(r *rig) {
		r.SetQueue("in", toTheEnd)
		bound := func(n *engine.NewJob) {
			n.Create = []job.Budget{{Name: "k", Allocation: 1}}
			n.Job.Extras = n.Job.WithBudgets([]job.BudgetUse{{Key: "k", Cost: 1}})
		}
		r.Add("q", "runs", bound)
		r.Anonymous(1).Gets("runs")
		r.Add("in", "x", bound)
		r.Add("in", "y")
		r.Members("b1")
		var got []string
		for _, turn := range r.TurnsNow(turn.Options{Turns: 3, Local: true}) {
			got = append(got, r.Names[turn.Deliveries[0].Job.ID])
		}
		if !slices.Equal(got, []string{"y", "b1"}) {
			t.Errorf("took %v", got)
		}
	})
}

// Jobs without a group are one group to the fair share, and each is a turn: the next
// of them stands where its priority says.
func TestTurnsOfJobsWithoutAGroupKeepTheOrderOfTheLine(t *testing.T) { // core.md 1
	scenario(t, func(r *rig) {
		r.SetQueue("in", toTheEnd)
		first := func(n *engine.NewJob) { n.Job.Priority-- }
		r.Add("in", "x", first)
		r.Members("b1")
		r.Add("in", "y", first)
		var got []string
		for _, turn := range r.TurnsNow(turn.Options{Turns: 3, Local: true}) {
			got = append(got, r.Names[turn.Deliveries[0].Job.ID])
		}
		if !slices.Equal(got, []string{"x", "y", "b1"}) {
			t.Errorf("took %v", got)
		}
	})
}
