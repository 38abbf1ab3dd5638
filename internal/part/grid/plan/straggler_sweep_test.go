package plan

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// A12 of the reference: each strategy on the sample of section 4 (nine of ten are
// done, after 8, 9, 9, 10, 10, 10, 11, 11 and 12 s), while the age of the tenth
// is swept in steps of a millisecond.
func TestA12EachStrategyFiresAtTheFirstMillisecondAboveItsThreshold(t *testing.T) {
	own := ran(loadGrid(t).Redundancy.Done...)
	mean, _ := own.Mean()
	hedge := func(r *job.Redundancy) { r.HedgeSamples = 9 }
	const horizon = 40 * job.Second
	for name, c := range map[string]struct {
		r     *job.Redundancy
		kind  *Durations
		tells float64 // how far the run says it is
		above float64 // in ms
	}{
		"tail":                       {r: using(job.RedundantTail, nil), above: 0},
		"mean":                       {r: using(job.RedundantMean, nil), above: 30_000},
		"stddev":                     {r: using(job.RedundantStddev, nil), above: 13_464.1},
		"median":                     {r: using(job.RedundantMedian, nil), above: 20_000},
		"time_left, half done":       {r: using(job.RedundantTimeLeft, nil), tells: 0.5, above: 20_000},
		"time_left, a quarter done":  {r: using(job.RedundantTimeLeft, nil), tells: 0.25, above: 20_000. / 3},
		"time_left, nearly done":     {r: using(job.RedundantTimeLeft, nil), tells: 0.75, above: float64(horizon)},
		"time_left, nothing is told": {r: using(job.RedundantTimeLeft, nil), above: float64(horizon)},
		"hedge":                      {r: using(job.RedundantHedge, hedge), kind: own, above: 12_000},
		"hedge, too few":             {r: using(job.RedundantHedge, nil), kind: own, above: float64(horizon)},
		"clone":                      {r: using(job.RedundantClone, nil), kind: own, above: float64(horizon)}, // asks when tasks are submitted
	} {
		first := job.Millis(0)
		for age := job.Millis(0); first == 0 && age <= horizon; age++ {
			limit, _, ok := Threshold(c.r, own, c.kind, Work{Total: 10, Done: 9})
			last := EndsLast(c.r, []Headway{{age, c.tells}}, mean, own.Len())
			if ok && age > limit || last == 0 {
				first = age
			}
		}
		want := job.Millis(c.above) + 1
		if c.above == float64(horizon) {
			want = 0
		}
		if first != want {
			t.Errorf("%s: fires at %d ms, want %d", name, first, want)
		}
		if c.tells > 0 && want > 0 {
			if at := LeftAt(c.r, 1000, c.tells, mean); at != 1000+want {
				t.Errorf("%s: looked at again at %d, want %d", name, at, 1000+want)
			}
		}
	}
	// clone: one of 20 runs of the type took more than twice the median.
	kind := ran(append(loadGrid(t).Redundancy.Done, 8, 9, 9, 10, 10, 10, 11, 11, 12, 10, 30)...)
	if p := kind.Slow(2); p != 0.05 {
		t.Fatalf("%v of the runs are slow", p)
	}
	for n, want := range map[int]int{1: 1, 2: 2, 10: 2, 11: 1} { // the last one is not small
		if got := Clones(using(job.RedundantClone, nil), n, kind.Slow(2), job.Millis(mean), job.Day); got != want {
			t.Errorf("clone: %d runs of each of %d tasks, want %d", got, n, want)
		}
	}
}
