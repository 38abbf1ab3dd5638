package rule

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// vectors is testdata/backoff.json, the shared vectors of the specification.
type vectors struct {
	TotalMillis [2]job.Millis `json:"zizq_defaults_total_ms"`
	Waits       []vector      `json:"waits"`
}

type vector struct {
	Policy    json.RawMessage `json:"policy"`
	Retry     int             `json:"retry"`
	MinMillis job.Millis      `json:"min_ms"`
	MaxMillis job.Millis      `json:"max_ms"`
	Inclusive bool            `json:"max_inclusive"`
}

func loadVectors(t testing.TB, path string) (v vectors) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func curveOf(t testing.TB, policy string) *job.Curve {
	t.Helper()
	r, err := job.ParseRetry([]byte(`{"curve":` + policy + `}`))
	if err != nil {
		t.Fatalf("%s: %v", policy, err)
	}
	return r.Curve
}

func always(r float64) func() float64 { return func() float64 { return r } }

func seeded() func() float64 { return rand.New(rand.NewPCG(1, 2)).Float64 }

func TestEveryVectorHoldsExactly(t *testing.T) {
	for _, file := range []string{"testdata/backoff.json", "testdata/zizq_including.json"} {
		for _, w := range loadVectors(t, file).Waits {
			t.Run(fmt.Sprintf("%s retry %d", w.Policy, w.Retry), func(t *testing.T) {
				c := curveOf(t, string(w.Policy))
				lo, hi, inclusive := DelayBounds(c, w.Retry)
				if lo != w.MinMillis || hi != w.MaxMillis || inclusive != w.Inclusive {
					t.Fatalf("bounds %d..%d inclusive %v, want %d..%d %v",
						lo, hi, inclusive, w.MinMillis, w.MaxMillis, w.Inclusive)
				}
				drawsStayInside(t, c, w)
			})
		}
	}
}

// drawsStayInside draws with fixed and with 2,000 seeded numbers and wants
// every draw in the interval and the extremes near its ends.
func drawsStayInside(t *testing.T, c *job.Curve, w vector) {
	t.Helper()
	inside := func(got job.Millis) {
		t.Helper()
		if got < w.MinMillis || got > w.MaxMillis || (!w.Inclusive && got == w.MaxMillis) {
			t.Fatalf("drew %d, outside %d..%d", got, w.MinMillis, w.MaxMillis)
		}
	}
	for _, r := range []float64{0, 0.5, 0.999999, 1 - 1.0/(1<<53)} {
		inside(Delay(c, w.Retry, 0, always(r)))
	}
	if got := Delay(c, w.Retry, 0, always(0)); got != w.MinMillis {
		t.Errorf("r = 0 drew %d, want the lower end %d", got, w.MinMillis)
	}
	top := w.MaxMillis
	if !w.Inclusive {
		top--
	}
	if got := Delay(c, w.Retry, 0, always(1-1.0/(1<<53))); got != top {
		t.Errorf("r just below 1 drew %d, want the upper end %d", got, top)
	}
	rnd := seeded()
	least, most, sum := job.MaxMillis, job.Millis(0), 0.0
	const draws = 2000
	for range draws {
		got := Delay(c, w.Retry, 0, rnd)
		inside(got)
		least, most, sum = min(least, got), max(most, got), sum+float64(got)
	}
	width := float64(w.MaxMillis - w.MinMillis)
	if float64(least-w.MinMillis) > width/100 || float64(w.MaxMillis-most) > width/100+1 {
		t.Errorf("2,000 draws reached only %d..%d of %d..%d", least, most, w.MinMillis, w.MaxMillis)
	}
	if middle := float64(w.MinMillis) + width/2; math.Abs(sum/draws-middle) > width/20+1 {
		t.Errorf("the mean of 2,000 draws is %.0f, want about %.0f", sum/draws, middle)
	}
}

func TestTheDefaultsRetryForRoughlyThreeWeeks(t *testing.T) {
	want := loadVectors(t, "testdata/backoff.json").TotalMillis
	if got := totals(job.DefaultRetry().Curve); got != want {
		t.Errorf("25 default retries take %v, want %v", got, want)
	}
}

func TestCountIncludingRetriesAsLongAsZizq061(t *testing.T) {
	want := loadVectors(t, "testdata/zizq_including.json").TotalMillis
	if got := totals(curveOf(t, `{"kind":"polynomial","count":"including"}`)); got != want {
		t.Errorf("25 retries take %v, want %v", got, want)
	}
}

func totals(c *job.Curve) (sum [2]job.Millis) {
	for n := 1; n <= 25; n++ {
		lo, hi, _ := DelayBounds(c, n)
		sum[0], sum[1] = sum[0].Add(lo), sum[1].Add(hi)
	}
	return sum
}

func TestTheWireBackoffComputesAsTheReferenceDoes(t *testing.T) {
	for _, v := range []struct {
		exponent   float64
		base       uint32
		jitter     uint32
		n          int // attempts before the one that failed are n-1
		wantLo, hi job.Millis
	}{
		{4, 15000, 30000, 2, 16000, 46000},
		{2, 100, 0, 4, 9100, 9100},
		{2, 500, 0, 2, 1500, 1500},
		{1.5, 1000, 10000, 11, 32622, 132622},
		{-1, 0, 0, 1, 0, 0},     // the term for a = 0 is 0, not infinite
		{-1, 0, 0, 3, 500, 500}, // 2^-1 seconds
		{math.MaxFloat32, 0, 0, 2, 1000, 1000},
		{math.MaxFloat32, 1, 1, 3, job.MaxMillis, job.MaxMillis},
		{-math.MaxFloat32, 7, 0, 3, 7, 7},
	} {
		c := job.ZizqCurve(v.exponent, v.base, v.jitter)
		if lo, hi, _ := DelayBounds(&c, v.n); lo != v.wantLo || hi != v.hi {
			t.Errorf("exponent %g base %d jitter %d, retry %d: %d..%d, want %d..%d",
				v.exponent, v.base, v.jitter, v.n, lo, hi, v.wantLo, v.hi)
		}
	}
}

// everyKind has one curve of each kind, with each jitter kind where there is one.
var everyKind = []string{
	`{"kind":"polynomial"}`,
	`{"kind":"polynomial","exponent":0.5,"count":"including"}`,
	`{"kind":"uniform"}`,
	`{"kind":"exponential"}`,
	`{"kind":"exponential","jitter":"none","offset":3}`,
	`{"kind":"exponential","jitter":"equal"}`,
	`{"kind":"exponential","jitter":"decorrelated"}`,
	`{"kind":"exponential","jitter":"±12.5%"}`,
	`{"kind":"constant"}`,
	`{"kind":"staircase"}`,
	`{"kind":"linear","base":"1s","step":"2s"}`,
	`{"kind":"linear","base":"1s","step":"2s","cap":"1m","jitter":"decorrelated"}`,
	`{"kind":"linear","base":"1s","step":"2s","jitter":"full"}`,
	`{"kind":"list","delays":["1s","1m","1h"]}`,
	`{"kind":"list","delays":["1s","1m","1h"],"jitter":"decorrelated"}`,
	`{"kind":"list","delays":["1s","1m","1h"],"jitter":"equal"}`,
	`{"kind":"immediate"}`,
}

func TestBoundsNeverFallFromOneRetryToTheNext(t *testing.T) {
	for _, policy := range everyKind {
		c := curveOf(t, policy)
		beforeLo, beforeHi, _ := DelayBounds(c, 1)
		for n := 2; n < 300; n++ {
			lo, hi, _ := DelayBounds(c, n)
			if lo < beforeLo || hi < beforeHi {
				t.Fatalf("%s: retry %d waits %d..%d after %d..%d", policy, n, lo, hi, beforeLo, beforeHi)
			}
			beforeLo, beforeHi = lo, hi
		}
	}
}

func TestPolynomialGrowsWithEveryRetryForAnyPositiveExponent(t *testing.T) {
	for _, exponent := range []float64{0.5, 1, 1.5, 2, 3.3, 4, 7} {
		c := job.ZizqCurve(exponent, 10, 0)
		before := job.Millis(-1)
		for n := 1; n <= 500; n++ {
			lo, _, _ := DelayBounds(&c, n)
			if lo <= before && lo < job.MaxMillis {
				t.Fatalf("exponent %g: retry %d waits %d after %d", exponent, n, lo, before)
			}
			before = lo
		}
	}
}

func TestWithoutJitterTheSourceIsNeverAsked(t *testing.T) {
	for _, policy := range []string{
		`{"kind":"polynomial","jitter":0}`, `{"kind":"constant"}`, `{"kind":"staircase"}`, `{"kind":"immediate"}`,
		`{"kind":"exponential","jitter":"none"}`, `{"kind":"exponential","jitter":"0%"}`,
		`{"kind":"linear","base":1,"step":2}`, `{"kind":"list","delays":[1,2,3]}`,
	} {
		c := curveOf(t, policy)
		for n := 1; n < 50; n++ {
			lo, hi, inclusive := DelayBounds(c, n)
			if got := Delay(c, n, 0, nil); got != lo || lo != hi || !inclusive {
				t.Errorf("%s retry %d: drew %d of %d..%d", policy, n, got, lo, hi)
			}
		}
	}
}

func TestAnyRetryNumberStaysBetweenNothingAndTheLongestTime(t *testing.T) {
	for _, policy := range everyKind {
		for _, n := range []int{math.MinInt, -1, 0, 1, 25, 26, 62, 63, 64, 65, 1 << 20, 1 << 31, math.MaxInt} {
			c := curveOf(t, policy)
			soundDelay(t, c, n, 0, 0.999999)
		}
	}
}

func TestARetryNumberBelowOneCountsAsTheFirst(t *testing.T) {
	c := curveOf(t, `{"kind":"exponential","jitter":"none"}`)
	if got := Delay(c, 0, 0, nil); got != job.Second {
		t.Errorf("got %v, want 1s", got)
	}
}

func TestOffsetStartsTheExponentialFurtherUp(t *testing.T) {
	c := curveOf(t, `{"kind":"exponential","unit":"1m","factor":2,"cap":"180m","offset":1,"jitter":"none"}`)
	for n, want := range []job.Millis{2, 4, 8, 16, 32, 64, 128, 180, 180} {
		if got := Delay(c, n+1, 0, nil); got != want*job.Minute {
			t.Errorf("retry %d waits %v, want %v", n+1, got, want*job.Minute)
		}
	}
}

func TestDecorrelatedJitterFollowsTheWaitBefore(t *testing.T) {
	c := curveOf(t, `{"kind":"exponential","unit":"1s","cap":"20s","jitter":"decorrelated"}`)
	for _, v := range []struct {
		n         int
		previous  job.Millis
		low, high job.Millis
	}{
		{1, 0, 1000, 3000},        // the first: as if the base had been waited
		{2, 2000, 1000, 6000},     // three times the wait before
		{2, 100, 1000, 1000},      // never below the base
		{3, 9000, 1000, 20000},    // never above the cap
		{1, job.Hour, 1000, 3000}, // never above what this retry can have: the policy may have changed
		{9, math.MaxInt64, 1000, 20000},
		{9, math.MinInt64, 1000, 3000},
	} {
		low := Delay(c, v.n, v.previous, always(0))
		high := Delay(c, v.n, v.previous, always(1-1.0/(1<<53)))
		if low != v.low || high != v.high {
			t.Errorf("retry %d after %d: %d..%d, want %d..%d", v.n, v.previous, low, high, v.low, v.high)
		}
	}
}

func TestDecorrelatedListStaysBetweenItsShortestAndLongestDelay(t *testing.T) {
	c := curveOf(t, `{"kind":"list","delays":["10s","1s","30s"],"jitter":"decorrelated"}`)
	previous, rnd := job.Millis(0), seeded()
	for n := 1; n < 200; n++ {
		previous = Delay(c, n, previous, rnd)
		if previous < job.Second || previous > 30*job.Second {
			t.Fatalf("retry %d waits %v", n, previous)
		}
	}
}

func TestAMissingOrUnknownCurveWaitsLikeTheDefault(t *testing.T) {
	for _, c := range []*job.Curve{nil, {}, {Kind: 200}, {Kind: job.CurveList}} {
		if lo, hi, _ := DelayBounds(c, 2); lo != 16*job.Second || hi != 46*job.Second {
			t.Errorf("%+v: %v..%v, want 16s..46s", c, lo, hi)
		}
	}
}

func TestABrokenSourceStillDrawsInside(t *testing.T) {
	c := curveOf(t, `{"kind":"uniform","base":"3s","cap":"30s"}`)
	for _, r := range []float64{-1, 1, 2, math.NaN(), math.Inf(1), math.Inf(-1)} {
		soundDelay(t, c, 2, 0, r)
	}
}

// soundDelay wants legal bounds, and a draw inside of them.
func soundDelay(t *testing.T, c *job.Curve, n int, previous job.Millis, r float64) {
	t.Helper()
	lo, hi, inclusive := DelayBounds(c, n)
	got := Delay(c, n, previous, always(r))
	switch {
	case lo < 0 || hi < lo || hi > job.MaxMillis:
		t.Fatalf("%+v retry %d: bounds %d..%d", c, n, lo, hi)
	case got < lo || got > hi || (got == hi && !inclusive):
		t.Fatalf("%+v retry %d: drew %d, outside %d..%d (%v)", c, n, got, lo, hi, inclusive)
	case lo == hi && !inclusive:
		t.Fatalf("%+v retry %d: the interval %d..%d is empty", c, n, lo, hi)
	}
}

func FuzzDelay(f *testing.F) {
	for kind := range uint8(10) {
		f.Add(kind, kind%5, int64(15000), int64(30000), int64(60000), 4.0, 10.0, 25, int64(5000), 0.5)
	}
	f.Add(uint8(1), uint8(0), int64(job.MaxMillis), int64(math.MaxInt64), int64(0), math.MaxFloat64, 100.0, math.MaxInt, int64(-1), 0.999999)
	f.Add(uint8(3), uint8(4), int64(0), int64(0), int64(0), math.Inf(1), math.NaN(), 1<<31, int64(0), 1.0)
	f.Add(uint8(3), uint8(3), int64(1), int64(math.MinInt64), int64(1)<<62, -2.5, 200.0, math.MinInt, int64(math.MaxInt64), math.NaN())
	f.Fuzz(func(t *testing.T, kind, jitter uint8, x, y, limit int64, power, percent float64, n int, previous int64, r float64) {
		c := &job.Curve{
			Kind: job.CurveKind(kind % 10),
			Base: job.Millis(x), Unit: job.Millis(x), Delay: job.Millis(x),
			Step: job.Millis(y), Spread: job.Millis(y), Cap: job.Millis(limit),
			Factor: power, Exponent: power, Offset: n,
			Delays: []job.Millis{job.Millis(x), job.Millis(y)},
			Jitter: job.Jitter{Kind: job.JitterKind(jitter % 6), Percent: percent},
			Count:  job.Count(jitter % 2),
		}
		soundDelay(t, c, n, job.Millis(previous), r)
		lo, _, _ := DelayBounds(c, 1)
		if _, hi, _ := DelayBounds(c, math.MaxInt32); hi < lo && power >= 1 && c.Kind != job.CurveList {
			t.Fatalf("%+v: the last retry waits less than the first", c)
		}
	})
}
