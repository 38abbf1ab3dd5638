package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// Durations is how long the latest runs took, at most job.RedundancySamples of
// them: those whose result was accepted, from when the engine began until it
// was done, without waiting in line. The grid keeps one for each session with
// redundancy, and one for each task type where a session uses hedge. The zero
// value is empty and has no memory; adding a run costs a binary search and a
// short copy, and no allocation once it is full.
//
// It is built again by adding what is kept of the runs in the order in which
// they ended (All gives them so).
type Durations struct {
	sorted []timing // by (run, at)
	ring   []timing // as they came
	next   int      // in ring: the oldest, once it is full
}

type timing struct{ run, at job.Millis }

func (a timing) compare(b timing) int {
	return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.at, b.at))
}

// Add remembers a run that took so long and ended at a date.
func (d *Durations) Add(run, at job.Millis) {
	t := timing{max(run, 0), at}
	if len(d.ring) < job.RedundancySamples {
		d.ring = append(d.ring, t)
	} else {
		i, _ := slices.BinarySearchFunc(d.sorted, d.ring[d.next], timing.compare)
		d.sorted = slices.Delete(d.sorted, i, i+1)
		d.ring[d.next] = t
		d.next = (d.next + 1) % len(d.ring)
	}
	i, _ := slices.BinarySearchFunc(d.sorted, t, timing.compare)
	d.sorted = slices.Insert(d.sorted, i, t)
}

// Len is how many runs are remembered.
func (d *Durations) Len() int { return len(d.sorted) }

// Median is 0 if no run is known; between the two in the middle of an even
// number it is their mean.
func (d *Durations) Median() float64 {
	n := len(d.sorted)
	if n == 0 {
		return 0
	}
	return (float64(d.sorted[(n-1)/2].run) + float64(d.sorted[n/2].run)) / 2
}

// Quantile is the p-quantile by the nearest rank; 0 if no run is known.
func (d *Durations) Quantile(p float64) job.Millis {
	n := len(d.sorted)
	if n == 0 {
		return 0
	}
	return d.sorted[min(max(int(math.Ceil(p*float64(n)-1e-9)), 1), n)-1].run
}

// Mean is the mean and the population standard deviation; 0 and 0 if no run is
// known. It looks at all of them.
func (d *Durations) Mean() (mean, deviation float64) {
	if len(d.sorted) == 0 {
		return 0, 0
	}
	n := float64(len(d.sorted))
	for _, t := range d.sorted {
		mean += float64(t.run)
	}
	mean /= n
	for _, t := range d.sorted {
		deviation += (float64(t.run) - mean) * (float64(t.run) - mean)
	}
	return mean, math.Sqrt(deviation / n)
}

// Slow is the share of runs that took longer than so many times the median.
func (d *Durations) Slow(times float64) float64 {
	if len(d.sorted) == 0 {
		return 0
	}
	limit := times * d.Median()
	i, _ := slices.BinarySearchFunc(d.sorted, limit, func(t timing, limit float64) int {
		if float64(t.run) > limit {
			return 1
		}
		return -1
	})
	return float64(len(d.sorted)-i) / float64(len(d.sorted))
}

// ageSteps are weights of runs whose ages differ by a quarter of the half-life:
// whole numbers, so that the sum does not depend on the order.
var ageSteps = func() (w [128]uint64) {
	for i := range w {
		w[i] = uint64(math.Round(math.Exp2(40 - float64(i)/4)))
	}
	return w
}()

// Decayed is the p-quantile where a run counts half of one that ended a
// half-life later (in steps of a quarter of it). It looks at all of them.
func (d *Durations) Decayed(p float64, halfLife job.Millis) job.Millis {
	if len(d.sorted) == 0 {
		return 0
	}
	newest, total := d.sorted[0].at, uint64(0)
	for _, t := range d.sorted {
		newest = max(newest, t.at)
	}
	weight := func(t timing) uint64 {
		age := 4 * float64(newest-t.at) / float64(max(halfLife, 1))
		return ageSteps[int(min(age, float64(len(ageSteps)-1)))]
	}
	for _, t := range d.sorted {
		total += weight(t)
	}
	beyond := uint64((1 - min(max(p, 0), 1)) * float64(total)) // may be longer
	for i := len(d.sorted) - 1; i > 0; i-- {
		w := weight(d.sorted[i])
		if w > beyond {
			return d.sorted[i].run
		}
		beyond -= w
	}
	return d.sorted[0].run
}
