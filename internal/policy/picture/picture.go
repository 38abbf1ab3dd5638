// Package picture draws what a retry policy does. A server draws nothing, so it
// stands beside package policy, which a server links.
package picture

import (
	"io"

	"github.com/reprisehq/reprise/internal/chart"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/policy"
)

// Spans are the units of a chart's axis that counts milliseconds.
var Spans = chart.Span(func(ms float64) string { return job.Millis(ms).String() })

// Preview draws, as SVG, the earliest and the latest wait before each retry, and the
// band between them in which it happens.
func Preview(w io.Writer, p policy.Preview) error {
	earliest := chart.Line{Name: "earliest"}
	latest := chart.Line{Name: "latest"}
	for _, row := range p.Rows {
		n := float64(row.Retry)
		earliest.Points = append(earliest.Points, chart.Point{X: n, Y: float64(row.Min)})
		latest.Points = append(latest.Points, chart.Point{X: n, Y: float64(row.Max)})
	}
	c := chart.Chart{
		Title: "Wait before each retry",
		Notes: []string{policy.Line(p.Retry)},
		X:     chart.Axis{Label: "retry", Unit: chart.Number},
		Panels: []chart.Panel{{
			Y:     chart.Axis{Label: "wait", Unit: Spans},
			Lines: []chart.Line{latest, earliest},
			Band:  true,
		}},
	}
	return c.Write(w)
}
