package rule

import (
	"errors"
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

func TestABudgetDripsAsFastAsItSaysAndNoFaster(t *testing.T) {
	for _, allocation := range []int64{1, 3, 10, 999} {
		for _, duration := range []job.Millis{20, 1000, job.Hour} {
			b := &job.Budget{Name: "k", Strategy: job.TimeBased, Allocation: allocation, Duration: duration}
			exact := float64(allocation) * 1000 / float64(duration)
			if got := rateOf(b).PerSecond; got > exact || got < exact*(1-1e-4) {
				t.Errorf("%d in %s: %g a second, want %g", allocation, duration, got, exact)
			}
		}
	}
}

func TestABudgetMadeSmallerFillsFromTheTimeItIsLookedAt(t *testing.T) {
	for name, look := range map[string]func(b *job.Budget, u *Usage){
		"left":  func(b *job.Budget, u *Usage) { u.Left(b, 50) },
		"start": func(b *job.Budget, u *Usage) { u.Start(b, 0, 50) },
		"next":  func(b *job.Budget, u *Usage) { u.Next(b, 1, 50) },
	} {
		b, u := &job.Budget{Name: "k", Allocation: 2, Strategy: job.TimeBased, Duration: 1000, Burst: 1000}, Usage{}
		u.Start(b, 1002, 50)
		b.Burst = 0
		look(b, &u)
		if got := u.Left(b, 1050); got != 2 {
			t.Errorf("%s: %d units after the duration of 2", name, got)
		}
	}
}

func TestWhatIsOutIsCountedWithoutItsBudget(t *testing.T) {
	var u Usage
	if u.Start(nil, 2, 7); u.Out() != 2 {
		t.Errorf("%d units are out", u.Out())
	}
	b := &job.Budget{Name: "k", Allocation: 2, Strategy: job.TimeBased, Duration: 1000}
	if u.Start(b, 2, 7); u.Left(b, 7) != 0 {
		t.Error("it is not empty")
	}
	if u.Refill(); u.Left(b, 7) != 2 || u.Out() != 4 {
		t.Errorf("refilled: %d left, %d out", u.Left(b, 7), u.Out())
	}
}

func TestABindingAboveTheCapacityIsRefused(t *testing.T) {
	b := &job.Budget{Name: "k", Allocation: 3}
	if err := ChecksOut(b, job.BudgetUse{Key: "k", Cost: 3}); err != nil {
		t.Error(err)
	}
	err := ChecksOut(b, job.BudgetUse{Key: "k", Cost: 4})
	var refused *job.Error
	if !errors.As(err, &refused) || refused.Kind != job.Unprocessable || refused.Field != "budgets" {
		t.Errorf("%v", err)
	}
	if err := ChecksOut(nil, job.BudgetUse{Key: "k", Cost: 1}); err == nil {
		t.Error("a budget that is not there")
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
	j := &job.Job{State: job.Ready, Park: BudgetPark("a/b"), Copies: 1, CopiesWanted: 1}
	if WaitsFor(j) != "a/b" || WaitsFor(nil) != "" || WaitsFor(new(job.Job)) != "" || WaitsFor(&job.Job{Park: "fingerprint/f"}) != "" {
		t.Error("a label was misread")
	}
	eff, err := Step(View{Now: 1, Job: j, Queue: job.NewQueue("q"), Server: new(DefaultServer())}, Command{Verb: Patch, Edit: func(j *job.Job) { j.ReadyAt = 9 }})
	if err != nil || eff.Job.State != job.Scheduled || eff.Job.Park != "" {
		t.Errorf("%+v, %v", eff.Job, err)
	}
}
