package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

func newJobsCommand() *cobra.Command {
	cmd := &cobra.Command{
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
		Args: oneOfMine, RunE: showHelp,
	}
	cmd.AddCommand(newJobsListCommand(), newJobsShowCommand(), newJobsExplainCommand(), newJobsPatchCommand(), newJobsCancelCommand(), newJobsProgressCommand(), newJobsDeleteCommand())
	return cmd
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
	completeFlag(cmd, "status", oneOf(wire.Statuses...))
}

func (f *jobFilter) check() (err error) {
	for _, s := range f.Statuses {
		if !slices.Contains(wire.Statuses, s) {
			return usagef("--status %s: there is no such state; the states are %s%s", s, strings.Join(wire.Statuses, ", "), spell.Hint(s, wire.Statuses))
		}
	}
	for _, r := range f.Reasons {
		if !slices.Contains(wire.Reasons, r) {
			return usagef("--reason %s: there is no such reason; a job is dead for one of %s", r, strings.Join(wire.Reasons, ", "))
		}
	}
	for _, w := range f.Waits {
		if !slices.Contains(wire.Waits, w) {
			return usagef("--wait %s: there is no such wait; a job waits for one of %s%s", w, strings.Join(wire.Waits, ", "), spell.Hint(w, wire.Waits))
		}
	}
	f.Labels, err = parseLabels(f.labels)
	return err
}

// chosen reports whether any flag of the filter was given.
func (f *jobFilter) chosen() bool {
	return len(f.Queues)+len(f.Statuses)+len(f.Types)+len(f.Attempts)+len(f.Budgets)+len(f.Groups)+len(f.labels)+len(f.Filter.Filter) > 0
}

func (f *jobFilter) registerAll(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.All, "all", false, "all jobs of the server")
}

// meant checks that the jobs are named in one way: by ids, or by a filter.
func (f *jobFilter) meant(ids []string, what string) (filtered bool, err error) {
	filtered = f.chosen() || f.All
	switch {
	case filtered == (len(ids) > 0):
		return false, usagef("name the jobs to %s: either their ids, or a filter (--queue, --status, --type, --attempts, --budget, --group, --label, --filter), or --all", what)
	case f.chosen() && f.All:
		return false, usagef("--all is not for a filter: it means every job")
	}
	return filtered, f.check()
}

func newJobsListCommand() *cobra.Command {
	var conn connection
	var filter jobFilter
	var limit int
	var oldest, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs, newest first",
		Example: `  reprise jobs list
  reprise jobs list --queue mail --status ready,scheduled
  reprise jobs list --status dead --oldest --limit 20
  reprise jobs list --group customer-7 --label team=red
  reprise jobs list --reason cancelled
  reprise jobs list --queue mail --wait held,'behind head'
  reprise jobs list --filter '.to | test("@example.com$")'
  reprise jobs list --status dead --limit 0 --json | jq -r .id`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d: use 0 for all jobs", limit)
			}
			if err := filter.check(); err != nil {
				return err
			}
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			filter.Newest = !oldest
			return advise(listJobs(cmd, cl, filter.Filter, limit, asJSON), cl)
		},
	}
	conn.register(cmd)
	filter.register(cmd)
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most so many; 0 for all")
	orderFlag(cmd, &oldest)
	cmd.Flags().StringSliceVar(&filter.Reasons, "reason", nil, "only dead jobs for these reasons: "+strings.Join(wire.Reasons, ", "))
	completeFlag(cmd, "reason", oneOf(wire.Reasons...))
	cmd.Flags().StringSliceVar(&filter.Waits, "wait", nil, "only jobs that something keeps from running: "+strings.Join(wire.Waits, ", "))
	completeFlag(cmd, "wait", oneOf(wire.Waits...))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each job as a line of JSON, with its payload")
	return cmd
}

func listJobs(cmd *cobra.Command, cl *client.Client, f client.Filter, limit int, asJSON bool) error {
	out := cmd.OutOrStdout()
	if limit > 0 {
		f.PageSize = min(limit+1, wire.PageLimitMax)
	}
	rows := newTable(out)
	n, now := 0, time.Now()
	more := false
	for j, err := range cl.List(cmd.Context(), f) {
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
			rows.heads(cells(cmd, []string{"ID", "STATUS", "QUEUE", "TYPE", "FAILED", "WHEN"}, "GROUP", "PRIORITY", "LABELS")...)
		}
		rows.row(cells(cmd, []string{j.ID, status(&j), j.Queue, j.Type, strconv.Itoa(int(j.Attempts)), when(&j, now)},
			j.Group, strconv.Itoa(int(j.Priority)), labelsOf(&j))...)
	}
	if err := rows.flush(); err != nil || asJSON {
		return err
	}
	switch {
	case n == 0:
		fmt.Fprintln(out, "no such job"+noSuchQueues(cmd.Context(), cl, f.Queues))
	case more:
		fmt.Fprintf(cmd.ErrOrStderr(), "There are more than these %d; --limit shows more.\n", limit)
	}
	return nil
}

// labelsOf writes labels as name=value, by name.
func labelsOf(j *wire.Job) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		list = append(list, name+"="+j.Labels[name])
	}
	return strings.Join(list, ", ")
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
func when(j *wire.Job, now time.Time) string {
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
	return distance(time.UnixMilli(at), now)
}

func newJobsShowCommand() *cobra.Command {
	var conn connection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one job: its state, its payload, its result and what went wrong",
		Example: `  reprise jobs show 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise jobs show 03gq0x7k2m4v9c1d8f5h6j0a1 --json | jq .job.payload`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			j, err := cl.Get(cmd.Context(), args[0])
			if client.CodeOf(err) == wire.CodeNotFound {
				return fmt.Errorf("%w\nA completed job leaves when its retention is over; without one, after an hour at most", err)
			} else if err != nil {
				return advise(err, cl)
			}
			failures := []wire.JobError{}
			for e, err := range cl.Errors(cmd.Context(), j.ID) {
				if err != nil {
					return advise(err, cl)
				}
				failures = append(failures, e)
			}
			if asJSON {
				return jsonLine(cmd.OutOrStdout(), map[string]any{"job": j, "errors": failures})
			}
			return showJob(cmd.OutOrStdout(), j, failures, time.Now())
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON: {job, errors}")
	complete(cmd, false, jobIDs)
	return cmd
}

func oneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s needs the id of one job, but was given %d arguments", cmd.CommandPath(), len(args))
	}
	return nil
}

// uniqueKey tells a unique key and how long the job has it.
func uniqueKey(j *wire.Job) string {
	if j.UniqueKey == "" {
		return ""
	}
	return j.UniqueKey + ", while " + j.UniqueWhile
}

// batchKey tells a batch and what it does.
func batchKey(j *wire.Job) string {
	if j.Batch == nil {
		return ""
	}
	return j.Batch.Key + "; when " + j.Batch.When + "; fold " + j.Batch.Fold
}

func showJob(out io.Writer, j *wire.Job, failures []wire.JobError, now time.Time) error {
	t := newTable(out)
	t.row("id", j.ID)
	t.row("queue", j.Queue)
	t.row("type", j.Type)
	t.row("status", status(j))
	t.row("", explain(j, failures, now))
	t.row("priority", strconv.Itoa(int(j.Priority)))
	for _, optional := range []struct{ name, value string }{
		{"group", j.Group},
		{"unique", uniqueKey(j)},
		{"batch", batchKey(j)},
		{"budgets", budgetsOf(j)},
		{"retries", policy(j)},
		{"lost", times(j.Losses, "its worker vanished")},
		{"given back", times(j.Evictions, "without blame")},
		{"progress", progressOf(j, now)},
		{"expires", at(j.ExpiresAt, now)},
		{"last taken", at(j.DequeuedAt, now)},
		{"last failed", at(j.FailedAt, now)},
	} {
		if optional.value != "" {
			t.row(optional.name, optional.value)
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\npayload\n%s\n", printableLines(indented(j.Payload), "  "))
	if len(j.Result) > 0 {
		fmt.Fprintf(out, "\nresult\n%s\n", printableLines(indented(j.Result), "  "))
	}
	if len(failures) > 0 {
		n := 0
		for i := range failures {
			if failures[i].DequeuedAt > 0 {
				n++
			}
		}
		fmt.Fprintf(out, "\n%s\n", plural(int64(n), "failure"))
	}
	for _, e := range failures {
		what := "of no attempt"
		if e.DequeuedAt > 0 {
			what = fmt.Sprintf("attempt %d", e.Attempt)
		}
		fmt.Fprintf(out, "  %s, %s", what, moment(e.FailedAt, now))
		if e.ErrorType != "" {
			fmt.Fprintf(out, ", %s", printable(e.ErrorType))
		}
		fmt.Fprintf(out, "\n%s\n", printableLines(e.Message, "    "))
		if trace := strings.TrimSpace(e.Backtrace); trace != "" && trace != strings.TrimSpace(e.Message) {
			fmt.Fprintln(out, printableLines(e.Backtrace, "      "))
		}
	}
	return nil
}

func at(ms int64, now time.Time) string {
	if ms == 0 {
		return ""
	}
	return moment(ms, now)
}

func times(n uint32, what string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "once: " + what
	}
	return fmt.Sprintf("%d times: %s", n, what)
}

// policy is what the job itself says about its retries.
func policy(j *wire.Job) string {
	var parts []string
	limit := any(nil)
	if j.RetryLimit != nil {
		limit = *j.RetryLimit
	}
	if j.Retry != nil {
		if j.Retry.Limit != nil {
			limit = j.Retry.Limit
		}
		if c := j.Retry.Curve; c != nil {
			parts = append(parts, c.Kind+" curve of its own")
		}
		if j.Retry.MaxAge != "" {
			parts = append(parts, "for at most "+j.Retry.MaxAge)
		}
	} else if j.Backoff != nil {
		parts = append(parts, "polynomial curve of its own")
	}
	if limit != nil {
		parts = append([]string{fmt.Sprintf("at most %v", limit)}, parts...)
	}
	return strings.Join(parts, ", ")
}

// explain says in words why the job is where it is.
func explain(j *wire.Job, failures []wire.JobError, now time.Time) string {
	switch j.Status {
	case wire.Scheduled:
		if j.Attempts > 0 {
			return fmt.Sprintf("failed %s so far; the next attempt is due %s", often(j.Attempts), moment(j.ReadyAt, now))
		}
		return "waits for its time, " + moment(j.ReadyAt, now)
	case wire.Ready:
		text := "waits for a worker since " + moment(j.ReadyAt, now)
		switch {
		case j.Wait != "":
			text = "is out of line: " + j.Wait
		case j.Attempts > 0:
			text = fmt.Sprintf("failed %s so far and %s", often(j.Attempts), text)
		}
		return text
	case wire.InFlight:
		return "a worker has it since " + moment(j.DequeuedAt, now) + ", as attempt " + strconv.Itoa(int(j.Attempts)+1)
	case wire.Completed:
		return "done " + at(j.CompletedAt, now) + removal(j, now)
	case wire.Dead:
		if n := len(failures); j.Reason == wire.ReasonCancelled && n > 0 { // who did it, and why
			return failures[n-1].Message + ", " + moment(failures[n-1].FailedAt, now) + removal(j, now)
		}
		return reason(j) + removal(j, now)
	}
	return ""
}

func often(n uint32) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(int(n)) + " times"
}

// lastDate is the end of the year 9999.
const lastDate = 253_402_300_799_999

func removal(j *wire.Job, now time.Time) string {
	if j.PurgeAt == 0 || j.PurgeAt > lastDate { // it stays: that of a session leaves with it
		return ""
	}
	return "; removed " + moment(j.PurgeAt, now)
}

// reason says why a dead job is dead.
func reason(j *wire.Job) string {
	switch j.Reason {
	case wire.ReasonExhausted:
		return "failed " + often(j.Attempts) + ", and its retry policy allows no more"
	case wire.ReasonKilled:
		return "its worker said that trying again cannot help"
	case wire.ReasonExpired:
		return "was not started before it expired"
	case wire.ReasonLost:
		return "its workers vanished too often while they had it"
	case wire.ReasonRejected:
		return "was refused after it had been taken in"
	case wire.ReasonCancelled:
		return "was cancelled"
	case wire.ReasonEvicted:
		return "was pushed out because its queue was full"
	}
	return "was given up after " + plural(int64(j.Attempts), "failure")
}

func newJobsDeleteCommand() *cobra.Command {
	var conn connection
	var filter jobFilter
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete [ID...]",
		Short: "Delete jobs by id, or all that a filter chooses",
		Long: `Delete jobs in any state, for good. A worker that runs one is told to
stop, as by cancel.

With a filter instead of ids the jobs are only counted, until --yes is given.`,
		Example: `  reprise jobs delete 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise jobs delete --queue mail --status dead          # how many would it be?
  reprise jobs delete --queue mail --status dead --yes`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			filtered, err := filter.meant(ids, "delete")
			if err != nil {
				return err
			}
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			if filtered {
				return advise(deleteAll(cmd, cl, filter.Filter, yes), cl)
			}
			for i, id := range ids {
				if err := cl.Delete(cmd.Context(), id); err != nil {
					return advise(before(err, i, "deleted"), cl)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s deleted\n", plural(int64(len(ids)), "job"))
			return nil
		},
	}
	conn.register(cmd)
	filter.register(cmd)
	filter.registerAll(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "really delete what the filter chooses")
	complete(cmd, true, jobIDs)
	return cmd
}

// deleteAll deletes what the filter chooses, on the server.
func deleteAll(cmd *cobra.Command, cl *client.Client, f client.Filter, yes bool) error {
	if !yes {
		return wouldBe(cmd, cl, f, "deleted")
	}
	n, err := cl.DeleteMany(cmd.Context(), f)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s deleted\n", plural(n, "job"))
	return nil
}

// wouldBe counts what the filter chooses.
func wouldBe(cmd *cobra.Command, cl *client.Client, f client.Filter, what string) error {
	f.All = false // a count needs no such word
	n, err := cl.Count(cmd.Context(), f)
	if err != nil {
		return err
	}
	if n == 0 {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "no such job"+noSuchQueues(cmd.Context(), cl, f.Queues))
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s would be %s; add --yes to do it\n", plural(n, "job"), what)
	return nil
}
