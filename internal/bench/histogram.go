package bench

import (
	"math"
	"math/bits"
	"time"
)

// A histogram keeps durations in buckets whose width grows with the value:
// 128 to each power of two of nanoseconds, so a percentile is at most 0.8 %
// above the truth. Adding costs an index and an increment, and histograms of
// many connections add up.
const (
	histogramSubBits    = 7
	histogramSubBuckets = 1 << histogramSubBits
	histogramBuckets    = (64 - histogramSubBits + 1) * histogramSubBuckets
)

// histogram is used by one goroutine at a time.
type histogram struct {
	counts [histogramBuckets]uint32
	total  int64
	max    time.Duration
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.counts[histogramBucket(uint64(d))]++
	h.total++
	h.max = max(h.max, d)
}

// histogramBucket numbers the bucket of v: exact below 128, then by the
// leading bit and the seven bits behind it.
func histogramBucket(v uint64) int {
	if v < histogramSubBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - histogramSubBits - 1
	return shift*histogramSubBuckets + int(v>>shift)
}

// histogramTop is the largest value of a bucket.
func histogramTop(bucket int) uint64 {
	if bucket < histogramSubBuckets {
		return uint64(bucket)
	}
	shift := bucket/histogramSubBuckets - 1
	lead := uint64(bucket%histogramSubBuckets + histogramSubBuckets)
	return (lead+1)<<shift - 1
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.max = max(h.max, other.max)
}

// percentile returns a value that p percent of the durations do not exceed: 0
// when there are none, and never more than the largest seen.
func (h *histogram) percentile(p float64) time.Duration {
	rank := max(int64(math.Ceil(p/100*float64(h.total))), 1)
	var seen int64
	for i, n := range h.counts {
		seen += int64(n)
		if n > 0 && seen >= rank {
			return min(time.Duration(histogramTop(i)), h.max)
		}
	}
	return h.max
}

// milliseconds is the unit in which the report shows durations.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
