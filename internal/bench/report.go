package bench

import (
	"encoding/json"
	"io"
	"runtime"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// Report is all that a run found. Its JSON form is meant for machines; Print
// writes the form for people.
type Report struct {
	Version  string    `json:"version"` // of the server
	Sync     string    `json:"sync"`
	Machine  Machine   `json:"machine"`
	Settings Settings  `json:"settings"`
	Complete bool      `json:"complete"` // false: the run ended early
	Figures  []*Figure `json:"figures"`
	Costs    []*Cost   `json:"costs"`
	Checks   []Check   `json:"checks"`
	Skipped  []Skip    `json:"skipped"`
}

// Settings are the options that a figure depends on.
type Settings struct {
	Seconds     float64 `json:"seconds"`
	Jobs        int64   `json:"jobs"`
	Connections int     `json:"connections"`
	Streams     int     `json:"streams"`
	Payload     int     `json:"payload_bytes"`
	Pairs       int     `json:"pairs"`
	Repeat      int     `json:"repeat"`
	Rate        float64 `json:"rate"`
}

// Check is one comparison of counts that held. One that does not ends the run.
type Check struct {
	Phase     string `json:"phase"`
	Queue     string `json:"queue"`
	Accepted  int64  `json:"accepted"`
	Completed int64  `json:"completed"`
	Found     int64  `json:"found"`
}

// Skip is a phase that could not be run, and why.
type Skip struct {
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
}

// Machine is where a run took place.
type Machine struct {
	OS string `json:"os"`
	gauge.Machine
}

func readMachine(dir string) Machine {
	return Machine{runtime.GOOS + "/" + runtime.GOARCH, gauge.ReadMachine(dir, 200)}
}

func newReport(o Options, m Machine) *Report {
	sync := o.Sync
	if o.URL != "" {
		sync = "unknown" // what a server was started with is not on the wire
	}
	return &Report{
		Sync:    sync,
		Machine: m,
		Settings: Settings{
			Seconds: o.Window.Seconds(), Jobs: o.Jobs, Connections: o.Connections, Streams: o.Streams, Payload: o.Payload,
			Pairs: o.Pairs, Repeat: o.Repeat, Rate: o.Rate,
		},
		Figures: []*Figure{}, Costs: []*Cost{}, Checks: []Check{}, Skipped: []Skip{},
	}
}

func (r *Report) figure(phase, name, unit string, value float64, goal *Goal) {
	for _, f := range r.Figures {
		if f.Phase == phase && f.Name == name {
			f.add(value)
			return
		}
	}
	f := &Figure{Phase: phase, Name: name, Unit: unit, Goal: goal}
	f.add(value)
	r.Figures = append(r.Figures, f)
}

func (r *Report) cost(c Cost) {
	for _, known := range r.Costs {
		if known.Phase == c.Phase && known.Of == c.Of {
			known.add(c)
			return
		}
	}
	r.Costs = append(r.Costs, &c)
}

func (r *Report) skip(phase, reason string) {
	r.Skipped = append(r.Skipped, Skip{phase, reason})
}

// WriteJSON writes the report for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
