package straggler

import (
	"fmt"
	"io"
	"strconv"

	"github.com/reprisehq/reprise/internal/chart"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/policy/picture"
)

// pointsMax bounds the points of a line in a picture.
const pointsMax = 300

// Scene says in a line what was simulated.
func (o Options) Scene() string {
	s := fmt.Sprintf("%d tasks of %s", o.Tasks, o.Run)
	if o.Spread > 0 {
		s += " ±" + percent(o.Spread)
	}
	s += fmt.Sprintf(" on %d slots", o.Slots)
	if o.SlowShare > 0 && o.Slow > 1 {
		s += fmt.Sprintf("; %s of the runs take %s times as long", percent(o.SlowShare), number(o.Slow))
	}
	return s + "; seed " + strconv.FormatUint(o.Seed, 10)
}

func number(f float64) string  { return strconv.FormatFloat(f, 'f', -1, 64) }
func percent(f float64) string { return strconv.FormatFloat(100*f, 'f', -1, 64) + " %" }

// Extra is the time of copies as a share of the time of useful runs.
func (r *Report) Extra() float64 {
	if r.Useful == 0 {
		return 0
	}
	return float64(r.Spent) / float64(r.Useful)
}

// WriteSVG draws the session without copies and with the first strategy: how
// many tasks are done over time, and from which age a run is a straggler.
func (c *Comparison) WriteSVG(w io.Writer) error {
	if len(c.Runs) < 2 {
		return job.Errorf(job.Invalid, "there is nothing to compare: name a strategy")
	}
	without, with := c.Runs[0], c.Runs[1]
	drawn := chart.Chart{
		Title: "A session with copies by " + with.Strategy + ", and without copies",
		Notes: []string{
			c.Scene,
			fmt.Sprintf("without copies done after %s; with them after %s, for %.1f %% more time of slots", without.End, with.End, 100*with.Extra()),
		},
		X: chart.Axis{Label: "time", Unit: picture.Spans},
		Panels: []chart.Panel{{
			Y:     chart.Axis{Label: "tasks done", Unit: chart.Number},
			Lines: []chart.Line{done("with copies", with.Report), done("without copies", without.Report)},
		}},
	}
	limit := chart.Line{Name: "threshold", Steps: true}
	for _, m := range thinned(with.Marks) {
		if m.Threshold > 0 {
			limit.Points = append(limit.Points, chart.Point{X: float64(m.At), Y: float64(m.Threshold)})
		}
	}
	if len(limit.Points) > 0 {
		drawn.Panels = append(drawn.Panels, chart.Panel{
			Y: chart.Axis{Label: "older runs are copied", Unit: picture.Spans}, Lines: []chart.Line{limit},
		})
	}
	return drawn.Write(w)
}

func done(name string, r *Report) chart.Line {
	l := chart.Line{Name: name, Steps: true, Points: []chart.Point{{}}}
	for _, m := range thinned(r.Marks) {
		l.Points = append(l.Points, chart.Point{X: float64(m.At), Y: float64(m.Done)})
	}
	return l
}

// thinned leaves out marks that are followed by another one so soon that no
// picture tells them apart.
func thinned(marks []Mark) (out []Mark) {
	if len(marks) == 0 {
		return nil
	}
	apart := marks[len(marks)-1].At/pointsMax + 1
	for i, m := range marks {
		if i == len(marks)-1 || marks[i+1].At/apart != m.At/apart {
			out = append(out, m)
		}
	}
	return out
}
