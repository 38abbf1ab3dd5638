package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// newAuditCommand stands under the root and under dead.
func newAuditCommand() *cobra.Command {
	var conn connection
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show what operators did: who, what, when, how many",
		Long: `Show what operators did, the latest first: changes of settings with the values
before and after, pauses, holds, forced breakers, deletes, replays, marks. What
workers and producers do is not in it.`,
		Example: `  reprise audit
  reprise audit --limit 200 --json | jq -r 'select(.by == "ann")'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > wire.PageLimitMax {
				return usagef("--limit must be between 1 and %d", wire.PageLimitMax)
			}
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			list, err := cl.Audit(cmd.Context(), limit)
			if err != nil {
				return advise(err, cl)
			}
			return showAudit(cmd, list, asJSON)
		},
	}
	conn.register(cmd)
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most so many, the latest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each entry as a line of JSON")
	return cmd
}

func showAudit(cmd *cobra.Command, list []wire.AuditEntry, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		for _, e := range list {
			if err := jsonLine(out, e); err != nil {
				return err
			}
		}
		return nil
	}
	heads := []string{"WHEN", "WHO", "FROM", "WHAT", "OF", "JOBS"}
	if slices.ContainsFunc(list, func(e wire.AuditEntry) bool { return e.Changes != nil }) {
		heads = append(heads, "CHANGES")
	}
	t := newList(out, "nothing yet", heads...)
	for _, e := range list {
		cells := []string{time.UnixMilli(e.At).Format(forPeople), e.By, e.From, e.Action, e.Subject, strconv.FormatInt(e.Count, 10)}
		if e.Changes != nil {
			cells = append(cells, changesOf(e))
		}
		t.row(cells...)
	}
	return t.flush()
}

// changesOf writes what was changed: rate null -> {"per_second":50}. Times of
// holds are numbers in it, as they are in the API.
func changesOf(e wire.AuditEntry) string {
	parts := make([]string, len(e.Changes))
	for i, c := range e.Changes {
		parts[i] = c.Field + " " + string(c.From) + " -> " + string(c.To)
	}
	return strings.Join(parts, "; ")
}
