package rule

import (
	"iter"
	"math"

	"github.com/reprisehq/reprise/internal/job"
)

// Wait is what is known of a wait before Delay draws it, in milliseconds: the
// shortest and the longest, which are those of DelayBounds, and the mean of all
// draws, rounded to the nearest millisecond.
type Wait struct{ Min, Mean, Max job.Millis }

// Waits yields the wait before each retry of a curve, the first retry first,
// and never ends: the caller knows how many it wants. Nothing is drawn. As
// with Delay, a missing curve waits as the server's default does.
//
// The mean is exact, because draws are uniform over whole milliseconds, for
// every jitter but decorrelated, see chain.
func Waits(c *job.Curve) iter.Seq[Wait] {
	return func(yield func(Wait) bool) {
		var follow *chain
		if c != nil && jitterOf(c) == job.JitterDecorrelated {
			follow = newChain(c)
		}
		for n := 1; ; n++ {
			lo, hi, inclusive := DelayBounds(c, n)
			w := Wait{Min: lo, Max: hi}
			if follow != nil {
				w.Mean = min(max(lo, follow.next()), hi)
			} else {
				count := hi - lo
				if inclusive {
					count++
				}
				w.Mean = lo + count/2 // (count-1)/2, half a millisecond up
			}
			if !yield(w) {
				return
			}
		}
	}
}

// chain computes the mean waits of decorrelated jitter, where a wait is
// uniform between the base and three times the wait before it, at most the cap:
//
//	E[w(n)] = (base + E[min(cap, 3 w(n-1))]) / 2,  w(0) = base
//
// The mean of the wait before is not enough to know that, because of the cap,
// so the whole distribution is carried from wait to wait: its mass in cells
// whose edges are base * 3^(k/cellsPerTripling), up to the cap. The mean is
// right to a few parts in a million for each wait before it.
type chain struct {
	base, limit float64
	edges       []float64 // one more than cells
	mass        []float64 // of the latest wait, by cell; nil before the first
	mean        float64
	settled     bool // the distribution does not change any more
}

const cellsPerTripling = 256

func newChain(c *job.Curve) *chain {
	lo, _, _ := DelayBounds(c, 1)
	_, hi, _ := DelayBounds(c, math.MaxInt32) // where it is cut in the end
	h := &chain{base: float64(lo), limit: float64(hi)}
	if lo == hi { // nothing to choose, ever
		h.mean, h.settled = h.base, true
		return h
	}
	for k := 0; ; k++ {
		edge := h.base * math.Pow(3, float64(k)/cellsPerTripling)
		if edge >= h.limit {
			break
		}
		h.edges = append(h.edges, edge)
	}
	h.edges = append(h.edges, h.limit)
	return h
}

// next goes on to the next wait and returns its mean.
func (h *chain) next() job.Millis {
	if !h.settled {
		before := h.mean
		h.step()
		h.settled = math.Abs(h.mean-before) < 1e-9*h.mean
	}
	return Whole(math.Round(h.mean))
}

func (h *chain) step() {
	cells := len(h.edges) - 1
	next := make([]float64, cells)
	ending := make([]float64, cells) // density that fills every cell below this one
	sum := 0.0
	spread := func(before, mass float64, at int) { // uniform over base..upto, which lies in cell at
		upto := min(h.limit, 3*before)
		at = min(at, cells-1)
		sum += float64(mass * upto)
		density := mass / (upto - h.base)
		ending[at] += density
		next[at] += float64(density * (upto - h.edges[at]))
	}
	if h.mass == nil {
		spread(h.base, 1, cellsPerTripling-1)
	}
	for i, mass := range h.mass {
		spread((h.edges[i]+h.edges[i+1])/2, mass, i+cellsPerTripling)
	}
	density := 0.0
	for i := cells - 1; i > 0; i-- {
		density += ending[i]
		next[i-1] += float64(density * (h.edges[i] - h.edges[i-1]))
	}
	h.mass, h.mean = next, (h.base+sum)/2
}
