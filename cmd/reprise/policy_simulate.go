package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/internal/outage"
)

func newSimulateCommand() *cobra.Command {
	var f policyFlags
	var shown paper
	o := outage.Default()
	when := o.From.String() + ".." + o.To.String()
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate a policy against a target that is down for a while",
		Long: `Simulate a policy against a target that is down for a while, and tell how it
went: how long the recovery took, how many attempts were wasted, how hard the
target was hit, and how many jobs died.

Jobs arrive, and each attempt is made the moment it is due. During the outage
the target refuses every attempt; at any time it refuses, in each second, what
is beyond its capacity. A refused attempt counts as a failure. Delays, limit and
max_age are decided by the code that decides them in the server; runs take no
time, and nothing but the policy protects the target. The same seed gives the
same answer.
` + aboutPolicies,
		Example: `  # the default policy, five minutes of outage
  reprise policy simulate

  # a batch at once, without and with jitter
  reprise policy simulate --arrival 0 --curve exponential --jitter none
  reprise policy simulate --arrival 0 --curve exponential --jitter full --svg herd.svg

  # does a limit of 5 survive half an hour?
  reprise policy simulate --outage 1m..31m --jobs 100000 --arrival 40 --curve exponential --limit 5

  # a policy from a file, the numbers for a script
  reprise policy simulate --policy reprise-retry.yaml --json | jq '{recovery_ms, wasted_attempts, dead}'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, _, err := f.read(cmd)
			if err != nil {
				return err
			}
			o.Retry = r
			if o.From, o.To, err = outage.ParseOutage(when); err != nil {
				return usagef("--outage: %w", err)
			}
			if err := o.Validate(); err != nil {
				return &usageError{inLines(err)}
			}
			report, err := outage.Run(o)
			if err != nil {
				return err
			}
			return shown.print(cmd, report, report.WriteSVG, func(w io.Writer) error { return printOutage(w, report) })
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.IntVar(&o.Jobs, "jobs", o.Jobs, "how many jobs arrive")
	flags.Float64Var(&o.Arrival, "arrival", o.Arrival, "jobs that arrive per second, at random times; 0 = all at once at the start")
	flags.StringVar(&when, "outage", when, "when the target is down: from..to, counted from the start")
	flags.IntVar(&o.Capacity, "capacity", o.Capacity, "attempts that the target takes per second")
	flags.Uint64Var(&o.Seed, "seed", o.Seed, "another seed is another run of chance; it changes arrivals and jitter")
	shown.register(cmd, "attempts per second and open jobs over time")
	return cmd
}

func printOutage(w io.Writer, r *outage.Report) error {
	fmt.Fprintf(w, "%s\n%s\n\n", r.Policy(), r.Scene())
	t := newTable(w)
	t.row("jobs done", thousands(int64(r.Done)))
	t.row("jobs dead", thousands(int64(r.Dead)))
	if r.Recovery != nil {
		t.row("time to recover", r.Recovery.String()+" after the outage")
	}
	t.row("attempts", thousands(int64(r.Attempts)))
	t.row("wasted", strings.Join([]string{
		thousands(int64(r.Wasted)) + " (" + thousands(int64(r.WastedOutage)) + " in the outage",
		thousands(int64(r.WastedOverload)) + " beyond the capacity)",
	}, ", "))
	if r.PeakRetries > 0 {
		t.row("peak retry rate", fmt.Sprintf("%s/s at %s; after the outage %s/s",
			thousands(int64(r.PeakRetries)), r.PeakAt, thousands(int64(r.PeakAfter))))
	}
	if r.Done > 0 {
		t.row("wait of done jobs", fmt.Sprintf("median %s, p99 %s, longest %s", r.WaitMedian, r.WaitP99, r.WaitMax))
	}
	t.row("over after", r.End.String())
	return t.flush()
}
