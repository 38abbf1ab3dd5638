package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newDeadShowCommand() *cobra.Command {
	var conn connection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one dead job, its errors and its group",
		Example: `  reprise dead show 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead show 03gq0x7k2m4v9c1d8f5h6j0a1 --json | jq .job.payload`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			j, err := cl.DeadJob(cmd.Context(), args[0])
			if err != nil {
				return advise(err, cl)
			}
			failures := []wire.JobError{}
			for e, err := range cl.Errors(cmd.Context(), j.ID) {
				if err != nil {
					return advise(err, cl)
				}
				failures = append(failures, e)
			}
			if asJSON {
				return jsonLine(cmd.OutOrStdout(), map[string]any{"job": j, "errors": failures})
			}
			g, err := cl.DeadGroup(cmd.Context(), j.Fingerprint)
			if err != nil {
				return advise(err, cl)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "group %s: %s died of it; \"reprise dead list --fingerprint %s\" lists them%s\n\n",
				j.Fingerprint, plural(g.Count, "job"), j.Fingerprint, printable(marks(g)))
			return showJob(out, &j.Job, failures, time.Now())
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON: {job, errors}")
	complete(cmd, false, deadIDs)
	return cmd
}
