package budget_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/parttest"
)

// A job without a retention is gone with its success: what it had of its budgets is known
// only from what it was.
func TestUnitsComeBackFromAJobThatIsGoneWhenItIsDone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 1)
		r.Add("q", "a", costs("k", 1), func(n *engine.NewJob) { n.Job.RetainDone = 0 })
		r.Add("q", "b", costs("k", 1))
		w := r.Anonymous(9)
		w.Gets("a")
		r.Spent("k", 1, 2)
		w.OK("a")
		r.Expect("a", job.None)
		w.Gets("b")
		r.Spent("k", 1, 1)
	})
}

// Nobody passes by the first who waits for a budget; when that one leaves, the next one
// need not wait for units to come back.
func TestTheNextWhoWaitsIsLookedAtWhenTheFirstOneLeaves(t *testing.T) {
	for name, leaves := range map[string]func(*rig){
		"deleted": func(r *rig) {
			if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["big"]); err != nil {
				r.Fatal(err)
			}
		},
		"cancelled": func(r *rig) { r.Operate("big", parttest.Cancel) },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.Budget("k", 2)
				r.Add("q", "a", costs("k", 1))
				r.Add("q", "big", costs("k", 2))
				r.Add("q", "c", costs("k", 1))
				w := r.Anonymous(9)
				w.Gets("a")
				leaves(r)
				w.Gets("c")
				r.Spent("k", 2, map[string]int64{"deleted": 2, "cancelled": 3}[name])
			})
		})
	}
}

// What is out is counted by the leases, once: also when memory is made anew while they
// live, because a commit failed.
func TestWhatIsOutIsCountedAnewWhenACommitFails(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 3)
		r.Add("q", "a", costs("k", 2))
		r.Leased(engine.LeaseOptions{Worker: "w", Max: 1, For: job.Hour}, "a")
		r.AddAll("other", "b") // the take is on disk with it
		r.Spent("k", 2, 1)
		r.Mem.FailNextCommit(parttest.ErrDisk)
		if _, err := r.Put(r.Context(), []engine.NewJob{parttest.NewNamed("other", "c")}); err == nil {
			r.Error("a failed commit was answered as if nothing were")
		}
		r.Recovered()
		r.Spent("k", 2, 1)
	})
}

func TestABudgetIsOnDiskWhenItIsAnsweredAndItsChangesAreAudited(t *testing.T) { // I5
	scenario(t, func(r *rig) {
		r.Budget("k", 1)
		made := r.BudgetState("k").Created
		r.Pass(job.Second)
		r.Budget("k", 2, every(job.Minute, 5))
		r.WorstPowerCut()
		list, err := r.Part.Budgets.List(r.Context())
		if err != nil || len(list) != 1 || list[0].Name != "k" || list[0].Allocation != 2 || list[0].Burst != 5 || list[0].Waiting {
			r.Fatalf("%+v, %v", list, err)
		}
		if b := list[0]; b.Created != made || b.Updated != made+job.Second {
			r.Errorf("made at %d and changed at %d, want %d and a second later", b.Created, b.Updated, made)
		}
		audits, err := r.Part.Audit.List(r.Context(), job.ID{}, 9)
		if err != nil {
			r.Fatal(err)
		}
		var told []string
		for _, a := range audits {
			for _, c := range a.Changes {
				told = append(told, fmt.Sprintf("%s:%s>%s", c.Field, c.From, c.To))
			}
		}
		want := []string{
			"allocation:1>2", `strategy.type:"while_in_flight">"time_based"`, "strategy.duration_ms:null>60000", "strategy.burst:null>5",
			"allocation:null>1", `strategy.type:null>"while_in_flight"`,
		}
		if !slices.Equal(told, want) {
			r.Errorf("the audit log says %q, want %q", told, want)
		}
	})
}

func TestABudgetSaysWhetherAnybodyWaitsForIt(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Budget("k", 1)
		r.Add("q", "a", costs("k", 1))
		r.Add("q", "b", costs("k", 1))
		w := r.Anonymous(9)
		w.Gets("a")
		if s := r.BudgetState("k"); !s.Waiting || s.Left != 0 {
			r.Errorf("somebody waits: %+v", s)
		}
		w.OK("a")
		w.Gets("b")
		if s := r.BudgetState("k"); s.Waiting || s.Left != 0 {
			r.Errorf("nobody waits: %+v", s)
		}
	})
}
