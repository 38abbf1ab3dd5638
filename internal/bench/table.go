package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// goalMachine says for which machine the goals in jobs a second were set.
const goalMachine = "Goals in jobs/s are for a machine that does about 90,000 bare HTTP requests/s (null server: singles)."

// othersMax is the share of the cores that other processes may use before the
// report warns.
const othersMax = 0.05

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	p := &printer{tabs: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	p.head(r)
	p.figures(r.Figures)
	p.costs(r.Costs)
	p.foot(r)
	if p.err != nil {
		return p.err
	}
	return p.tabs.Flush()
}

// printer keeps the first error, so that callers need not ask at each line.
type printer struct {
	tabs *tabwriter.Writer
	err  error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.tabs, format+"\n", args...)
	}
}

func (p *printer) head(r *Report) {
	m := r.Machine
	p.line("reprise bench, server %s, sync %s", r.Version, r.Sync)
	p.line("machine: %d cores, %s, %s of memory, %s, kernel %s", m.Cores, known(m.CPU), gibibytes(m.MemoryBytes), m.OS, known(m.Kernel))
	p.line("storage: %s, 4 KiB write and sync p50 %.2f ms, p99 %.2f ms", known(m.FileSystem), m.SyncP50, m.SyncP99)
	s := r.Settings
	p.line("settings: %.0f s windows, backlog %s jobs, %d connections, payload %d bytes, %d pairs, repeated %d times",
		s.Seconds, thousands(float64(s.Jobs)), s.Connections, s.Payload, s.Pairs, s.Repeat)
	p.line("")
}

func (p *printer) figures(figures []*Figure) {
	p.line("PHASE\tFIGURE\tMEDIAN\tMIN .. MAX\tUNIT\tGOAL")
	last, goals := "", false
	for _, f := range figures {
		phase := f.Phase
		if phase == last {
			phase = ""
		}
		last = f.Phase
		spread := ""
		if len(f.Samples) > 1 {
			spread = number(f.Min) + " .. " + number(f.Max)
		}
		p.line("%s\t%s\t%s\t%s\t%s\t%s", phase, f.Name, number(f.Median), spread, f.Unit, f.Goal)
		goals = goals || (f.Goal != nil && f.Unit == "jobs/s")
	}
	if goals {
		p.line("")
		p.line(goalMachine)
	}
}

func (p *printer) costs(costs []*Cost) {
	if !slices.ContainsFunc(costs, func(c *Cost) bool { return c.Known }) {
		return // a server at a URL, or a system without /proc
	}
	p.line("")
	p.line("PHASE\tPER 1,000 JOBS\tSERVER CPU\tWRITTEN\tCORES: SERVER\tGENERATOR\tOTHERS")
	busy := false
	for _, c := range costs {
		if !c.Known {
			p.line("%s\t%s\tunknown", c.Phase, c.Of)
			continue
		}
		p.line("%s\t%s\t%s ms\t%s KiB\t%.0f %%\t%.0f %%\t%.0f %%", c.Phase, c.Of,
			number(c.ServerMillisPer1000()), number(c.WrittenPer1000()/1024),
			c.ServerShare()*100, c.BenchShare()*100, c.OtherShare()*100)
		busy = busy || c.OtherShare() > othersMax
	}
	if busy {
		p.line("")
		p.line("Other processes used more than %.0f %% of the cores meanwhile: the figures are too low.", othersMax*100)
	}
}

func (p *printer) foot(r *Report) {
	p.line("")
	for _, s := range r.Skipped {
		p.line("skipped %s: %s", s.Phase, s.Reason)
	}
	last := map[string]Check{} // a queue may have been counted several times
	for _, c := range r.Checks {
		last[c.Queue] = c
	}
	var accepted, completed int64
	for _, c := range last {
		accepted, completed = accepted+c.Accepted, completed+c.Completed
	}
	if len(r.Checks) > 0 {
		p.line("verified: %d counts agree with the server; %s enqueues and %s completions; none lost, none delivered twice",
			len(r.Checks), thousands(float64(accepted)), thousands(float64(completed)))
	}
	if !r.Complete {
		p.line("INCOMPLETE: the run ended early")
	}
}

// String is the goal and whether it was met.
func (g *Goal) String() string {
	if g == nil {
		return ""
	}
	verdict := "missed"
	if g.Met {
		verdict = "met"
	}
	if g.AtLeast != nil {
		return ">= " + number(*g.AtLeast) + " " + verdict
	}
	return "<= " + number(*g.AtMost) + " " + verdict
}

// number shows about three significant digits, and whole numbers in full.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "none"
	case math.Abs(v) >= 100:
		return thousands(v)
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v == 0:
		return "0"
	default:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
}

// thousands rounds to a whole number and groups its digits.
func thousands(v float64) string {
	digits := strconv.FormatFloat(math.Abs(math.Round(v)), 'f', 0, 64)
	var b strings.Builder
	if v <= -0.5 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

func known(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

func gibibytes(bytes int64) string {
	return strconv.FormatFloat(float64(bytes)/(1<<30), 'f', 1, 64) + " GiB"
}
