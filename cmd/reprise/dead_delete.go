package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/wire"
)

func newDeadDeleteCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "delete [ID...]",
		Short: "Delete dead jobs for good: by id, or all that a filter chooses",
		Long: `Delete dead jobs for good: by id, or all that a filter chooses.

With a filter the jobs are only counted, until --yes is given. The delete then
runs in the server, as a replay does.`,
		Example: `  reprise dead delete 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead delete --fingerprint ede865b8574a584a         # how many would it be?
  reprise dead delete --fingerprint ede865b8574a584a --yes`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := f.check(cmd, ids, "delete"); err != nil {
				return err
			}
			cl, err := f.conn.operator()
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				return advise(f.run(cmd, cl, "deleted", func(ctx context.Context) (*wire.Replay, error) {
					return cl.DeleteAllDead(ctx, wire.DeadDelete{
						Filter: f.filter.DeadFilter, All: f.all, Rate: f.rate, RampMS: f.ramp.Milliseconds(),
					})
				}), cl)
			}
			for i, id := range ids {
				if err := cl.DeleteDead(cmd.Context(), id); err != nil {
					return advise(before(err, i, "deleted"), cl)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s deleted\n", plural(int64(len(ids)), "job"))
			return nil
		},
	}
	f.register(cmd, "delete")
	complete(cmd, true, deadIDs)
	return cmd
}
