package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// Spread is what several runs of a figure amount to.
type Spread struct {
	Median, Min, Max float64
	Runs             int
}

// spreadOf describes samples; there must be one.
func spreadOf(samples []float64) Spread {
	return Spread{Median: gauge.Median(samples), Min: slices.Min(samples), Max: slices.Max(samples), Runs: len(samples)}
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
