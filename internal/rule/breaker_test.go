package rule

import (
	"math/rand/v2"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// circuit is a breaker with a clock.
type circuit struct {
	*testing.T
	b  job.Breaker
	t  *job.Throttle
	w  Window
	at Moment
}

func newCircuit(t *testing.T) *circuit {
	return &circuit{T: t, b: job.DefaultBreaker(), t: &job.Throttle{Queue: "q", Group: "g"}, at: Moment{1_000_000, 5_000_000}}
}

func (c *circuit) run(since job.Millis, ok, failed bool) {
	c.t = Ended(&c.b, c.t, &c.w, Run{since, ok, failed}, c.at)
}

// runs ends runs that began now: + is OK, - a failure, 0 does not count.
func (c *circuit) runs(outcomes string) {
	for _, o := range outcomes {
		c.run(c.at.Now, o == '+', o == '-')
	}
}

func (c *circuit) is(want job.BreakerState) {
	c.Helper()
	if c.t.State != want {
		c.Fatalf("%s, want %s: %+v, window %+v", c.t.State, want, *c.t, c.w)
	}
}

func (c *circuit) lets(want int) {
	c.Helper()
	if got := Lets(c.t); got != want {
		c.Fatalf("lets %d through, want %d: %+v", got, want, *c.t)
	}
}

func (c *circuit) pass(span job.Millis) { c.at.Now += span; c.at.Steady += span }

// turn goes to the next time that the clock is due, and no further.
func (c *circuit) turn() {
	c.Helper()
	early := Moment{c.at.Now, c.t.Due() - 1}
	if _, err := AdvanceThrottle(&c.b, c.t, early); err == nil {
		c.Fatalf("I6: it turned before its time: %+v", *c.t)
	}
	c.pass(c.t.Due() - c.at.Steady)
	next, err := AdvanceThrottle(&c.b, c.t, c.at)
	if err != nil {
		c.Fatal(err)
	}
	c.t = next
}

func (c *circuit) grant() {
	c.Helper()
	if Lets(c.t) == 0 {
		c.Fatalf("nothing is let through: %+v", *c.t)
	}
	c.t = Granted(&c.b, c.t, c.at)
}

func TestABreakerOpensAtItsShareOfFailures(t *testing.T) { // retry.md section 4: 50 % of 20
	for _, tt := range []struct {
		outcomes string
		want     job.BreakerState
	}{
		{"---------", job.BreakerClosed}, // 9 of the last 20, whatever was before
		{"----------", job.BreakerOpen},  // 10
		{"-+-+-+-+-+-+-+-+-+-", job.BreakerOpen},
		{"-+-+-+-+-+-+-+-+-+", job.BreakerClosed},
		{"---------++++++++++++++++++++---------", job.BreakerClosed}, // the first have left the window
		{"-0-0-0-0-0-0-0-0-0", job.BreakerClosed},
		{"00000000000000000000", job.BreakerClosed},
	} {
		c := newCircuit(t)
		c.runs(tt.outcomes)
		if c.t.State != tt.want {
			t.Errorf("%s: %s, want %s", tt.outcomes, c.t.State, tt.want)
		}
	}
}

func TestABreakerOpensAfterFailuresInARow(t *testing.T) {
	c := newCircuit(t)
	c.b.Ratio, c.b.Consecutive = 0, 3
	c.runs("--+--+-0-")
	c.is(job.BreakerClosed)
	c.runs("-")
	c.is(job.BreakerOpen)
}

// TestAWindowKnowsItsFailures against a list of all outcomes.
func TestAWindowKnowsItsFailures(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		size, w, all := 1+rng.IntN(job.WindowMax), Window{}, []bool(nil)
		for range 600 {
			failure := rng.IntN(3) == 0
			all = append(all, failure)
			w.add(size, failure)
			failed, row := 0, 0
			for i := len(all) - 1; i >= max(0, len(all)-size); i-- {
				failed += map[bool]int{true: 1}[all[i]]
			}
			for i := len(all) - 1; i >= 0 && all[i]; i-- {
				row++
			}
			if w.failed != failed || w.row != row {
				t.Fatalf("window of %d: %d failed, %d in a row, want %d, %d", size, w.failed, w.row, failed, row)
			}
		}
	}
}

func TestAWindowOfAnotherSizeBeginsAnew(t *testing.T) {
	var w Window
	if !w.blank() {
		t.Error("a new one remembers something")
	}
	for range 7 {
		w.add(10, true)
	}
	w.add(10, false)
	if w.blank() {
		t.Error("7 failures are forgotten")
	}
	if w.add(5, false); w.failed != 0 || w.row != 0 || w.next != 1 || !w.blank() {
		t.Errorf("%+v", w)
	}
}

func TestABreakerWithoutARampClosesWithItsLastProbe(t *testing.T) {
	c := newCircuit(t)
	c.b.Ramp, c.b.Probes = 0, 2
	c.runs("----------")
	c.turn()
	if !Idle(c.t) {
		t.Errorf("nothing was let through: %+v", *c.t)
	}
	c.grant()
	if Idle(c.t) {
		t.Errorf("a probe is out: %+v", *c.t)
	}
	if due := c.t.Due() - c.at.Steady; due != c.b.OpenFor {
		t.Errorf("the probe may be away for %s", due)
	}
	c.runs("+")
	c.is(job.BreakerHalfOpen)
	c.grant()
	c.runs("+")
	c.is(job.BreakerClosed)
	if !c.t.Blank() || Idle(c.t) {
		t.Errorf("%+v", *c.t)
	}
}

func TestAHalfOpenBreakerWithoutWorkAsksAgainAtItsLongest(t *testing.T) {
	c := newCircuit(t)
	c.runs("----------")
	c.turn()
	if due := c.t.Due() - c.at.Steady; due != c.b.OpenForMax {
		t.Errorf("due in %s", due)
	}
}

func TestAPauseOfTheRateEndsBesideTheBreaker(t *testing.T) {
	c := newCircuit(t)
	c.t.Slow = c.at.Steady + 100
	c.runs("----------") // keeps the pause
	c.turn()
	if c.is(job.BreakerOpen); c.t.Slow != 0 || c.t.Until != c.at.Steady+c.b.OpenFor-100 {
		t.Errorf("after the pause: %+v", *c.t)
	}
	c.t.Slow = c.at.Steady + job.Hour
	c.turn()
	if c.is(job.BreakerHalfOpen); c.t.Slow == 0 {
		t.Errorf("the pause ended early: %+v", *c.t)
	}
	if got := CarryThrottle(&c.b, c.t, 0, c.at).Slow; got != c.at.Steady {
		t.Errorf("carried over: %d", got)
	}
	if got := CarryThrottle(nil, &job.Throttle{}, job.Hour, c.at); got.Slow != 0 || got.Until != 0 {
		t.Errorf("a timer that is not set was carried over: %+v", *got)
	}
	for _, due := range []job.Throttle{{}, {Until: c.at.Steady + 1}, {Slow: c.at.Steady + 1}} {
		if _, err := AdvanceThrottle(&c.b, &due, c.at); job.KindOf(err) != job.WrongState {
			t.Errorf("%+v turned: %v", due, err)
		}
	}
}

func TestABreakerThatWasTakenAwayClosesWhenItIsDue(t *testing.T) {
	c := newCircuit(t)
	c.runs("----------")
	c.pass(c.b.OpenFor)
	next, err := AdvanceThrottle(nil, c.t, c.at)
	if err != nil || !next.Blank() || next.Until != 0 {
		t.Errorf("%+v, %v", next, err)
	}
}

func TestAnOpenBreakerThatIsReleasedCountsAsOpenedOnce(t *testing.T) {
	c := newCircuit(t)
	c.runs("----------")
	c.t = ReleaseForce(&c.b, Force(c.t, job.BreakerOpen, c.at), c.at)
	if c.t.Forced || c.t.Openings != 1 {
		t.Errorf("%+v", *c.t)
	}
}

func TestAnOpenBreakerLetsAProbeThroughAndStaysOpenLongerEachTime(t *testing.T) {
	c := newCircuit(t)
	c.runs("----------")
	c.lets(0)
	c.runs("++++++++++++++++++++++++++") // began before: they change nothing
	c.is(job.BreakerOpen)
	for _, want := range []job.Millis{30 * job.Second, job.Minute, 2 * job.Minute, 4 * job.Minute, 5 * job.Minute, 5 * job.Minute} {
		if got := c.t.Until - c.at.Steady; got != want {
			t.Fatalf("open for %s, want %s", got, want)
		}
		c.turn()
		c.is(job.BreakerHalfOpen)
		c.lets(1)
		c.grant()
		c.lets(0)
		c.runs("-")
		c.is(job.BreakerOpen)
	}
	c.turn()
	c.grant()
	c.pass(job.Second)
	c.run(c.t.Since-1, true, false) // began before the probe
	c.is(job.BreakerHalfOpen)
	c.run(c.t.Since, true, false)
	c.is(job.BreakerRamping)
}

func TestAClosingBreakerReturnsWorkAtARamp(t *testing.T) {
	c := newCircuit(t)
	c.b.Probes = 2
	c.runs("----------")
	c.turn()
	c.lets(2)
	c.grant()
	c.grant()
	c.runs("+")
	c.is(job.BreakerHalfOpen)
	c.lets(0) // two probes, no more
	c.runs("+")
	start := c.at.Steady
	for allowed := 4; allowed <= 2<<rampSteps; allowed *= 2 {
		c.is(job.BreakerRamping)
		c.lets(allowed)
		c.grant()
		c.lets(allowed - 1)
		c.runs("+")
		c.turn()
	}
	c.is(job.BreakerClosed)
	c.lets(NoLimit)
	if took := c.at.Steady - start; took != c.b.Ramp || !c.t.Blank() || c.t.Openings != 0 {
		t.Errorf("closed after %s: %+v", took, *c.t)
	}
}

func TestABreakerThatRampsOpensAgainAtItsShareOfFailures(t *testing.T) {
	c := newCircuit(t)
	c.runs("----------")
	c.turn()
	c.grant()
	c.runs("+---------")
	c.is(job.BreakerRamping)
	c.runs("-")
	c.is(job.BreakerOpen)
	if got := c.t.Until - c.at.Steady; got != job.Minute {
		t.Errorf("open for %s the second time", got)
	}
}

func TestProbesThatAreNotHeardOfMakeRoomForOthers(t *testing.T) {
	c := newCircuit(t)
	c.runs("----------")
	c.turn()
	c.grant()
	c.runs("0") // given back
	c.lets(1)
	c.grant()
	lost := c.at.Now
	c.turn()
	c.lets(1)
	c.run(lost, false, true)
	c.is(job.BreakerHalfOpen)
	c.grant()
	c.runs("+")
	c.is(job.BreakerRamping)
}

func TestAForcedBreakerIsMovedByNothingButItsRelease(t *testing.T) {
	c := newCircuit(t)
	c.t = Force(c.t, job.BreakerOpen, c.at)
	c.lets(0)
	c.runs("++++++++++++++++++++")
	c.lets(0)
	if c.t.Due() != 0 {
		t.Errorf("the clock would move it: %+v", *c.t)
	}
	c.t = Force(c.t, job.BreakerClosed, c.at)
	c.runs("--------------------")
	c.lets(NoLimit)
	if c.t.Blank() {
		t.Error("that it is forced would be forgotten")
	}
	if c.t = ReleaseForce(&c.b, c.t, c.at); !c.t.Blank() {
		t.Errorf("released from closed: %+v", *c.t)
	}
	c.t = ReleaseForce(&c.b, Force(c.t, job.BreakerOpen, c.at), c.at)
	c.is(job.BreakerHalfOpen)
	c.lets(1)
	if c.t = ReleaseForce(nil, Force(c.t, job.BreakerOpen, c.at), c.at); !c.t.Blank() {
		t.Errorf("released without settings: %+v", *c.t)
	}
}

func TestABreakerIsCarriedOverARestartAndWaitsNoLonger(t *testing.T) {
	c := newCircuit(t)
	c.runs("----------")
	for _, tt := range []struct{ shift, want job.Millis }{{0, 30 * job.Second}, {-10 * job.Second, 20 * job.Second}, {-job.Hour, 0}, {job.Hour, 5 * job.Minute}} {
		if got := CarryThrottle(&c.b, c.t, tt.shift, c.at).Until - c.at.Steady; got != tt.want {
			t.Errorf("shifted by %s: open for %s, want %s", tt.shift, got, tt.want)
		}
	}
}

func TestRunsCountWhatWasChargedAndNothingElse(t *testing.T) { // core.md section 9
	leases := []job.Lease{{Since: 1}, {Since: 2}}
	at := func(attempts uint32) *job.Job { return &job.Job{Attempts: attempts} }
	for name, tt := range map[string]struct {
		v    Verb
		e    Effect
		want []Run
	}{
		"ok, the other copy is superseded":    {SettleOK, Effect{Ended: leases, Left: at(1)}, []Run{{Since: 1}, {2, true, false}}},
		"late":                                {SettleOK, Effect{Late: true, Job: at(1)}, []Run{{OK: true}}},
		"retry":                               {SettleRetry, Effect{Ended: leases[:1], Job: at(2)}, []Run{{1, false, true}}},
		"retry in grace, or released by rule": {SettleRetry, Effect{Ended: leases[:1], Job: at(1)}, []Run{{Since: 1}}},
		"dead":                                {SettleDead, Effect{Ended: leases, Left: at(2)}, []Run{{Since: 1}, {2, false, true}}},
		"release":                             {SettleRelease, Effect{Ended: leases[:1], Job: at(1)}, []Run{{Since: 1}}},
		"both timed out":                      {Lapse, Effect{Ended: leases, Job: at(3)}, []Run{{1, false, true}, {2, false, true}}},
		"lost":                                {Lapse, Effect{Ended: leases, Job: at(1)}, []Run{{Since: 1}, {Since: 2}}},
		"a repeat":                            {SettleOK, Effect{Repeat: true, Late: true, Job: at(1)}, nil},
		"ok without a lease":                  {SettleOK, Effect{Left: at(1)}, nil},
		"cancelled, and nothing is left":      {Cancel, Effect{Ended: leases[:1]}, []Run{{Since: 1}}},
	} {
		if RunsOf(nil, tt.v, tt.e) != nil {
			t.Errorf("%s: a run of a job that was not there", name)
		}
		got := RunsOf(at(1), tt.v, tt.e)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: %+v, want %+v", name, got, tt.want)
			}
		}
	}
}

func TestARateLetsThroughWhatItSays(t *testing.T) {
	for _, tt := range []struct {
		rate    job.Rate
		seconds job.Millis
	}{{job.Rate{PerSecond: 1}, 50}, {job.Rate{PerSecond: 100}, 10}, {job.Rate{PerSecond: 3, Burst: 10}, 30}, {job.Rate{PerSecond: 5000}, 3}, {job.Rate{PerSecond: 0.1}, 100}} {
		var b Bucket
		start := job.Millis(1_700_000_000_000)
		var taken []job.Millis
		for at := start; at < start+tt.seconds*job.Second; {
			if b.Left(tt.rate, at) == 0 {
				next := b.Next(tt.rate, at)
				if next <= at || b.Left(tt.rate, next) == 0 || b.Left(tt.rate, next-1) > 0 {
					t.Fatalf("%+v: at %d it says the next is at %d", tt.rate, at, next)
				}
				at = next
				continue
			}
			b.Take(tt.rate, at)
			taken = append(taken, at)
		}
		want := tt.rate.PerSecond*float64(tt.seconds) + float64(tt.rate.BurstValue())
		if got := float64(len(taken)); got < want*0.999-2 || got > want+1 {
			t.Errorf("%+v: %v in %d s, want about %v", tt.rate, got, tt.seconds, want)
		}
		most := int(tt.rate.PerSecond) + tt.rate.BurstValue()
		for i := range taken { // in no second more than the rate and the burst
			if j := i + most + 1; j < len(taken) && taken[j]-taken[i] < job.Second {
				t.Fatalf("%+v: %d in the second from %d", tt.rate, most+2, taken[i])
			}
		}
	}
}

func TestABudgetGivesRetriesAShareAndAFloor(t *testing.T) { // retry.md section 4: 20 %, 10/s
	b := job.DefaultBudget()
	var c Credit
	at, fresh, retried := job.Millis(1_700_000_000_000), 0, 0
	for range 100_000 { // 1000 fresh takes a second, and retries whenever they may
		c.Take(&b, false, at)
		fresh++
		for c.Left(&b, at) > 0 {
			c.Take(&b, true, at)
			retried++
		}
		at++
	}
	share := 0.2*float64(fresh+retried) + 10*100
	if got := float64(retried); got < share*0.98 || got > share*1.02 {
		t.Errorf("%d retries beside %d fresh takes, want about %v", retried, fresh, share)
	}
	c = Credit{}
	retried = 0
	for end := at + 10*job.Second; at < end; {
		if c.Left(&b, at) > 0 {
			c.Take(&b, true, at)
			retried++
		} else {
			at = c.Next(&b, at)
		}
	}
	if retried < 108 || retried > 140 { // 10/s, each of them worth its share, and a full floor to begin with
		t.Errorf("%d retries in 10 s without fresh takes", retried)
	}
}

func TestAHoldEndsALittleLaterAndNeverAfterAnHour(t *testing.T) {
	const now = job.Millis(1_000_000)
	for _, tt := range []struct {
		until  job.Millis
		random float64
		want   job.Millis
	}{
		{now + 1000, 0, now + 1000},
		{now + 1000, 0.5, now + 1050},
		{now + 1000, 0.999, now + 1100},
		{now + 2*job.Hour, 0, now + job.Hour},
		{now + job.Hour, 0.9, now + job.Hour},
		{now - 5, 0.9, now + 1},
		{0, 0, now + 1},
	} {
		if got := HoldUntil(now, tt.until, tt.random); got != tt.want {
			t.Errorf("until %d with %v: %d, want %d", tt.until, tt.random, got, tt.want)
		}
	}
}

// blank reports whether forgetting the window changes nothing.
func (w *Window) blank() bool { return w.failed == 0 && w.row == 0 }
