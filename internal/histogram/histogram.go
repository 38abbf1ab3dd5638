// Package histogram counts values by size.
package histogram

// Buckets of a histogram; the last one is open.
const Buckets = 16

// Edges are the upper ends, inclusive, of all buckets but the last.
type Edges [Buckets - 1]int64

// Spans are the edges of spans of time in milliseconds, as all times of jobs are.
var Spans = Edges{5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 1_800_000}

// Histogram counts values by bucket, each bucket by itself.
type Histogram struct {
	Counts [Buckets]uint64
	Sum    int64
}

// Observe counts a value.
func (h *Histogram) Observe(edges *Edges, v int64) {
	i := 0
	for i < len(edges) && v > edges[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += v
}

// Add adds the counts of another one.
func (h *Histogram) Add(t *Histogram) {
	for i, n := range t.Counts {
		h.Counts[i] += n
	}
	h.Sum += t.Sum
}
