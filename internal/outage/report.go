package outage

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/chart"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/policy"
	"github.com/reprisehq/reprise/internal/policy/picture"
)

// slotsMax is how many parts the time of a simulation is shown in.
const slotsMax = 300

// Slot is one part of the time. Its length is a whole number of seconds.
type Slot struct {
	At       job.Millis `json:"at_ms"`
	Attempts int        `json:"attempts"`
	Retries  int        `json:"retries"`
	Peak     int        `json:"peak_attempts_per_second"`
	Open     int        `json:"open"` // jobs neither done nor dead, at its end
}

// finish computes what only the end can tell.
func (s *simulation) finish() {
	r := &s.report
	r.Wasted = r.WastedOutage + r.WastedOverload
	for _, sec := range s.seconds {
		if sec.retries > r.PeakRetries {
			r.PeakRetries, r.PeakAt = sec.retries, sec.at
		}
		if sec.at >= s.options.To {
			r.PeakAfter = max(r.PeakAfter, sec.retries)
		}
	}
	if r.WastedOutage > 0 {
		after := max(s.last-s.options.To, 0)
		r.Recovery = &after
	}
	if slices.Sort(s.waits); len(s.waits) > 0 {
		n := len(s.waits)
		r.WaitMedian, r.WaitP99, r.WaitMax = s.waits[(n-1)/2], s.waits[(99*n+99)/100-1], s.waits[n-1]
	}
	s.slots()
}

// slots sums the seconds up. A slot in which nothing happened has the open
// jobs of the one before.
func (s *simulation) slots() {
	end := max(s.report.End, s.options.To) + job.Second
	length := job.Second * ((end/job.Second + slotsMax - 1) / slotsMax)
	next, open := 0, 0
	for at := job.Millis(0); at < end; at += length {
		slot := Slot{At: at}
		for ; next < len(s.seconds) && s.seconds[next].at < at+length; next++ {
			sec := s.seconds[next]
			slot.Attempts += sec.attempts
			slot.Retries += sec.retries
			slot.Peak = max(slot.Peak, sec.attempts)
			open = sec.open
		}
		slot.Open = open
		s.report.Slots = append(s.report.Slots, slot)
	}
}

// WriteSVG draws attempts per second and open jobs over time.
func (r *Report) WriteSVG(w io.Writer) error {
	attempts := chart.Line{Name: "attempts", Steps: true}
	capacity := chart.Line{Name: "capacity of the target", Steps: true}
	open := chart.Line{Name: "open jobs", Steps: true}
	for _, slot := range r.Slots {
		at := float64(slot.At)
		attempts.Points = append(attempts.Points, chart.Point{X: at, Y: float64(slot.Peak)})
		capacity.Points = append(capacity.Points, chart.Point{X: at, Y: float64(r.options.Capacity)})
		open.Points = append(open.Points, chart.Point{X: at, Y: float64(slot.Open)})
	}
	label := "attempts per second"
	if len(r.Slots) > 1 && r.Slots[1].At > job.Second {
		label = "attempts in the busiest second"
	}
	c := chart.Chart{
		Title: "A policy in an outage",
		Notes: []string{policy.Line(r.options.Retry), r.Scene()},
		X:     chart.Axis{Label: "time", Unit: picture.Spans},
		Panels: []chart.Panel{
			{Y: chart.Axis{Label: label, Unit: chart.Number}, Lines: []chart.Line{attempts, capacity}},
			{Y: chart.Axis{Label: "open jobs", Unit: chart.Number}, Lines: []chart.Line{open}},
		},
		Shade: chart.Shade{From: float64(r.options.From), To: float64(r.options.To), Name: "outage"},
	}
	return c.Write(w)
}

// Scene says in a line what was simulated.
func (r *Report) Scene() string {
	o := r.options
	arrive := "at once"
	if o.Arrival > 0 {
		arrive = "at " + strconv.FormatFloat(o.Arrival, 'f', -1, 64) + "/s"
	}
	outage := "no outage"
	if o.From < o.To {
		outage = fmt.Sprintf("outage from %s to %s", o.From, o.To)
	}
	return fmt.Sprintf("%d jobs arrive %s; the target takes %d/s; %s; seed %d", o.Jobs, arrive, o.Capacity, outage, o.Seed)
}

// Policy writes the policy on one line.
func (r *Report) Policy() string { return policy.Line(r.options.Retry) }

// ParseOutage reads when an outage begins and ends, such as 1m..6m.
func ParseOutage(s string) (from, to job.Millis, err error) {
	first, second, ok := strings.Cut(s, "..")
	if !ok {
		return 0, 0, job.Errorf(job.Invalid, "%q is no outage: say when it begins and ends, such as 1m..6m", s)
	}
	if from, err = job.ParseDuration(first); err == nil {
		to, err = job.ParseDuration(second)
	}
	return from, to, err
}
