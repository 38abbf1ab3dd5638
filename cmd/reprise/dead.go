package main

import (
	"net/http"
	"os/user"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newDeadCommand() *cobra.Command {
	cmd := &cobra.Command{
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
		Args: oneOfMine, RunE: showHelp,
	}
	cmd.AddCommand(
		newDeadGroupsCommand(), newDeadListCommand(), newDeadShowCommand(), newDeadReplayCommand(), newDeadDeleteCommand(),
		newDeadExportCommand(), newDeadMarkCommand(), newDeadRunsCommand(), newAuditCommand(),
	)
	return cmd
}

// operator is a client that says for the audit log who asks.
func (c *connection) operator() (*client.Client, error) { return c.operatorWith(client.Options{}) }

// operatorOnce is an operator whose calls are not repeated: who looks on is told at
// once that no server answers.
func (c *connection) operatorOnce() (*client.Client, error) {
	return c.operatorWith(client.Options{RetryFor: -1})
}

func (c *connection) operatorWith(opts client.Options) (*client.Client, error) {
	header := http.Header{}
	if u, err := user.Current(); err == nil && strings.IndexFunc(u.Username, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		header.Set(wire.HeaderActor, u.Username[:min(len(u.Username), 128)])
	}
	opts.Header = header
	return c.client(opts)
}

// deadFilter is the flags that choose dead jobs.
type deadFilter struct {
	wire.DeadFilter
	since, until string
}

// deadReasons are the words of --reason.
var deadReasons = []string{
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
	completeFlag(cmd, "reason", oneOf(deadReasons...))
	completeFlag(cmd, "fingerprint", fingerprints)
}

// read checks what can be checked here and puts the times in.
func (f *deadFilter) read(now time.Time) (err error) {
	for _, r := range f.Reasons {
		if !slices.Contains(deadReasons, r) {
			return usagef("--reason %s: there is no such reason; the reasons are %s", r, strings.Join(deadReasons, ", "))
		}
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

// diedOf says in a few words what a group died of.
func diedOf(g *wire.DeadGroup) string {
	text := strings.Join(strings.Fields(g.Message), " ")
	switch {
	case g.ErrorType == "" && text == "":
		return g.Reason
	case text == "":
		return g.ErrorType
	case g.ErrorType == "":
		return text
	}
	return g.ErrorType + ": " + text
}

// clip shortens a text for a column.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
