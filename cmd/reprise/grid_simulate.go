package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprisehq/reprise/internal/straggler"
)

// timeFlag is a flag that takes a span of time.
type timeFlag[T fmt.Stringer] struct {
	at    *T
	parse func(string) (T, error)
}

func (f timeFlag[T]) String() string {
	if f.at == nil {
		return ""
	}
	return (*f.at).String()
}
func (f timeFlag[T]) Type() string { return "TIME" }
func (f timeFlag[T]) Set(text string) (err error) {
	*f.at, err = f.parse(text)
	return err
}

func aTime[T fmt.Stringer](at *T, parse func(string) (T, error)) pflag.Value {
	return timeFlag[T]{at, parse}
}

func newGridSimulateCommand() *cobra.Command {
	o, r := straggler.Default(), straggler.DefaultRedundancy()
	names := r.Strategies.Names()
	var shown paper
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate a session in which some runs are very slow, with and without copies of them",
		Long: `Simulate a session in which some runs are very slow, with and without copies of
them, and tell how it went: when the last task was done, how many copies were
made and were faster, and what they cost.

All tasks are there at the start. When a run is a straggler, and whether a copy
of it may run, is decided by the code that decides it in the server; engines do
not fail, and a free slot gets its next task at once. Strategies are compared
one by one. The same seed gives the same answer. docs/redundancy.md teaches the
strategies.`,
		Example: `  # 1000 tasks, one run in a hundred takes 50 times as long
  reprise grid simulate

  # which strategy suits?
  reprise grid simulate --strategies tail,mean,stddev,median,time_left

  # its picture
  reprise grid simulate --svg session.svg

  # an application that answers from ten short tasks
  reprise grid simulate --tasks 10 --slots 40 --run 1s --slow-share 0.03 --strategies median,hedge,clone`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := straggler.Compare(o, &r, names)
			if err != nil {
				return &usageError{inLines(err)}
			}
			return shown.print(cmd, c, c.WriteSVG, func(w io.Writer) error { return printComparison(w, c) })
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.Tasks, "tasks", o.Tasks, "tasks of the session")
	f.IntVar(&o.Slots, "slots", o.Slots, "slots of all engines: runs at once")
	f.Var(aTime(&o.Run, straggler.ParseTime), "run", "how long a run takes")
	f.Float64Var(&o.Spread, "spread", o.Spread, "runs differ by up to this share of it, either way")
	f.Float64Var(&o.SlowShare, "slow-share", o.SlowShare, "share of the runs that are slow, wherever they run")
	f.Float64Var(&o.Slow, "slow", o.Slow, "a slow run takes so many times as long")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "another seed is another run of chance")
	f.StringSliceVar(&names, "strategies", names, "strategies to compare: tail, mean, stddev, median, time_left, hedge, clone")
	f.IntVar(&o.Copies, "max-copies", o.Copies, "runs of a task at once, with the first")
	for _, p := range []struct {
		name  string
		value *float64
		about string
	}{
		{"tail-done", &r.TailDone, "tail: share of the tasks that are done"},
		{"mean-factor", &r.MeanFactor, "mean: times the mean"},
		{"deviations", &r.Deviations, "stddev: standard deviations above the mean"},
		{"median-done", &r.MedianDone, "median: share of the tasks that are done"},
		{"median-factor", &r.MedianFactor, "median: times the median"},
		{"left-factor", &r.LeftFactor, "time_left: times what a new run takes"},
		{"hedge-quantile", &r.HedgeQuantile, "hedge: of the runs of the type in all sessions"},
		{"clone-risk", &r.CloneRisk, "clone: chance of a straggler that remains"},
		{"running-share", &r.RunningShare, "copies that run at once, of all that runs"},
		{"seconds-share", &r.SecondsShare, "time for copies, of the time of useful runs"},
	} {
		f.Float64Var(p.value, p.name, *p.value, p.about)
	}
	f.Var(aTime(&r.MedianAge, straggler.ParseTime), "median-age", "median: but never sooner")
	f.Var(aTime(&r.SecondsBurst, straggler.ParseTime), "seconds-burst", "and so much more time for copies")
	f.BoolVar(&r.AlsoBusy, "also-busy", r.AlsoBusy, "copies also while first runs wait for a slot")
	shown.register(cmd, "tasks done over time, with the first strategy and without copies")
	return cmd
}

func printComparison(w io.Writer, c *straggler.Comparison) error {
	fmt.Fprintf(w, "%s\n\n", c.Scene)
	t := newTable(w, "STRATEGY", "DONE AFTER", "COPIES", "OF THEM WON", "TAKEN AWAY", "EXTRA TIME")
	for _, r := range c.Runs {
		t.row(r.Strategy, r.End.String(), thousands(int64(r.Copies)), thousands(int64(r.Won)), thousands(int64(r.Withdrawn)),
			strconv.FormatFloat(100*r.Extra(), 'f', 1, 64)+" %")
	}
	return t.flush()
}
