package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
)

func newJobsCancelCommand() *cobra.Command {
	var conn connection
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ID...",
		Short: "Give up jobs that are not finished, and tell who runs them",
		Long: `Give up jobs that are not finished: they are dead, with the reason as their
failure, and can be replayed. A worker that runs one is told: that of 'reprise
work' and of the Go client stops it at once, one with leases hears it at its
next heartbeat. A Zizq client cannot be told; what it reports is refused.`,
		Example: `  reprise jobs cancel 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise jobs cancel 03gq0x7k2m4v9c1d8f5h6j0a1 --reason 'the order was withdrawn'`,
		Args:              someIDs,
		ValidArgsFunction: completeIDs(&conn),
		RunE: func(cmd *cobra.Command, ids []string) error {
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			for i, id := range ids {
				if _, err := cl.Cancel(cmd.Context(), id, reason); err != nil {
					return advise(fmt.Errorf("%w (%s cancelled before)", err, plural(int64(i), "job")), cl)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s cancelled\n", plural(int64(len(ids)), "job"))
			return nil
		},
	}
	conn.register(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
	return cmd
}

func someIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s needs the id of a job", cmd.CommandPath())
	}
	return nil
}
