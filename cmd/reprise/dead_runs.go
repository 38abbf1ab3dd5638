package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newDeadRunsCommand() *cobra.Command {
	var conn connection
	var cancel, asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "runs [ID]",
		Short: "Show replays and deletes that run in the server, or cancel one",
		Example: `  reprise dead runs
  reprise dead runs 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead runs 03gq0x7k2m4v9c1d8f5h6j0a1 --cancel`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes the id of one run, but was given %d arguments", cmd.CommandPath(), len(args))
			}
			if cancel && len(args) == 0 {
				return usagef("--cancel needs the id of a run")
			}
			if limit < 1 || limit > wire.PageLimitMax {
				return usagef("--limit must be between 1 and %d", wire.PageLimitMax)
			}
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			list, err := runs(cmd, cl, args, cancel, limit)
			if err != nil {
				return advise(err, cl)
			}
			return showRuns(cmd, list, asJSON)
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end the run; what is done stays done")
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "at most so many, the latest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each run as a line of JSON")
	complete(cmd, false, replays)
	return cmd
}

func runs(cmd *cobra.Command, cl *client.Client, args []string, cancel bool, limit int) ([]wire.Replay, error) {
	if len(args) == 0 {
		return cl.Replays(cmd.Context(), limit)
	}
	read := cl.Replay
	if cancel {
		read = cl.CancelReplay
	}
	r, err := read(cmd.Context(), args[0])
	if err != nil {
		return nil, err
	}
	return []wire.Replay{*r}, nil
}

func showRuns(cmd *cobra.Command, list []wire.Replay, asJSON bool) error {
	out := cmd.OutOrStdout()
	t := newTable(out)
	for i := range list {
		r := &list[i]
		if asJSON {
			if err := jsonLine(out, r); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			t.heads("ID", "ACTION", "STATUS", "DONE", "OF", "REFUSED", "GUARDED", "CONFLICT", "SKIPPED", "BEGAN", "BY")
		}
		n := func(n int64) string { return strconv.FormatInt(n, 10) }
		t.row(r.ID, r.Action, r.Status, n(r.Done), n(r.Total), n(r.Refused), n(r.Guarded), n(r.Conflict), n(r.Skipped),
			distance(time.UnixMilli(r.CreatedAt), time.Now()), r.By)
	}
	if err := t.flush(); err != nil || asJSON {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "no replay and no delete in the last 7 days")
	}
	return nil
}
