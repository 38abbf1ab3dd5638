package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
)

func newJobsCancelCommand() *cobra.Command {
	var conn connection
	var filter jobFilter
	var reason string
	var yes, dry bool
	cmd := &cobra.Command{
		Use:   "cancel [ID...]",
		Short: "Give up jobs that are not finished, by id or by a filter, and tell who runs them",
		Long: `Give up jobs that are not finished: they are dead, with who cancelled them and
why as their failure. They do not count as deaths, and are replayed only if
--reason cancelled or their id says so. A worker that runs one is told: that of
'reprise work' and of the Go client stops it at once, one with leases hears it
at its next heartbeat. A Zizq client cannot be told; what it reports is
refused.

With a filter instead of ids the jobs are only counted and some are shown, until
--yes is given.`,
		Example: `  reprise jobs cancel 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise jobs cancel 03gq0x7k2m4v9c1d8f5h6j0a1 --reason 'the order was withdrawn'
  reprise jobs cancel --queue mail --filter '.to == "ann"' --dry-run      # which would it be?
  reprise jobs cancel --queue mail --filter '.to == "ann"' --yes`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			filtered, err := filter.meant(ids, "cancel")
			if err != nil {
				return err
			}
			if dry && (yes || !filtered) {
				return usagef("--dry-run is for a filter, and not together with --yes")
			}
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			if filtered {
				return advise(cancelAll(cmd, cl, filter.Filter, reason, yes), cl)
			}
			for i, id := range ids {
				if _, err := cl.Cancel(cmd.Context(), id, reason); err != nil {
					return advise(before(err, i, "cancelled"), cl)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s cancelled\n", plural(int64(len(ids)), "job"))
			return nil
		},
	}
	conn.register(cmd)
	filter.register(cmd)
	filter.registerAll(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only count what the filter chooses, and show some of it")
	cmd.Flags().BoolVar(&yes, "yes", false, "really cancel what the filter chooses")
	complete(cmd, true, jobIDs)
	return cmd
}

// cancelAll cancels what the filter chooses, or shows it.
func cancelAll(cmd *cobra.Command, cl *client.Client, f client.Filter, reason string, yes bool) error {
	out := cmd.OutOrStdout()
	if yes {
		n, err := cl.CancelMany(cmd.Context(), f, reason)
		if err == nil {
			fmt.Fprintf(out, "%s cancelled\n", plural(n, "job"))
		}
		return err
	}
	p, err := cl.PreviewCancel(cmd.Context(), f)
	if err != nil {
		return err
	}
	rows := newTable(out)
	for i := range p.Sample {
		j := &p.Sample[i]
		rows.row(j.ID, status(j), j.Queue, j.Type)
	}
	if err := rows.flush(); err != nil {
		return err
	}
	if p.Count == 0 {
		_, err = fmt.Fprintln(out, "no such job that is not finished"+noSuchQueues(cmd.Context(), cl, f.Queues))
		return err
	}
	fmt.Fprintf(out, "%s would be cancelled; add --yes to do it\n", plural(p.Count, "job"))
	return nil
}
