package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

func TestBucketsCoverAllValuesWithoutGaps(t *testing.T) {
	t.Parallel()
	for bucket := range histogramBuckets - 1 {
		top := histogramTop(bucket)
		if histogramBucket(top) != bucket || histogramBucket(top+1) != bucket+1 {
			t.Fatalf("bucket %d ends at %d, which is in %d and is followed by %d",
				bucket, top, histogramBucket(top), histogramBucket(top+1))
		}
	}
	if last := histogramBucket(math.MaxUint64); last != histogramBuckets-1 {
		t.Errorf("the largest value is in bucket %d of %d", last, histogramBuckets)
	}
}

func TestPercentilesAreThoseOfTheSortedValues(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 10, 1000, 100_000} {
		parts := make([]histogram, 3)
		values := make([]time.Duration, n)
		for i := range values {
			values[i] = time.Duration(math.Exp(random.Float64()*20) * 100)
			parts[i%len(parts)].add(values[i])
		}
		slices.Sort(values)
		sum := merged(parts)
		for _, p := range []float64{0, 1, 50, 95, 99, 99.9, 100} {
			exact := values[max(int(math.Ceil(p/100*float64(n))), 1)-1]
			got := sum.percentile(p)
			if got < exact || float64(got) > float64(exact)*1.008+1 {
				t.Errorf("p%v of %d values: %v, exactly %v", p, n, got, exact)
			}
		}
		if sum.max != values[n-1] || sum.total != int64(n) {
			t.Errorf("max %v, total %d", sum.max, sum.total)
		}
	}
}

func TestAnEmptyHistogramHasPercentilesOfZero(t *testing.T) {
	t.Parallel()
	var h histogram
	if h.percentile(99) != 0 {
		t.Error(h.percentile(99))
	}
	h.add(-time.Second) // a clock that was set back counts as no time
	if h.percentile(99) != 0 || h.total != 1 {
		t.Error(h.percentile(99), h.total)
	}
}

func TestFiguresKeepMedianAndSpread(t *testing.T) {
	t.Parallel()
	f := Figure{Goal: atLeast(3)}
	for i, step := range []struct {
		value, median float64
		met           bool
	}{{5, 5, true}, {1, 3, true}, {2, 2, false}, {9, 3.5, true}} {
		f.add(step.value)
		if f.Median != step.median || f.Goal.Met != step.met {
			t.Errorf("after %d: median %v, met %v", i+1, f.Median, f.Goal.Met)
		}
	}
	if f.Min != 1 || f.Max != 9 {
		t.Errorf("%v .. %v", f.Min, f.Max)
	}
	most := Figure{Goal: atMost(5)}
	most.add(5.1)
	if most.Goal.Met || most.Goal.String() != "<= 5.000 missed" {
		t.Error(most.Goal)
	}
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for v, expected := range map[float64]string{
		0: "0", 0.6: "0.600", 12.34: "12.3", 999.6: "1,000", 1234567: "1,234,567", -45678: "-45,678", 100: "100",
	} {
		if got := number(v); got != expected {
			t.Errorf("%v: %q, expected %q", v, got, expected)
		}
	}
}

func TestALedgerKnowsWhatItHasSeen(t *testing.T) {
	t.Parallel()
	var l gauge.Ledger
	for _, n := range []int64{0, 63, 64, 1_000_000, 5} {
		if !l.Mark(n) {
			t.Errorf("%d is said to be known", n)
		}
		if l.Mark(n) {
			t.Errorf("%d is not recognised", n)
		}
	}
	if l.Count() != 5 {
		t.Error(l.Count())
	}
}
