package job

import (
	"errors"
	"fmt"
	"math"
)

// Protection keeps a queue from storming its target (retry.md section 4). The
// zero value protects nothing and costs nothing.
type Protection struct {
	Breaker      *Breaker     // of the queue as a whole; nil = none
	GroupBreaker *Breaker     // of each group; nil = none
	Rate         Rate         // takes of the queue as a whole
	GroupRate    Rate         // takes of each group
	MaxRunning   int          // live leases at once; 0 = no limit
	Budget       *RetryBudget // nil = none
	Fair         *FairShare   // nil = line order
}

// WindowMax is the most outcomes a breaker looks at.
const WindowMax = 256

// Breaker is when a circuit breaker opens, and how it closes again.
type Breaker struct {
	Window      int     // latest outcomes looked at, at most WindowMax
	Ratio       float64 // share of failures among them at which it opens; 0 = it does not look at shares
	Consecutive int     // failures in a row at which it opens; 0 = it does not look at rows
	OpenFor     Millis  // open so long at first, then twice as long each time
	OpenForMax  Millis  // but never longer
	Probes      int     // runs let through then; all of them must succeed
	Ramp        Millis  // closing: the runs allowed at once double in tenths of this, then there is no limit
}

// DefaultBreaker is the breaker of the specification.
func DefaultBreaker() Breaker {
	return Breaker{Window: 20, Ratio: 0.5, OpenFor: 30 * Second, OpenForMax: 5 * Minute, Probes: 1, Ramp: 10 * Second}
}

// Check names everything that is wrong with the settings, each by its name on
// the wire below the given one.
func (b *Breaker) Check(name string) error {
	var c checks
	c.whole(name+".window", b.Window, 1, WindowMax)
	c.share(name+".failure_ratio", b.Ratio)
	c.whole(name+".consecutive", b.Consecutive, 0, math.MaxInt32)
	if b.Ratio == 0 && b.Consecutive == 0 {
		c.refuse(name, "must have a failure_ratio or a number of consecutive failures at which it opens")
	}
	c.span(name+".open_for_ms", b.OpenFor, 1)
	c.span(name+".open_for_max_ms", b.OpenForMax, b.OpenFor)
	c.whole(name+".probes", b.Probes, 1, 1000)
	c.span(name+".ramp_ms", b.Ramp, 0)
	return c.err()
}

// Rate is a number of takes per second. The zero value is no limit.
type Rate struct {
	PerSecond float64
	Burst     int // takes at once after a pause; 0 = what comes in a fiftieth of a second, at least 1
}

// RateMax is the highest rate that can be told from no limit.
const RateMax = 1_000_000

// Limited reports whether there is a limit.
func (r Rate) Limited() bool { return r.PerSecond > 0 }

// BurstValue is the burst, given or by default.
func (r Rate) BurstValue() int {
	if r.Burst > 0 {
		return r.Burst
	}
	return max(1, int(r.PerSecond/50))
}

// Check names everything that is wrong with the settings.
func (r Rate) Check(name string) error {
	var c checks
	if !(r.PerSecond >= 0 && r.PerSecond <= RateMax) {
		c.refuse(name+".per_second", "must be a number from 0 (no limit) to %d", RateMax)
	}
	if r.PerSecond > 0 && r.PerSecond < 1.0/86400 {
		c.refuse(name+".per_second", "must be 0 (no limit) or at least one a day")
	}
	c.whole(name+".burst", r.Burst, 0, RateMax)
	return c.err()
}

// RetryBudget bounds retries to a share of all takes.
type RetryBudget struct {
	Share float64 // retries among all takes, at most
	Floor float64 // retries per second that are always allowed
}

// DefaultBudget is the budget of the specification.
func DefaultBudget() RetryBudget { return RetryBudget{Share: 0.2, Floor: 10} }

// Check names everything that is wrong with the settings.
func (b *RetryBudget) Check(name string) error {
	var c checks
	c.share(name+".retry_share", b.Share)
	if !(b.Floor >= 0 && b.Floor <= RateMax) {
		c.refuse(name+".floor_per_second", "must be a number from 0 to %d", RateMax)
	}
	if b.Share == 0 && b.Floor == 0 {
		c.refuse(name, "must leave some retries: give it a retry_share or a floor_per_second")
	}
	return c.err()
}

// FairShare serves the groups of a queue in rounds, so that one with
// many jobs does not starve the rest.
type FairShare struct {
	Weights map[string]int // jobs of a group in one round; 1 where it is not named
}

// WeightMax is the most jobs of a group in one round.
const WeightMax = 1000

// Weight is how many jobs a group may start in one round.
func (f *FairShare) Weight(group string) int {
	if w := f.Weights[group]; w > 0 {
		return w
	}
	return 1
}

// Check names everything that is wrong with the settings.
func (f *FairShare) Check(name string) error {
	var c checks
	for group, w := range f.Weights {
		c.whole(fmt.Sprintf("%s.weights[%q]", name, group), w, 1, WeightMax)
	}
	return c.err()
}

// Check names everything that is wrong with the settings.
func (p *Protection) Check() error {
	var c checks
	c.whole("max_running", p.MaxRunning, 0, math.MaxInt32)
	problems := []error{c.err(), p.Rate.Check("rate"), p.GroupRate.Check("group_rate")}
	if p.Breaker != nil {
		problems = append(problems, p.Breaker.Check("breaker"))
	}
	if p.GroupBreaker != nil {
		problems = append(problems, p.GroupBreaker.Check("group_breaker"))
	}
	if p.Budget != nil {
		problems = append(problems, p.Budget.Check("retry_budget"))
	}
	if p.Fair != nil {
		problems = append(problems, p.Fair.Check("fair_share"))
	}
	return errors.Join(problems...)
}

// checks collects what is wrong.
type checks struct{ list []error }

func (c *checks) refuse(field, format string, args ...any) {
	c.list = append(c.list, &Error{Kind: Invalid, Field: field, Text: field + " " + fmt.Sprintf(format, args...)})
}

func (c *checks) whole(field string, n, least, most int) {
	if n < least || n > most {
		c.refuse(field, "must be a whole number from %d to %d", least, most)
	}
}

func (c *checks) share(field string, f float64) {
	if !(f >= 0 && f <= 1) {
		c.refuse(field, "must be a number from 0 to 1")
	}
}

func (c *checks) span(field string, m, least Millis) {
	if m < least || m > 30*Day {
		c.refuse(field, "must be from %d to %d milliseconds", least, 30*Day)
	}
}

func (c *checks) err() error { return errors.Join(c.list...) }

// BreakerState is where a circuit breaker is.
type BreakerState uint8

// The states. Ramping is closed with a limit that is about to go.
const (
	BreakerClosed BreakerState = iota
	BreakerOpen
	BreakerHalfOpen
	BreakerRamping
)

func (s BreakerState) String() string {
	return [...]string{"closed", "open", "half_open", "ramping"}[s]
}

// Throttle is what slows a queue (Group "") or a group down just now: the
// state of its breaker, and a rate that is used up. There is no row while
// nothing does. Its timers run on the steady clock.
type Throttle struct {
	Queue string
	Group string

	State    BreakerState
	Forced   bool   // an operator said so; outcomes and the clock change nothing
	Since    Millis // the date from which runs count as let through by this state
	Until    Millis // when the clock moves the breaker on; 0 = never
	Openings int    // since it was last closed
	Allowed  int    // runs at once, while half open or ramping
	Out      int    // those there are
	Won      int    // probes that succeeded
	Step     int    // of the ramp
	Slow     Millis // the rate is used up until then; 0 = is not
}

// Table implements Row.
func (t *Throttle) Table() Table { return Throttles }

// Key implements Row.
func (t *Throttle) Key() string { return GateKey(t.Queue, t.Group) }

// Due implements Row.
func (t *Throttle) Due() Millis {
	if t.Until == 0 || t.Slow != 0 && t.Slow < t.Until {
		return t.Slow
	}
	return t.Until
}

// Blank reports whether there is nothing worth a row.
func (t *Throttle) Blank() bool { return t.State == BreakerClosed && !t.Forced && t.Slow == 0 }
