package main

import (
	"encoding/json"
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
	var flags changes
	var change client.Change
	cmd := (&onJobs{
		what: "patch", did: "patched",
		verb: verb{
			use:   "patch [ID...]",
			short: "Change open jobs by id, or all that a filter chooses",
			long: `Change jobs that are not finished: their queue, priority, time, retries,
retention, expiry and timeouts. Payload and type of a job are fixed.

With a filter instead of ids the jobs are only counted, until --yes is given.
Finished ones are passed over then.`,
			example: `  reprise jobs patch 03gq0x7k2m4v9c1d8f5h6j0a1 --at now
  reprise jobs patch --queue mail --filter '.to == "ann"' --priority 10   # how many would it be?
  reprise jobs patch --queue mail --to-queue slow --yes`,
			json: "print each job that was named, or {patched}, as a line of JSON",
		},
		check: func(c *call, _ bool) (err error) {
			change, err = flags.read(c.Command)
			return err
		},
		each: func(c *call, id string) (any, error) { return c.cl.Patch(c.Context(), id, change) },
		all: func(c *call, f client.Filter) error {
			n, err := c.cl.PatchMany(c.Context(), f, change)
			switch {
			case err != nil:
				return err
			case c.asJSON:
				return jsonLine(c.OutOrStdout(), n)
			}
			c.say("%s patched", plural(n.Patched, "job"))
			if n.Refused > 0 {
				c.note("%s cannot be moved, such as %s.", plural(n.Refused, "job"), n.Why)
			}
			return nil
		},
		ask: wouldBe("looked at, and patched where they are not finished"),
	}).command()
	flags.register(cmd)
	return cmd
}
