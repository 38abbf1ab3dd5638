package main

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	policies "github.com/reprisehq/reprise/internal/policy"
)

func newDecideCommand() *cobra.Command {
	var f policyFlags
	var c policies.Case
	var retryAfter time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "decide",
		Short: "Show what a policy makes of one failure",
		Long: `Show what a policy makes of one failure: which of its rules decides, whether
the attempt is charged, when the job is tried again or why it is dead, and how
long its group, or its queue, is held for it.

The failure is described as a worker reports it. What is left out was not
reported: a rule that looks at it does not match.
` + aboutPolicies,
		Example: `  reprise policy decide --policy reprise-retry.yaml --error-type ValidationError
  reprise policy decide --policy reprise-retry.yaml --status 503 --retry-after 2m
  reprise policy decide --policy reprise-retry.yaml --message "lock of row 7 not free" --failed 3`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case c.Failure.Status < 0 || c.Failure.Status > 999:
				return usagef("--status %d: an HTTP status is from 1 to 999, and 0 for none", c.Failure.Status)
			case c.Failure.ExitCode < 0 || c.Failure.ExitCode > 255:
				return usagef("--exit-code %d: an exit code is from 1 to 255, and 0 for none", c.Failure.ExitCode)
			case retryAfter < 0:
				return usagef("--retry-after %s: it cannot be negative", retryAfter)
			case c.Earlier == math.MaxUint32:
				return usagef("--failed %d: that is too often", c.Earlier)
			}
			r, _, err := f.read(cmd)
			if err != nil {
				return err
			}
			c.RetryAfter = policies.Millis(retryAfter.Milliseconds())
			d, err := policies.Decide(r, c)
			switch {
			case err != nil:
				return err
			case asJSON:
				return jsonLine(cmd.OutOrStdout(), d)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), d)
			return err
		},
	}
	f.register(cmd)
	flags, failure := cmd.Flags(), &c.Failure
	flags.StringVar(&failure.Type, "error-type", "", "the type of the error")
	flags.StringVar(&failure.Message, "message", "", "its message")
	flags.IntVar(&failure.Status, "status", 0, "the HTTP status a target answered; 0 for none")
	flags.IntVar(&failure.ExitCode, "exit-code", 0, "the exit code of a command; 0 for none")
	flags.BoolVar(&failure.Timeout, "timed-out", false, "the attempt took too long")
	spanVar(flags, &retryAfter, "retry-after", 0, "how long the target asked to be left alone")
	flags.Uint32Var(&c.Earlier, "failed", 0, "how often the job has failed before")
	flags.BoolVar(&asJSON, "json", false, "print JSON, times in milliseconds")
	return cmd
}
