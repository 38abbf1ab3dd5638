package rule

import (
	"math/rand/v2"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestABudgetNeverGivesMoreThanBurstAndDrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 1))
	for range 2000 {
		b := &job.Budget{
			Name: "k", Strategy: job.TimeBased, Allocation: 1 + rnd.Int64N(30),
			Duration: 1 + job.Millis(rnd.Int64N(5000)), Burst: rnd.Int64N(20),
		}
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
		var u Usage
		start := job.Millis(1_700_000_000_000)
		now, given := start, int64(0)
		for range 50 {
			cost := 1 + rnd.Int64N(b.Capacity())
			if !u.Lets(b, cost, now) {
				at := u.Next(b, cost, now)
				if at <= now || u.Lets(b, cost, at-1) || !u.Lets(b, cost, at) {
					t.Fatalf("%+v: %d units come at %d of %d, but not exactly then", b, cost, at, now)
				}
				now = at
			}
			u.Start(b, cost, now)
			u.End(cost)
			given += cost
			if most := b.Capacity()*int64(b.Duration) + int64(now-start)*b.Allocation; given*int64(b.Duration) > most {
				t.Fatalf("%+v: gave %d units in %d ms", b, given, now-start)
			}
			now += job.Millis(rnd.Int64N(int64(b.Duration)))
		}
	}
}

func TestWhatIsOutOfABudgetComesBackWithTheRun(t *testing.T) {
	b, u := &job.Budget{Name: "k", Allocation: 3}, Usage{}
	if u.Next(b, 1, 7) != 0 {
		t.Error("time gives back")
	}
	u.Start(b, 2, 7)
	if u.Out() != 2 || u.Left(b, 7) != 1 || !u.Lets(b, 1, 7) || u.Lets(b, 2, 7) {
		t.Errorf("after a start: %+v", u)
	}
	b.Allocation = 1 // less than is out
	if u.Left(b, 7) != 0 || u.Lets(b, 1, 7) {
		t.Error("more than there is")
	}
	u.End(2)
	if u != (Usage{}) || !u.Lets(b, 9, 7) {
		t.Errorf("a cost above the capacity takes all of it: %+v", u)
	}
}

func TestABudgetMadeSmallerIsNeverEmptierThanEmpty(t *testing.T) {
	b, u := &job.Budget{Name: "k", Allocation: 1000, Strategy: job.TimeBased, Duration: 1000}, Usage{}
	u.Start(b, 1000, 50)
	b.Allocation = 1
	if at := u.Next(b, 1, 50); at != 1050 {
		t.Errorf("the next unit comes at %d, want one duration later", at)
	}
	huge := &job.Budget{Name: "k", Allocation: 1, Strategy: job.TimeBased, Duration: 100 * 365 * job.Day}
	if err := huge.Check(); err != nil {
		t.Fatal(err)
	}
	var v Usage
	v.Start(huge, 1, 1_700_000_000_000)
	if at := v.Next(huge, 1, 1_700_000_000_000); at != 1_700_000_000_000+huge.Duration {
		t.Errorf("the next unit comes at %d", at)
	}
}

func TestOnlyWaitingJobsAreBoundAnew(t *testing.T) {
	for s := job.Scheduled; s < job.States; s++ {
		err := MayRebind(&job.Job{State: s})
		if ok := s == job.Ready || s == job.Scheduled; ok != (err == nil) || !ok && job.KindOf(err) != job.WrongState {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestWhoIsNotToRunWaitsForNoUnits(t *testing.T) {
	j := &job.Job{State: job.Ready, Park: BudgetPark("a/b"), Copies: 1, Wanted: 1}
	if WaitsFor(j) != "a/b" || WaitsFor(nil) != "" || WaitsFor(&job.Job{Park: "fingerprint/f"}) != "" {
		t.Error("a label was misread")
	}
	eff, err := Step(View{Now: 1, Job: j, Queue: job.NewQueue("q"), Server: new(DefaultServer())}, Command{Verb: Patch, Edit: func(j *job.Job) { j.ReadyAt = 9 }})
	if err != nil || eff.Job.State != job.Scheduled || eff.Job.Park != "" {
		t.Errorf("%+v, %v", eff.Job, err)
	}
}
