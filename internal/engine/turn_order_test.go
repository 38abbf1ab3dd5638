package engine_test

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
		"a failure":     func(r *rig, held map[string]engine.Delivery) { r.settle(held["a1"], job.Retried) },
		"a release":     func(r *rig, held map[string]engine.Delivery) { r.settle(held["a1"], job.Released) },
		"a power cut":   func(r *rig, _ map[string]engine.Delivery) { r.PowerCut() },
		"a lost worker": func(r *rig, _ map[string]engine.Delivery) {},
		"the second fails": func(r *rig, held map[string]engine.Delivery) {
			r.settle(held["a1"], job.OK)
			r.settle(held["a2"], job.Retried)
		},
	} {
		t.Run(how, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.queue("in", failFirst)
				r.member("a1", ranked(1))
				r.member("a2", ranked(2))
				r.member("a3", ranked(3))
				o := turn.Options{Members: -1, For: 10 * job.Second, Local: how == "a power cut"}
				end(r, r.took(o, "a: a1 a2 a3"))
				r.Pass(10 * job.Second)
				rest := "a1 a2 a3"
				if how == "the second fails" {
					rest = "a2 a3"
				}
				r.runs("", rest)
				if s := r.stats(); s.OutOfOrder != 0 {
					t.Errorf("%d out of order", s.OutOfOrder)
				}
				r.member("a0", ranked(0))
				r.runs("", "a0")
				if s := r.stats(); s.OutOfOrder != 0 { // the group was empty, and is another one
					t.Errorf("%d out of order in a new group", s.OutOfOrder)
				}
				r.member("a5", ranked(5))
				r.member("a7", ranked(7))
				held := r.took(whole, "a: a5 a7")
				r.settle(held["a5"], job.OK)
				r.member("a6", ranked(6))
				r.settle(held["a7"], job.OK)
				r.runs("", "a6")
				if s := r.stats(); s.OutOfOrder != 1 {
					t.Errorf("%d out of order, one was late", s.OutOfOrder)
				}
			})
		})
	}
}

// One of them that waits for a budget leaves its place to the next.
func TestAJobThatWaitsForABudgetLeavesItsPlaceInATakeOfTurns(t *testing.T) { // core.md 1, zizq.md 1.17
	scenario(t, func(r *rig) {
		r.queue("in", toTheEnd)
		bound := func(n *engine.NewJob) {
			n.Create = []job.Budget{{Name: "k", Allocation: 1}}
			n.Job.Extras = n.Job.WithBudgets([]job.BudgetUse{{Key: "k", Cost: 1}})
		}
		r.put("q", "runs", bound)
		r.anonymous(1).gets("runs")
		r.put("in", "x", bound)
		r.put("in", "y")
		r.members("b1")
		var got []string
		for _, turn := range r.turns(turn.Options{Turns: 3, Local: true}) {
			got = append(got, r.names[turn.Deliveries[0].Job.ID])
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
		r.queue("in", toTheEnd)
		first := func(n *engine.NewJob) { n.Job.Priority-- }
		r.put("in", "x", first)
		r.members("b1")
		r.put("in", "y", first)
		var got []string
		for _, turn := range r.turns(turn.Options{Turns: 3, Local: true}) {
			got = append(got, r.names[turn.Deliveries[0].Job.ID])
		}
		if !slices.Equal(got, []string{"x", "y", "b1"}) {
			t.Errorf("took %v", got)
		}
	})
}
