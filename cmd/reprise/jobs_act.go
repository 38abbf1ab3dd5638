package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
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
	filtered := f.chosen() || f.All
	switch {
	case filtered == (len(c.args) > 0):
		return usagef("name the jobs to %s: either their ids, or a filter (--queue, --status, --type, --attempts, --budget, --group, --label, --filter), or --all", o.what)
	case f.chosen() && f.All:
		return usagef("--all is not for a filter: it means every job")
	}
	if err := f.check(); err != nil {
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
			long: `Delete jobs in any state, for good. A worker that runs one is told to
stop, as by cancel.

With a filter instead of ids the jobs are only counted, until --yes is given.`,
			example: `  reprise jobs delete 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise jobs delete --queue mail --status dead          # how many would it be?
  reprise jobs delete --queue mail --status dead --yes`,
		},
		each: func(c *call, id string) (any, error) { return nil, c.cl.Delete(c.Context(), id) },
		all: func(c *call, f client.Filter) error {
			n, err := c.cl.DeleteMany(c.Context(), f)
			if err == nil {
				c.say("%s deleted", plural(n, "job"))
			}
			return err
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
			short: "Give up jobs that are not finished, by id or by a filter, and tell who runs them",
			long: `Give up jobs that are not finished: they are dead, with who cancelled them and
why as their failure. They do not count as deaths, and are replayed only if
--reason cancelled or their id says so. A worker that runs one is told: that of
'reprise work' and of the Go client stops it at once, one with leases hears it
at its next heartbeat. A Zizq client cannot be told; what it reports is
refused.

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
			if err == nil {
				c.say("%s cancelled", plural(n, "job"))
			}
			return err
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
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
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
