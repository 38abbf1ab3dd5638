package plan

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
)

func ran(seconds ...float64) *Durations {
	d := &Durations{}
	for i, s := range seconds {
		d.Add(job.Millis(s*1000), job.Millis(i))
	}
	return d
}

func TestQuantilesByTheNearestRank(t *testing.T) { // reference section 4
	d := ran(9, 9, 9, 10, 10, 10, 10, 10, 10, 10, 10, 11, 11, 11, 12, 12, 12, 13, 30, 45)
	if d.Len() != 20 || d.Quantile(0.95) != 30_000 || d.Quantile(1) != 45_000 || d.Quantile(0) != 9_000 {
		t.Errorf("p95 %d, p100 %d, p0 %d", d.Quantile(0.95), d.Quantile(1), d.Quantile(0))
	}
	if got := d.Slow(2); got != 0.1 {
		t.Errorf("%v of the runs are slow", got)
	}
	if ran(10, 20).Slow(2) != 0 || ran(10, 10, 20).Slow(2) != 0 {
		t.Error("a run of exactly the limit is slow")
	}
	var none Durations
	if mean, dev := none.Mean(); mean != 0 || dev != 0 || none.Median() != 0 || none.Quantile(1) != 0 || none.Slow(2) != 0 || none.Decayed(1, 1) != 0 {
		t.Error("nothing is known, and something is said")
	}
}

func TestTheMeanAndHowFarRunsAreFromIt(t *testing.T) {
	if mean, dev := ran(2, 4, 4, 4, 5, 5, 7, 9).Mean(); mean != 5000 || dev != 2000 {
		t.Errorf("mean %v, deviation %v", mean, dev)
	}
}

func TestOldRunsCountLess(t *testing.T) {
	d := &Durations{}
	for range 90 {
		d.Add(100_000, 0)
	}
	for range 90 {
		d.Add(10_000, 4*job.Day)
	}
	// After four half-lives 90 runs count as 5.6: 5.9 % of all.
	if d.Quantile(0.9) != 100_000 || d.Decayed(0.9, job.Day) != 10_000 || d.Decayed(0.95, job.Day) != 100_000 {
		t.Errorf("p90 %d, decayed %d, p95 decayed %d", d.Quantile(0.9), d.Decayed(0.9, job.Day), d.Decayed(0.95, job.Day))
	}
	d.Add(10_000, 1000*job.Day)
	if d.Decayed(0.5, job.Day) != 10_000 || d.Decayed(1, 1000*job.Day) != 100_000 {
		t.Error("a run of long ago weighs too much, or nothing")
	}
}

// What is kept step by step is what a look at the latest runs gives.
func TestLawsOfDurations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []job.Millis
		d := &Durations{}
		fill := rapid.SampledFrom([]int{0, 0, job.RedundancySamples - 2, 3 * job.RedundancySamples}).Draw(t, "before")
		for i := range fill {
			all = append(all, job.Millis(i*7919%1000))
			d.Add(all[i], job.Millis(i))
		}
		for _, run := range rapid.SliceOfN(rapid.Int64Range(-2, 1000), 1, 40).Draw(t, "runs") {
			all = append(all, max(0, job.Millis(run)))
			d.Add(job.Millis(run), job.Millis(len(all)))
		}
		latest := all[max(0, len(all)-job.RedundancySamples):]
		sorted := slices.Sorted(slices.Values(latest))
		n := len(sorted)
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		at := sorted[max(0, int(math.Ceil(p*float64(n)-1e-9))-1)]
		if d.Len() != n || d.Quantile(p) != at || d.Median() != (float64(sorted[(n-1)/2])+float64(sorted[n/2]))/2 {
			t.Fatalf("%d runs, p %v: %d and a median of %v, want %d", d.Len(), p, d.Quantile(p), d.Median(), at)
		}
		if same := d.Decayed(p, 1<<60); math.Abs(float64(n))*p != math.Trunc(float64(n)*p) && same != at {
			t.Fatalf("p %v: %d where no run decays, want %d", p, same, at)
		}
		again := &Durations{}
		d.all(again.Add)
		if !slices.Equal(again.sorted, d.sorted) || !slices.IsSortedFunc(d.sorted, timing.compare) {
			t.Fatal("built again it is another")
		}
	})
}

func TestAddingRunsCostsNoMemory(t *testing.T) {
	d, i := &Durations{}, job.Millis(0)
	add := func() { i++; d.Add(i*7919%1000, i) }
	for range 2 * job.RedundancySamples {
		add()
	}
	r := job.DefaultRedundancy()
	r.Strategies = 1<<job.RedundancyStrategies - 1
	if n := testing.AllocsPerRun(1000, func() {
		add()
		Threshold(&r, d, d, Work{Total: 10_000, Done: 9000})
	}); n > 0 {
		t.Errorf("a run costs %v allocations", n)
	}
}

func BenchmarkMedianThreshold(b *testing.B) {
	d, r := &Durations{}, job.DefaultRedundancy()
	for i := 0; b.Loop(); i++ {
		d.Add(job.Millis(i*7919%1000), job.Millis(i))
		Threshold(&r, d, nil, Work{Total: 10_000, Done: 9000})
	}
}

// all calls f for each run that is remembered, the oldest first.
func (d *Durations) all(f func(run, at job.Millis)) {
	for i := range d.ring {
		t := d.ring[(d.next+i)%len(d.ring)]
		f(t.run, t.at)
	}
}
