package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// changes are the flags that say what a patch changes.
type changes struct {
	queue, limit, at, body string
	priority               uint16
}

func (c *changes) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.queue, "to-queue", "", "move them to this queue")
	flags.Uint16Var(&c.priority, "priority", wire.PriorityDefault, "a new priority, 0 to 65535; lower runs first")
	flags.StringVar(&c.at, "at", "", "not before this time, such as 2026-12-24T08:00:00Z or \"2026-12-24 08:00\" (local); now for at once")
	flags.StringVar(&c.limit, "retry-limit", "", "so many retries; default for that of the queue or server")
	flags.StringVar(&c.body, "set", "", `anything a patch can say, as JSON, such as '{"retention": {"dead_ms": 0}, "expires_at": null}'`)
	completeFlag(cmd, "to-queue", queues)
}

func (c *changes) read(cmd *cobra.Command) (client.Change, error) {
	out := client.Change{}
	if c.body != "" {
		if err := json.Unmarshal([]byte(c.body), &out); err != nil {
			return nil, usagef("--set must be a JSON object: %v", err)
		}
	}
	if c.queue != "" {
		out["queue"] = c.queue
	}
	if cmd.Flags().Changed("priority") {
		out["priority"] = c.priority
	}
	switch c.limit {
	case "":
	case "default":
		out["retry_limit"] = nil
	default:
		n, err := strconv.ParseUint(c.limit, 10, 32)
		if err != nil {
			return nil, usagef("--retry-limit %s: it is a number of retries, or default", c.limit)
		}
		out["retry_limit"] = n
	}
	switch c.at {
	case "":
	case "now":
		out["ready_at"] = nil
	default:
		at, err := parseTime(c.at)
		if err != nil {
			return nil, usagef("--at %s: %v", c.at, err)
		}
		out["ready_at"] = at.UnixMilli()
	}
	if len(out) == 0 {
		return nil, usagef("say what to change: --to-queue, --priority, --at, --retry-limit or --set")
	}
	return out, nil
}

func newJobsPatchCommand() *cobra.Command {
	var conn connection
	var filter jobFilter
	var what changes
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "patch [ID...]",
		Short: "Change open jobs by id, or all that a filter chooses",
		Long: `Change jobs that are not finished: their queue, priority, time, retries,
retention, expiry and timeouts. Payload and type of a job are fixed.

With a filter instead of ids the jobs are only counted, until --yes is given.
Finished ones are passed over then.`,
		Example: `  reprise jobs patch 03gq0x7k2m4v9c1d8f5h6j0a1 --at now
  reprise jobs patch --queue mail --filter '.to == "ann"' --priority 10   # how many would it be?
  reprise jobs patch --queue mail --to-queue slow --yes`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			filtered, err := filter.meant(ids, "patch")
			if err != nil {
				return err
			}
			change, err := what.read(cmd)
			if err != nil {
				return err
			}
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			if filtered {
				return advise(patchAll(cmd, cl, filter.Filter, change, yes, asJSON), cl)
			}
			return advise(patchEach(cmd, cl, ids, change, asJSON), cl)
		},
	}
	conn.register(cmd)
	filter.register(cmd)
	filter.registerAll(cmd)
	what.register(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "really change what the filter chooses")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each job that was named, or {patched}, as a line of JSON")
	complete(cmd, true, jobIDs)
	return cmd
}

func patchEach(cmd *cobra.Command, cl *client.Client, ids []string, change client.Change, asJSON bool) error {
	for i, id := range ids {
		j, err := cl.Patch(cmd.Context(), id, change)
		if err == nil && asJSON {
			err = jsonLine(cmd.OutOrStdout(), j)
		}
		if err != nil {
			return before(err, i, "patched")
		}
	}
	if !asJSON {
		fmt.Fprintf(cmd.OutOrStdout(), "%s patched\n", plural(int64(len(ids)), "job"))
	}
	return nil
}

func patchAll(cmd *cobra.Command, cl *client.Client, f client.Filter, change client.Change, yes, asJSON bool) error {
	if !yes {
		return wouldBe(cmd, cl, f, "looked at, and patched where they are not finished")
	}
	n, err := cl.PatchMany(cmd.Context(), f, change)
	if err != nil {
		return err
	}
	if asJSON {
		return jsonLine(cmd.OutOrStdout(), n)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s patched\n", plural(n.Patched, "job"))
	if n.Refused > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s cannot be moved, such as %s.\n", plural(n.Refused, "job"), n.Why)
	}
	return nil
}
