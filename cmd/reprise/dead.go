package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newDeadCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "dead",
		Short: "See what killed jobs, and replay or delete them",
		Long: `See what killed jobs, and replay or delete them.

A job that is given up is dead: it is kept with its errors, 7 days by default.
Jobs that died of the same thing have the same fingerprint and form a group. So
"dead groups" is where to begin: it says how many died of what.

A replay runs in the server. It goes on when this command ends, and after a
restart, and touches each job once.`,
		Example: `  reprise dead groups
  reprise dead list --fingerprint ede865b8574a584a
  reprise dead show 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead replay --fingerprint ede865b8574a584a --dry-run
  reprise dead replay --fingerprint ede865b8574a584a --rate 100 --yes
  reprise dead export --queue mail > dead.ndjson`,
	}, newDeadGroupsCommand(), newDeadListCommand(), newDeadShowCommand(), newDeadReplayCommand(), newDeadDeleteCommand(),
		newDeadExportCommand(), newDeadMarkCommand(), newDeadRunsCommand(), newAuditCommand())
}

// deadFilter is the flags that choose dead jobs.
type deadFilter struct {
	wire.DeadFilter
	since, until string
}

// deadReasons are the words of --reason.
var deadReasons = words{
	wire.ReasonExhausted, wire.ReasonKilled, wire.ReasonExpired, wire.ReasonLost, wire.ReasonRejected, wire.ReasonEvicted,
}

func (f *deadFilter) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.Fingerprints, "fingerprint", "f", nil, "only jobs of these groups")
	flags.StringSliceVarP(&f.Queues, "queue", "q", nil, "only jobs of these queues")
	flags.StringSliceVarP(&f.Types, "type", "t", nil, "only jobs of these types")
	flags.StringSliceVar(&f.Groups, "group", nil, "only jobs with these group keys")
	flags.StringSliceVar(&f.Reasons, "reason", nil, "only jobs dead for these reasons: "+strings.Join(deadReasons, ", "))
	flags.StringSliceVar(&f.ErrorTypes, "error-type", nil, "only jobs whose latest error has one of these types")
	flags.StringVar(&f.Text, "text", "", "only jobs whose latest error message has this in it, in any letter case")
	flags.StringVar(&f.Attempts, "attempts", "", "only jobs with so many failed attempts: 3, 1..5, 2.. or ..4")
	flags.StringVar(&f.Filter, "filter", "", "only jobs for whose payload this jq expression is true, such as '.to == \"ann\"'")
	flags.StringVar(&f.since, "since", "", "only jobs that died in the last 30m, 12h, 7d, or since 2006-01-02T15:04:05Z")
	flags.StringVar(&f.until, "until", "", "only jobs that died before then; as --since")
	completeFlag(cmd, "queue", queues)
	completeFlag(cmd, "reason", deadReasons)
	completeFlag(cmd, "fingerprint", fingerprints)
}

// read checks what can be checked here and puts the times in.
func (f *deadFilter) read(now time.Time) (err error) {
	if err := among("reason", "reason", f.Reasons, deadReasons); err != nil {
		return err
	}
	if f.DiedFrom, err = instant("--since", f.since, now); err == nil {
		f.DiedBefore, err = instant("--until", f.until, now)
	}
	return err
}

// chosen reports whether any flag of the filter was given.
func (f *deadFilter) chosen() bool {
	return len(f.Fingerprints)+len(f.Queues)+len(f.Types)+len(f.Groups)+len(f.Reasons)+len(f.ErrorTypes)+
		len(f.Text)+len(f.Attempts)+len(f.Filter)+len(f.since)+len(f.until) > 0
}

// instant reads a time, or a span before now; 0 = not given.
func instant(flag, text string, now time.Time) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UnixMilli(), nil
	}
	span, err := parseSpan(text)
	if err != nil {
		return 0, usagef("%s %q is neither a span such as 30m, 12h or 7d nor a time such as 2026-03-01T12:00:00Z", flag, text)
	}
	return now.Add(-span).UnixMilli(), nil
}

var deadJobs = &noun[wire.DeadJob]{
	single: "the id of one job", lister: "reprise dead list",
	read: func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[wire.DeadJob, error] {
		return cl.Dead(ctx, wire.DeadFilter{}, true, completionMost)
	},
	name: func(j *wire.DeadJob) (string, string) {
		return j.ID, j.Queue + " " + j.Type + " " + clip(lastError(j), 40)
	},

	none:  "no such dead job",
	heads: []string{"ID", "QUEUE", "TYPE", "FAILED", "DIED", "REASON", "ERROR"},
	row: func(t *table, j *wire.DeadJob) {
		t.row(j.ID, j.Queue, j.Type, strconv.Itoa(int(j.Attempts)), ago(j.DiedAt), j.Reason, clip(lastError(j), 60))
	},
}

func newDeadListCommand() *cobra.Command {
	var filter deadFilter
	var oldest bool
	cmd := verb{
		use:   "list",
		short: "List dead jobs with their latest error",
		example: `  reprise dead list --oldest
  reprise dead list --fingerprint ede865b8574a584a
  reprise dead list --queue mail --error-type Timeout --since 2h
  reprise dead list --limit 0 --json | jq -r .id`,
		json:  "print each job as a line of JSON, with payload and error",
		limit: 50,
		do: func(c *call) error {
			if err := filter.read(time.Now()); err != nil {
				return err
			}
			return deadJobs.list(c, c.cl.Dead(c.Context(), filter.DeadFilter, !oldest, c.perPage()), filter.Queues...)
		},
	}.command()
	filter.register(cmd)
	orderFlag(cmd, &oldest)
	return cmd
}

func newDeadShowCommand() *cobra.Command {
	return verb{
		use:   "show ID",
		short: "Show one dead job, its errors and its group",
		example: `  reprise dead show 03gq0x7k2m4v9c1d8f5h6j0a1
  reprise dead show 03gq0x7k2m4v9c1d8f5h6j0a1 --json | jq .job.payload`,
		args: []kind{deadJobs},
		json: "print one line of JSON: {job, errors}",
		do: func(c *call) error {
			j, err := c.cl.DeadJob(c.Context(), c.args[0])
			if err != nil {
				return err
			}
			failures, err := failuresOf(c, j.ID)
			return c.show(map[string]any{"job": j, "errors": failures}, err, func(w io.Writer) error {
				g, err := c.cl.DeadGroup(c.Context(), j.Fingerprint)
				if err != nil {
					return err
				}
				c.say("group %s: %s died of it; \"reprise dead list --fingerprint %[1]s\" lists them%[3]s\n", j.Fingerprint, plural(g.Count, "job"), marks(g))
				return showJob(w, &j.Job, failures, time.Now())
			})
		},
	}.command()
}

func newDeadExportCommand() *cobra.Command {
	var filter deadFilter
	cmd := verb{
		use:   "export",
		short: "Write dead jobs as JSON, one a line, with payload and latest error",
		example: `  reprise dead export > dead.ndjson
  reprise dead export --queue mail --since 1d | jq -r '[.id, .error.message] | @tsv'`,
		do: func(c *call) error {
			if err := filter.read(time.Now()); err != nil {
				return err
			}
			body, err := c.cl.ExportDead(c.Context(), filter.DeadFilter)
			if err != nil {
				return err
			}
			defer func() { _ = body.Close() }()
			p := newProgress(c.ErrOrStderr())
			defer p.hide()
			lines := &lineCounter{to: c.OutOrStdout(), show: func(n int64) { p.show(plural(n, "job") + " written") }}
			if _, err := io.Copy(lines, body); err != nil {
				return fmt.Errorf("the export broke off after %s: %w", plural(lines.n, "job"), err)
			}
			return nil
		},
	}.command()
	filter.register(cmd)
	return cmd
}

// lineCounter counts the lines that pass.
type lineCounter struct {
	to   io.Writer
	n    int64
	show func(n int64)
}

func (c *lineCounter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(bytes.Count(b[:n], []byte{'\n'}))
	c.show(c.n)
	return n, err
}

// lastError says in a few words what a dead job died of.
func lastError(j *wire.DeadJob) string {
	if j.Error == nil {
		return ""
	}
	return diedOf(&wire.DeadGroup{ErrorType: j.Error.ErrorType, Message: j.Error.Message})
}
