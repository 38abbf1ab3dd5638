package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spread is what several runs of a figure amount to.
type Spread struct {
	Median, Min, Max float64
	Runs             int
}

// spreadOf describes samples; there must be one.
func spreadOf(samples []float64) Spread {
	return Spread{Median: median(samples), Min: slices.Min(samples), Max: slices.Max(samples), Runs: len(samples)}
}

// median of an even number of samples is the mean of the middle two, of none
// not a number.
func median(samples []float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Percentile returns a value that p percent of the durations do not exceed, in
// milliseconds: 0 when there are none. It sorts them.
func Percentile(durations []time.Duration, p float64) float64 {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	rank := max(int(math.Ceil(p/100*float64(len(durations)))), 1)
	return float64(durations[rank-1]) / float64(time.Millisecond)
}

// Number writes a value for people: whole numbers in groups of three digits,
// others with three significant digits below 100 and rounded above.
func Number(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case v == math.Trunc(v): // a count, or as good as one
	case size < 1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case size < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case size < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	digits := strconv.FormatInt(int64(math.Round(math.Abs(v))), 10)
	var groups []string
	for len(digits) > 3 {
		groups = append(groups, digits[len(digits)-3:])
		digits = digits[:len(digits)-3]
	}
	groups = append(groups, digits)
	slices.Reverse(groups)
	text := strings.Join(groups, ",")
	if v < 0 {
		text = "-" + text
	}
	return text
}

// bytesText writes a number of bytes in the unit that suits it.
func bytesText(v float64) string {
	switch {
	case v >= 1<<20:
		return Number(v/(1<<20)) + " MiB"
	case v >= 1<<10:
		return Number(v/(1<<10)) + " KiB"
	default:
		return fmt.Sprintf("%.0f B", v)
	}
}
