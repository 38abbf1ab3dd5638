package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newDeadListCommand() *cobra.Command {
	var conn connection
	var filter deadFilter
	var limit int
	var oldest, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead jobs with their latest error",
		Example: `  reprise dead list --oldest
  reprise dead list --fingerprint ede865b8574a584a
  reprise dead list --queue mail --error-type Timeout --since 2h
  reprise dead list --limit 0 --json | jq -r .id`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d: use 0 for all jobs", limit)
			}
			if err := filter.read(time.Now()); err != nil {
				return err
			}
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			return advise(listDead(cmd, cl, filter.DeadFilter, !oldest, limit, asJSON), cl)
		},
	}
	conn.register(cmd)
	filter.register(cmd)
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most so many; 0 for all")
	orderFlag(cmd, &oldest)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each job as a line of JSON, with payload and error")
	return cmd
}

func listDead(cmd *cobra.Command, cl *client.Client, f wire.DeadFilter, newest bool, limit int, asJSON bool) error {
	out := cmd.OutOrStdout()
	perPage := 0
	if limit > 0 {
		perPage = min(limit+1, wire.PageLimitMax)
	}
	rows := newTable(out)
	n, now, more := 0, time.Now(), false
	for j, err := range cl.Dead(cmd.Context(), f, newest, perPage) {
		if err != nil {
			return err
		}
		if more = limit > 0 && n == limit; more {
			break
		}
		n++
		if asJSON {
			if err := jsonLine(out, j); err != nil {
				return err
			}
			continue
		}
		if n == 1 {
			rows.heads("ID", "QUEUE", "TYPE", "FAILED", "DIED", "REASON", "ERROR")
		}
		rows.row(j.ID, j.Queue, j.Type, strconv.Itoa(int(j.Attempts)), distance(time.UnixMilli(j.DiedAt), now), j.Reason, clip(lastError(&j), 60))
	}
	if err := rows.flush(); err != nil || asJSON {
		return err
	}
	switch {
	case n == 0:
		fmt.Fprintln(out, "no such dead job"+noSuchQueues(cmd.Context(), cl, f.Queues))
	case more:
		fmt.Fprintf(cmd.ErrOrStderr(), "There are more than these %d; --limit shows more.\n", limit)
	}
	return nil
}

// lastError says in a few words what a dead job died of.
func lastError(j *wire.DeadJob) string {
	if j.Error == nil {
		return ""
	}
	return diedOf(&wire.DeadGroup{ErrorType: j.Error.ErrorType, Message: j.Error.Message})
}
