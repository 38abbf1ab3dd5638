package result

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// Ours is how the names of our own systems begin.
const Ours = "Reprise"

// Row is one system in a comparison.
type Row struct {
	System System
	Spread Spread
	Cost   *Cost // medians; nil where none was measured
}

// ours reports whether the row is the product's own.
func (r Row) ours() bool { return strings.HasPrefix(r.System.Name, Ours) }

// Comparison is one figure over the systems of one durability class, the best
// median first.
type Comparison struct {
	Phase, Name, Unit string
	Class             string
	Rows              []Row
}

// lessIsBetter is for units of time and memory; of the rest more is better.
func lessIsBetter(unit string) bool {
	return slices.Contains([]string{"ms", "s", "bytes/job", "MiB"}, unit)
}

// described are figures that explain others and are nothing to be better in.
var described = []string{"jobs of the backlog", "jobs that failed", "shortest wait"}

// Ahead lists the peers with a better median than the best of ours, and by
// what factor. It is empty where we are first, where nothing of ours was
// measured, and for figures that only explain.
func (c Comparison) Ahead() (peers []Lead) {
	ours := slices.IndexFunc(c.Rows, Row.ours)
	if ours < 0 || slices.Contains(described, c.Name) {
		return nil
	}
	mine := c.Rows[ours].Spread
	for _, row := range c.Rows[:ours] {
		lead := Lead{Name: row.System.Name, Factor: row.Spread.Median / mine.Median}
		if lessIsBetter(c.Unit) {
			lead.Factor = mine.Median / row.Spread.Median
		}
		if lead.Factor > 1 {
			lead.Overlap = row.Spread.Min <= mine.Max && mine.Min <= row.Spread.Max
			peers = append(peers, lead)
		}
	}
	return peers
}

// Lead is by how much a peer is ahead.
type Lead struct {
	Name    string
	Factor  float64 // above 1
	Overlap bool    // the ranges of the runs overlap, so it may be chance
}

// Compare gathers one figure inside one class. Rows never mix classes.
func (f *File) Compare(phase, name, class string) Comparison {
	c := Comparison{Phase: phase, Name: name, Class: class}
	for _, s := range f.Systems {
		if s.Class != class {
			continue
		}
		var samples []float64
		var costs []Cost
		for _, r := range f.Runs {
			if r.System != s.Name {
				continue
			}
			for _, figure := range r.Figures {
				if figure.Phase != phase || figure.Name != name {
					continue
				}
				c.Unit = figure.Unit
				samples = append(samples, figure.Value)
				if figure.Cost != nil {
					costs = append(costs, *figure.Cost)
				}
			}
		}
		if len(samples) > 0 {
			c.Rows = append(c.Rows, Row{System: s, Spread: spreadOf(samples), Cost: medianCost(costs)})
		}
	}
	slices.SortStableFunc(c.Rows, func(a, b Row) int {
		if lessIsBetter(c.Unit) {
			return cmp.Compare(a.Spread.Median, b.Spread.Median)
		}
		return cmp.Compare(b.Spread.Median, a.Spread.Median)
	})
	return c
}

// figures lists the names of the figures of a phase, in the order in which they
// were first measured.
func (f *File) figures(phase string) (names []string) {
	for _, r := range f.Runs {
		for _, figure := range r.Figures {
			if figure.Phase == phase && !slices.Contains(names, figure.Name) {
				names = append(names, figure.Name)
			}
		}
	}
	return names
}

// classes lists the durability classes of the systems, the strongest first.
func (f *File) classes() (names []string) {
	for _, s := range f.Systems {
		if !slices.Contains(names, s.Class) {
			names = append(names, s.Class)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names
}

func medianCost(costs []Cost) *Cost {
	if len(costs) == 0 {
		return nil
	}
	of := func(part func(Cost) float64) float64 {
		samples := make([]float64, len(costs))
		for i, c := range costs {
			samples[i] = part(c)
		}
		return gauge.Median(samples)
	}
	return &Cost{
		ServerCPU:    of(func(c Cost) float64 { return c.ServerCPU }),
		WrittenBytes: of(func(c Cost) float64 { return c.WrittenBytes }),
		GeneratorCPU: of(func(c Cost) float64 { return c.GeneratorCPU }),
		OtherShare:   of(func(c Cost) float64 { return c.OtherShare }),
	}
}
