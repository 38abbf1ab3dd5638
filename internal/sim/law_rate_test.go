package sim_test

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// flow is what a history protects its queues with besides breakers. It does
// not change, only whether a queue has it, so what is measured goes on.
type flow struct {
	rate, groupRate job.Rate
	budget          *job.RetryBudget
	fair            *job.FairShare
}

func (w *world) drawFlow() flow {
	rates := []job.Rate{{PerSecond: 0.5, Burst: 1}, {PerSecond: 1, Burst: 2}, {PerSecond: 2, Burst: 3}, {PerSecond: 5, Burst: 1}}
	weights := []map[string]int{nil, {"a": 2}, {"b": 3}, {"": 2, "a": 3}}
	return flow{
		rate: pick(w, rates), groupRate: pick(w, rates), fair: &job.FairShare{Weights: pick(w, weights)},
		budget: pick(w, []*job.RetryBudget{{Share: 0.5}, {Share: 0.25, Floor: 0.5}, {Floor: 1}}),
	}
}

// limitFlow gives a queue a rate, a budget or fair share, or takes it away.
func (w *world) limitFlow(name string, what int) {
	f := w.setup.flow
	toggle := func(p *job.Protection) {
		switch what {
		case 0:
			p.Rate = other(p.Rate, f.rate)
		case 1:
			p.GroupRate = other(p.GroupRate, f.groupRate)
		case 2:
			p.Budget = other(p.Budget, f.budget)
		default:
			p.Fair = other(p.Fair, f.fair)
		}
	}
	words := []string{fmt.Sprintf("rate %v", f.rate), fmt.Sprintf("group rate %v", f.groupRate), fmt.Sprintf("budget %v", *f.budget), fmt.Sprintf("fair share %v", *f.fair)}
	w.setQueue(name, words[what]+" on or off", func(q *job.Queue) { toggle(&q.Protection) })
}

// other is then, or nothing if it is that now.
func other[T comparable](now, then T) (none T) {
	if now == then {
		return none
	}
	return then
}

// allowance is the takes that count against a rate, on the steady clock.
type allowance struct{ at []job.Millis }

// owed is how many takes the rate has not caught up with.
func (a *allowance) owed(r job.Rate, now job.Millis) (n float64) {
	last := job.Millis(0)
	for _, at := range append(a.at[:len(a.at):len(a.at)], now) {
		n = max(0, n-float64(at-last)/1000*r.PerSecond) + 1
		last = at
	}
	return n - 1
}

const rounding = 1e-6

// may reports whether the rate allows one more take.
func (a *allowance) may(r job.Rate, now job.Millis) bool {
	return a.owed(r, now)+1 <= float64(r.BurstValue())+rounding
}

// take counts one. No window may have seen more than the burst and what the
// rate brings in its time (retry.md 4).
func (a *allowance) take(r job.Rate, now job.Millis, whose string) {
	a.at = append(a.at, now)
	for i, from := range a.at {
		n, most := len(a.at)-i, float64(r.BurstValue())+float64(now-from)/1000*r.PerSecond
		if float64(n) > most+rounding {
			broken("retry.md 4", "%s saw %d takes in %s, and its rate is %g/s after %d", whose, n, now-from, r.PerSecond, r.BurstValue())
		}
	}
}

// credit is what counts for a retry budget.
type credit struct {
	all, retries int
	began        job.Millis
	earned       float64
	floor        allowance
}

func floorOf(b *job.RetryBudget) job.Rate {
	return job.Rate{PerSecond: b.Floor, Burst: max(1, int(b.Floor))}
}

// may reports whether one more retry may be taken.
func (c *credit) may(b *job.RetryBudget, now job.Millis) bool {
	return c.earned+rounding >= 1 || b.Floor > 0 && c.floor.may(floorOf(b), now)
}

func (c *credit) take(b *job.RetryBudget, retried bool, now job.Millis, whose string) {
	if c.all == 0 {
		c.began = now
	}
	if retried {
		c.retries++
		floor := 0.0
		if b.Floor > 0 {
			floor = float64(floorOf(b).Burst) + float64(now-c.began)/1000*b.Floor
		}
		if most := b.Share*float64(c.all) + floor; float64(c.retries) > most+rounding {
			broken("retry.md 4", "%s saw %d retries among %d takes, and its budget is %+v: %g", whose, c.retries, c.all+1, *b, most)
		}
		if c.earned+rounding >= 1 {
			c.earned--
		} else {
			c.floor.at = append(c.floor.at, now)
		}
	}
	c.all++
	c.earned = max(0, c.earned) + b.Share
}

// measured is what a start of the engine measures anew.
type measured struct {
	rates   map[string]*allowance // of queues, and of groups by job.GateKey
	credits map[string]*credit
	units   map[string]*units    // of budgets
	waits   map[string]*patience // of groups in fair queues, by job.GateKey
}

func newMeasured() measured {
	return measured{map[string]*allowance{}, map[string]*credit{}, map[string]*units{}, map[string]*patience{}}
}

func (m *measured) rate(key string) *allowance {
	if m.rates[key] == nil {
		m.rates[key] = &allowance{}
	}
	return m.rates[key]
}

func (m *measured) credit(queue string) *credit {
	if m.credits[queue] == nil {
		m.credits[queue] = &credit{}
	}
	return m.credits[queue]
}

// retriedIn reports whether a budget bounds the takes of the job: strict
// groups are exempt.
func retriedIn(j *job.Job) bool { return j.Attempts > 0 && j.Order != job.OrderStrict }

// metered says why a rate or a budget lets no more through; "" = it does.
func (x *judge) metered(j *job.Job) string {
	p := &x.book.queue(j.Queue).Protection
	switch {
	case p.Rate.Limited() && !x.measured.rate(j.Queue).may(p.Rate, x.instant):
		x.coverage.feature("a rate used up")
		return "the rate of its queue is used up"
	case j.Group != "" && p.GroupRate.Limited() && !x.measured.rate(job.GateKey(j.Queue, j.Group)).may(p.GroupRate, x.instant):
		x.coverage.feature("the rate of a group used up")
		return "the rate of its group is used up"
	case p.Budget != nil && retriedIn(j) && !x.measured.credit(j.Queue).may(p.Budget, x.instant):
		x.coverage.feature("a budget used up")
		return "the retry budget of its queue is used up"
	}
	return ""
}

// meter counts a take against rates and budget, and holds it to them.
func (s *scene) meter(j *job.Job) {
	p := &s.q.Protection
	if p.Rate.Limited() {
		s.measured.rate(j.Queue).take(p.Rate, s.steady, "queue "+j.Queue)
	}
	if p.Budget != nil {
		s.measured.credit(j.Queue).take(p.Budget, retriedIn(j), s.steady, "queue "+j.Queue)
	}
	if j.Group != "" && p.GroupRate.Limited() {
		s.measured.rate(job.GateKey(j.Queue, j.Group)).take(p.GroupRate, s.steady, "group "+j.Queue+"/"+j.Group)
	}
}

// slowed holds the time for which the rate of a group is used up.
func (x *judge) slowed(c *commit, old, row job.Throttle) {
	if row.Slow == old.Slow {
		return
	}
	rate := x.book.queue(row.Queue).Protection.GroupRate
	a := x.measured.rate(job.GateKey(row.Queue, row.Group))
	free := !rate.Limited() || a.may(rate, c.steady)
	switch {
	case row.Group == "":
		broken("retry.md 4", "queue %s is slowed down as a group is: %+v", row.Queue, row)
	case row.Slow == 0 && !free:
		broken("I6", "group %s/%s may go on at %d, and its rate is used up", row.Queue, row.Group, c.steady)
	case row.Slow > c.steady && free:
		broken("retry.md 4", "group %s/%s must wait until %d at %d, and its rate is not used up", row.Queue, row.Group, row.Slow, c.steady)
	case row.Slow > c.steady && (!a.may(rate, row.Slow) || a.may(rate, row.Slow-1)):
		broken("retry.md 4", "group %s/%s must wait until %d at %d, and its rate has room at another time", row.Queue, row.Group, row.Slow, c.steady)
	}
}

// earning reports whether the takes of a batch may earn the job its place: who
// was offered work before does not look again.
func (x *judge) earning(j *job.Job) bool {
	b := x.book.queue(j.Queue).Protection.Budget
	return b != nil && b.Share > 0 && retriedIn(j)
}
