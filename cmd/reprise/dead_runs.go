package main

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// replays are the runs through the dead set: replays and deletes.
var replays = &noun[wire.Replay]{
	single: "the id of a run", lister: "reprise dead runs",
	read: func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[wire.Replay, error] {
		return each(cl.Replays(ctx, completionMost))
	},
	name: func(r *wire.Replay) (string, string) { return r.ID, r.Action + " " + r.Status },

	none:  "no replay and no delete in the last 7 days",
	heads: []string{"ID", "ACTION", "STATUS", "DONE", "OF", "REFUSED", "GUARDED", "CONFLICT", "SKIPPED", "BEGAN", "BY"},
	row: func(t *table, r *wire.Replay) {
		t.row(r.ID, r.Action, r.Status, whole(r.Done), whole(r.Total), whole(r.Refused), whole(r.Guarded), whole(r.Conflict), whole(r.Skipped),
			ago(r.CreatedAt), r.By)
	},
}

func newDeadRunsCommand() *cobra.Command {
	var cancel bool
	var latest int
	cmd := verb{
		use:   "runs [ID]",
		short: "Show replays and deletes that run in the server, or cancel one",
		example: `  reprise dead runs
  reprise dead runs 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead runs 03gq0x7k2m4v9c1d8f5h6j0a1 --cancel`,
		args: []kind{replays}, optional: 1,
		json: "print each run as a line of JSON",
		do: func(c *call) error {
			if err := checkLatest(latest); err != nil {
				return err
			}
			if len(c.args) == 0 && cancel {
				return usagef("--cancel needs the id of a run")
			} else if len(c.args) == 0 {
				return replays.list(c, each(c.cl.Replays(c.Context(), latest)))
			}
			read := c.cl.Replay
			if cancel {
				read = c.cl.CancelReplay
			}
			r, err := read(c.Context(), c.args[0])
			if err != nil {
				return err
			}
			return replays.list(c, each([]wire.Replay{*r}, nil))
		},
	}.command()
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end the run; what is done stays done")
	latestFlag(cmd, &latest, 20)
	return cmd
}
