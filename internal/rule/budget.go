package rule

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// Budgets (reference 1.17): a run takes the units of all budgets of its job at
// once, or the job is put aside under the first one that lacks them. Those who
// wait for a budget return in line order; nobody passes by who stands behind
// them. A job whose cost is above the capacity, because that was lowered while it was dead,
// takes all of it.

const budgetPark = "budget/"

// BudgetPark is the label of jobs that wait for a budget (core.md section 3).
func BudgetPark(key string) string { return budgetPark + key }

// WaitsFor is the budget that a job waits for; "" if it waits for none.
func WaitsFor(j *job.Job) string {
	if j != nil && j.Park != "" && strings.HasPrefix(j.Park, budgetPark) {
		return j.Park[len(budgetPark):]
	}
	return ""
}

// leaveBudget: who is not to run now waits for no units.
func leaveBudget(j *job.Job) {
	if j.Park != "" && j.State == job.Scheduled && WaitsFor(j) != "" {
		j.Park = ""
	}
}

// Usage is how much of a budget is out. The zero value is none of it.
type Usage struct {
	out    int64 // units of the runs that go on
	bucket Bucket
}

// Refill forgets what a budget that comes with time lacks; what is out stays out.
func (u *Usage) Refill() { u.bucket = Bucket{} }

// Out is the units of the runs that go on.
func (u *Usage) Out() int64 { return u.out }

// rateOf is the drip of a budget, never faster than allowed.
func rateOf(b *job.Budget) job.Rate {
	each := (int64(b.Duration)*perMilli + b.Allocation - 1) / b.Allocation
	return job.Rate{PerSecond: 1e9 / float64(each), Burst: int(b.Capacity())}
}

// Left is how many units may be taken now.
func (u *Usage) Left(b *job.Budget, steady job.Millis) int64 {
	if b.Strategy == job.TimeBased {
		u.shrink(b, steady)
		return int64(u.bucket.Left(rateOf(b), steady))
	}
	return max(0, b.Allocation-u.out)
}

// shrink: a budget is never emptier than empty, also when it was made smaller.
func (u *Usage) shrink(b *job.Budget, steady job.Millis) {
	r := rateOf(b)
	missing := u.bucket.follow(r, steady)
	if most := b.Capacity() * u.bucket.each; missing > most {
		u.bucket.full = int64(steady)*perMilli + most
	}
}

// Lets reports whether a run of this cost may start now.
func (u *Usage) Lets(b *job.Budget, cost int64, steady job.Millis) bool {
	return u.Left(b, steady) >= min(cost, b.Capacity())
}

// Start counts a run that starts.
func (u *Usage) Start(b *job.Budget, cost int64, steady job.Millis) {
	u.out += cost
	if b != nil && b.Strategy == job.TimeBased {
		u.shrink(b, steady)
		u.bucket.takeSome(rateOf(b), min(cost, b.Capacity()), steady)
	}
}

// End counts a run that ended. What a budget gives with time does not come back.
func (u *Usage) End(cost int64) { u.out -= cost }

// Next is when time alone lets a run of this cost start; 0 = it does not.
func (u *Usage) Next(b *job.Budget, cost int64, steady job.Millis) job.Millis {
	if b.Strategy != job.TimeBased {
		return 0
	}
	u.shrink(b, steady)
	return u.bucket.nextSome(rateOf(b), min(cost, b.Capacity()), steady)
}

// ChecksOut refuses a binding that could never be kept.
func ChecksOut(b *job.Budget, u job.BudgetUse) error {
	if b == nil {
		return &job.NoBudget{Key: u.Key}
	}
	if c := b.Capacity(); u.Cost > c {
		return &job.Error{
			Kind: job.Unprocessable, Field: "budgets",
			Text: fmt.Sprintf("the cost %d is above the capacity %d of budget '%s'", u.Cost, c, u.Key),
		}
	}
	return nil
}

// MayRebind refuses to change what a job is bound to, unless it waits.
func MayRebind(j *job.Job) error {
	switch j.State {
	case job.Ready, job.Scheduled:
		return nil
	case job.Leased:
		return job.Errorf(job.WrongState, "cannot change the budgets of job %s in in_flight status", j.ID)
	case job.Done:
		return job.Errorf(job.WrongState, "cannot change the budgets of job %s in completed status", j.ID)
	default:
		return job.Errorf(job.WrongState, "cannot change the budgets of job %s in %s status", j.ID, j.State)
	}
}
