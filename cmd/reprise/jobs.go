package main

import (
	"cmp"
	"context"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newJobsCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "jobs",
		Short: "Look at jobs, change, cancel and delete them",
		Long: `Look at the jobs of a server, change, cancel and delete them.

A job is in one of five states:
  scheduled   waits for its time: a delay, or the wait before a retry
  ready       waits for a worker
  in_flight   a worker has it
  completed   done; stays as long as its retention says, else an hour at most
  dead        given up, or cancelled; stays to be looked at, 7 days by default`,
		Example: `  reprise jobs list
  reprise jobs list --status dead
  reprise jobs show 03gq0x7k2m4v9c1d8f5h6j0a1`,
	}, newJobsListCommand(), newJobsShowCommand(), newJobsExplainCommand(), newJobsPatchCommand(), newJobsCancelCommand(), newJobsProgressCommand(), newJobsDeleteCommand())
}

// jobFilter is the flags that choose jobs.
type jobFilter struct {
	client.Filter
	labels []string
}

func (f *jobFilter) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.Queues, "queue", "q", nil, "only jobs of these queues")
	flags.StringSliceVarP(&f.Statuses, "status", "s", nil, "only jobs in these states: "+strings.Join(wire.Statuses, ", "))
	flags.StringSliceVarP(&f.Types, "type", "t", nil, "only jobs of these types")
	flags.StringVar(&f.Attempts, "attempts", "", "only jobs with so many failed attempts: 3, 1..5, 2.. or ..4")
	flags.StringSliceVar(&f.Budgets, "budget", nil, "only jobs that are bound to any of these budgets")
	flags.StringSliceVar(&f.Groups, "group", nil, "only jobs in these groups")
	flags.StringArrayVar(&f.labels, "label", nil, "only jobs with this label, `NAME=VALUE`; may be repeated: all of them")
	flags.StringVar(&f.Filter.Filter, "filter", "", "only jobs for whose payload this jq expression is true, such as '.to == \"ann\"'")
	completeFlag(cmd, "queue", queues)
	completeFlag(cmd, "budget", budgets)
	completeFlag(cmd, "status", words(wire.Statuses))
}

func (f *jobFilter) check() (err error) {
	if err := cmp.Or(
		among("status", "state", f.Statuses, wire.Statuses), among("reason", "reason", f.Reasons, wire.Reasons), among("wait", "wait reason", f.Waits, wire.Waits),
	); err != nil {
		return err
	}
	f.Labels, err = namedValues("label", f.labels)
	return err
}

// chosen reports whether any flag of the filter was given.
func (f *jobFilter) chosen() bool {
	return len(f.Queues)+len(f.Statuses)+len(f.Types)+len(f.Attempts)+len(f.Budgets)+len(f.Groups)+len(f.labels)+len(f.Filter.Filter) > 0
}

var jobs = &noun[wire.Job]{
	single: "the id of one job", lister: "reprise jobs list",
	read: func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[wire.Job, error] {
		return cl.List(ctx, client.Filter{Newest: true, PageSize: completionMost})
	},
	name: func(j *wire.Job) (string, string) { return j.ID, j.Queue + " " + j.Type + " " + j.Status },

	none:  "no such job",
	heads: []string{"ID", "STATUS", "QUEUE", "TYPE", "FAILED", "WHEN"},
	wide:  []string{"GROUP", "PRIORITY", "LABELS"},
	row: func(t *table, j *wire.Job) {
		t.row(j.ID, status(j), j.Queue, j.Type, strconv.Itoa(int(j.Attempts)), when(j), j.Group, strconv.Itoa(int(j.Priority)), pairs(j.Labels, ", "))
	},
}

func newJobsListCommand() *cobra.Command {
	var filter jobFilter
	var oldest bool
	cmd := verb{
		use:   "list",
		short: "List jobs, newest first",
		example: `  reprise jobs list
  reprise jobs list --queue mail --status ready,scheduled
  reprise jobs list --status dead --oldest --limit 20
  reprise jobs list --group customer-7 --label team=red
  reprise jobs list --reason cancelled
  reprise jobs list --queue mail --wait held,'behind head'
  reprise jobs list --filter '.to | test("@example.com$")'
  reprise jobs list --status dead --limit 0 --json | jq -r .id`,
		json:  "print each job as a line of JSON, with its payload",
		limit: 50,
		do: func(c *call) error {
			if err := filter.check(); err != nil {
				return err
			}
			filter.Newest, filter.PageSize = !oldest, c.perPage()
			return jobs.list(c, c.cl.List(c.Context(), filter.Filter), filter.Queues...)
		},
	}.command()
	filter.register(cmd)
	orderFlag(cmd, &oldest)
	cmd.Flags().StringSliceVar(&filter.Reasons, "reason", nil, "only dead jobs for these reasons: "+strings.Join(wire.Reasons, ", "))
	completeFlag(cmd, "reason", words(wire.Reasons))
	cmd.Flags().StringSliceVar(&filter.Waits, "wait", nil, "only jobs with one of these wait reasons: "+strings.Join(wire.Waits, ", "))
	completeFlag(cmd, "wait", words(wire.Waits))
	return cmd
}

func status(j *wire.Job) string {
	if j.Wait != "" {
		return j.Status + " (" + j.Wait + ")"
	}
	if j.Reason != "" {
		return j.Status + " (" + j.Reason + ")"
	}
	return j.Status
}

// when is the moment that matters in the job's state.
func when(j *wire.Job) string {
	at := j.ReadyAt
	switch j.Status {
	case wire.InFlight:
		at = j.DequeuedAt
	case wire.Completed:
		at = j.CompletedAt
	case wire.Dead:
		at = max(j.FailedAt, j.ReadyAt)
	}
	if at == 0 {
		return ""
	}
	return ago(at)
}
