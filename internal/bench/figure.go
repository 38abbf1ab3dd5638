package bench

import (
	"slices"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// Figure is one measured quantity of a phase.
type Figure struct {
	Phase   string    `json:"phase"`
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Samples []float64 `json:"samples"`
	Goal    *Goal     `json:"goal,omitempty"`
}

// Goal is what a figure should reach. Only some hold on every machine; the
// report says for which one the others were set.
type Goal struct {
	AtLeast *float64 `json:"at_least,omitempty"`
	AtMost  *float64 `json:"at_most,omitempty"`
	Met     bool     `json:"met"`
}

func atLeast(v float64) *Goal { return &Goal{AtLeast: &v} }
func atMost(v float64) *Goal  { return &Goal{AtMost: &v} }

func (f *Figure) add(v float64) {
	f.Samples = append(f.Samples, v)
	f.Median = gauge.Median(f.Samples)
	f.Min, f.Max = slices.Min(f.Samples), slices.Max(f.Samples)
	if g := f.Goal; g != nil {
		g.Met = (g.AtLeast == nil || f.Median >= *g.AtLeast) && (g.AtMost == nil || f.Median <= *g.AtMost)
	}
}
