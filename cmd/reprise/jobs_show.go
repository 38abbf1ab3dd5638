package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newJobsShowCommand() *cobra.Command {
	return verb{
		use:   "show ID",
		short: "Show one job: its state, its payload, its result and what went wrong",
		example: `  reprise jobs show 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise jobs show 03gq0x7k2m4v9c1d8f5h6j0a1 --json | jq .job.payload`,
		args: []kind{jobs},
		json: "print one line of JSON: {job, errors}",
		do: func(c *call) error {
			j, err := c.cl.Get(c.Context(), c.args[0])
			if client.CodeOf(err) == wire.CodeNotFound {
				return fmt.Errorf("%w\nA completed job is removed when its retention ends; without a retention, after an hour at most", err)
			} else if err != nil {
				return err
			}
			failures, err := failuresOf(c, j.ID)
			return c.show(map[string]any{"job": j, "errors": failures}, err, func(w io.Writer) error {
				return showJob(w, j, failures, time.Now())
			})
		},
	}.command()
}

func failuresOf(c *call, id string) ([]wire.JobError, error) {
	list := []wire.JobError{}
	for e, err := range c.cl.Errors(c.Context(), id) {
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
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
	t.tell("group", j.Group)
	t.tell("labels", pairs(j.Labels, ", "))
	t.tell("unique", uniqueKey(j))
	t.tell("batch", batchKey(j))
	t.tell("budgets", budgetsOf(j))
	t.tell("retries", policy(j))
	t.tell("lost", times(j.Losses, "its worker vanished"))
	t.tell("given back", times(j.Evictions, "without blame"))
	t.tell("progress", progressOf(j, now))
	t.tell("expires", at(j.ExpiresAt, now))
	t.tell("last taken", at(j.DequeuedAt, now))
	t.tell("last failed", at(j.FailedAt, now))
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
		return "a worker has had it since " + moment(j.DequeuedAt, now) + ", as attempt " + strconv.Itoa(int(j.Attempts)+1)
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

// deaths are why jobs are dead, in words.
var deaths = map[string]string{
	wire.ReasonKilled:    "its worker said that trying again cannot help",
	wire.ReasonExpired:   "was not started before it expired",
	wire.ReasonLost:      "its workers vanished too often while they had it",
	wire.ReasonRejected:  "was refused after the server had accepted it",
	wire.ReasonCancelled: "was cancelled",
	wire.ReasonEvicted:   "was evicted because its queue was full",
}

// reason says why a dead job is dead.
func reason(j *wire.Job) string {
	if j.Reason == wire.ReasonExhausted {
		return "failed " + often(j.Attempts) + ", and its retry policy allows no more"
	}
	return cmp.Or(deaths[j.Reason], "was given up after "+plural(int64(j.Attempts), "failure"))
}

func newJobsExplainCommand() *cobra.Command {
	return verb{
		use: "explain ID", short: "Say why a job does not run",
		long: `Say why a job does not run: paused, held, a breaker, behind the head of its
group, a limit, not due, no worker. Of a job that waits for a retry it also says
which policy chose the wait.`,
		example: `  reprise jobs explain 03gq0x7k2m4v9c1d8f5h6j0a1`,
		args:    []kind{jobs},
		json:    "print one line of JSON",
		do: func(c *call) error {
			e, err := c.cl.Explain(c.Context(), c.args[0])
			return c.show(e, err, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s\n%s\n", e.Status, printableLines(localTimes(strings.ReplaceAll(e.Text, "; ", "\n")), "  "))
				return err
			})
		},
	}.command()
}
