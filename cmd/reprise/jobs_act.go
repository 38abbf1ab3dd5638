package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// onJobs is a command that acts on jobs by their ids, or on all that a filter chooses.
type onJobs struct {
	verb
	filter    jobFilter
	yes       bool
	what, did string // what is done: delete, deleted

	check func(c *call, filtered bool) error    // of further flags; nil = there is nothing to check
	each  func(c *call, id string) (any, error) // does it to one, and answers with it
	all   func(c *call, f client.Filter) error  // does it to what the filter chooses
	ask   func(c *call, f client.Filter) error  // tells what that would be: it is done only with --yes
}

func (o *onJobs) command() *cobra.Command {
	o.args, o.optional, o.repeat = []kind{jobs}, 1, true
	o.do = o.run
	cmd := o.verb.command()
	o.filter.register(cmd)
	cmd.Flags().BoolVar(&o.filter.All, "all", false, "all jobs of the server")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "really "+o.what+" what the filter chooses")
	return cmd
}

func (o *onJobs) run(c *call) error {
	f := &o.filter
	const flags = "--queue, --status, --type, --attempts, --budget, --group, --label, --filter"
	filtered, err := c.byFilter("jobs to "+o.what, flags, f.chosen(), f.All)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return err
	}
	if o.check != nil {
		if err := o.check(c, filtered); err != nil {
			return err
		}
	}
	switch {
	case !filtered:
		return c.onEach(o.did, func(id string) (any, error) { return o.each(c, id) })
	case o.yes:
		return o.all(c, f.Filter)
	}
	return o.ask(c, f.Filter)
}

// wouldBe counts what the filter chooses.
func wouldBe(did string) func(*call, client.Filter) error {
	return func(c *call, f client.Filter) error {
		f.All = false // a count needs no such word
		n, err := c.cl.Count(c.Context(), f)
		switch {
		case err != nil:
			return err
		case n == 0:
			fmt.Fprintln(c.OutOrStdout(), "no such job"+noSuchQueues(c.Context(), c.cl, f.Queues))
		default:
			c.say("%s would be %s; add --yes to do it", plural(n, "job"), did)
		}
		return nil
	}
}

func newJobsDeleteCommand() *cobra.Command {
	return (&onJobs{
		what: "delete", did: "deleted",
		verb: verb{
			use:   "delete [ID...]",
			short: "Delete jobs by id, or all that a filter chooses",
			long: `Delete jobs in any state, for good. The worker that runs one is told to stop, as
"reprise jobs cancel" does it.

With a filter instead of ids the jobs are only counted, until --yes is given.`,
			example: `  reprise jobs delete 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise jobs delete --queue mail --status dead          # how many would it be?
  reprise jobs delete --queue mail --status dead --yes`,
		},
		each: func(c *call, id string) (any, error) { return nil, c.cl.Delete(c.Context(), id) },
		all: func(c *call, f client.Filter) error {
			n, err := c.cl.DeleteMany(c.Context(), f)
			return c.done(err, "%s deleted", plural(n, "job"))
		},
		ask: wouldBe("deleted"),
	}).command()
}

func newJobsCancelCommand() *cobra.Command {
	var reason string
	var dry bool
	o := &onJobs{
		what: "cancel", did: "cancelled",
		verb: verb{
			use:   "cancel [ID...]",
			short: "Cancel jobs that are not finished, by id or by a filter, and tell their workers",
			long: `Cancel jobs that are not finished. They are dead then, and their failure says
who cancelled them and why. They do not count as deaths, and are replayed only
by their ids or with --reason cancelled. The worker that runs one is told:
"reprise work" and the Go client stop it at once, a worker with leases learns of
it at its next heartbeat. A Zizq client cannot be told; the server refuses what
it reports.

With a filter instead of ids the jobs are only counted and some are shown, until
--yes is given.`,
			example: `  reprise jobs cancel 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise jobs cancel 03gq0x7k2m4v9c1d8f5h6j0a1 --reason 'the order was withdrawn'
  reprise jobs cancel --queue mail --filter '.to == "ann"' --dry-run      # which would it be?
  reprise jobs cancel --queue mail --filter '.to == "ann"' --yes`,
		},
		each: func(c *call, id string) (any, error) { return c.cl.Cancel(c.Context(), id, reason) },
		all: func(c *call, f client.Filter) error {
			n, err := c.cl.CancelMany(c.Context(), f, reason)
			return c.done(err, "%s cancelled", plural(n, "job"))
		},
		ask: wouldBeCancelled,
	}
	o.check = func(_ *call, filtered bool) error {
		if dry && (o.yes || !filtered) {
			return usagef("--dry-run is for a filter, and not together with --yes")
		}
		return nil
	}
	cmd := o.command()
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people who look at the job")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only count what the filter chooses, and show some of it")
	return cmd
}

func wouldBeCancelled(c *call, f client.Filter) error {
	p, err := c.cl.PreviewCancel(c.Context(), f)
	if err != nil {
		return err
	}
	rows := newTable(c.OutOrStdout())
	for i := range p.Sample {
		j := &p.Sample[i]
		rows.row(j.ID, status(j), j.Queue, j.Type)
	}
	if err := rows.flush(); err != nil {
		return err
	}
	if p.Count == 0 {
		fmt.Fprintln(c.OutOrStdout(), "no such job that is not finished"+noSuchQueues(c.Context(), c.cl, f.Queues))
		return nil
	}
	c.say("%s would be cancelled; add --yes to do it", plural(p.Count, "job"))
	return nil
}

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
retention, expiry and timeouts. Nobody can change payload and type of a job.

With a filter instead of ids the jobs are only counted, until --yes is given.
Finished jobs are skipped then.`,
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
			return c.show(n, err, func(io.Writer) error {
				c.say("%s patched", plural(n.Patched, "job"))
				if n.Refused > 0 {
					c.note("%s cannot be moved, such as %s.", plural(n.Refused, "job"), n.Why)
				}
				return nil
			})
		},
		ask: wouldBe("looked at, and patched where they are not finished"),
	}).command()
	flags.register(cmd)
	return cmd
}
