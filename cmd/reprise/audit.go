package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/wire"
)

var audit = noun[wire.AuditEntry]{
	none:  "the audit log is empty",
	heads: []string{"WHEN", "WHO", "FROM", "WHAT", "OF", "JOBS"},
	row: func(t *table, e *wire.AuditEntry) {
		row := []string{time.UnixMilli(e.At).Format(forPeople), e.By, e.From, e.Action, e.Subject, whole(e.Count)}
		if e.Changes != nil {
			row = append(row, changesOf(e))
		}
		t.row(row...)
	},
}

// newAuditCommand stands under the root and under dead.
func newAuditCommand() *cobra.Command {
	var latest int
	cmd := verb{
		use:   "audit",
		short: "Show what operators did: who, what, when, how many",
		long: `Show what operators did, the latest first: changes of settings with the values
before and after, pauses, holds, forced breakers, deletes, replays, marks. What
workers and producers do is not in it.`,
		example: `  reprise audit
  reprise audit --limit 200 --json | jq -r 'select(.by == "ann")'`,
		json: "print each entry as a line of JSON",
		do: func(c *call) error {
			if err := checkLatest(latest); err != nil {
				return err
			}
			list, err := c.cl.Audit(c.Context(), latest)
			shown := audit
			if slices.ContainsFunc(list, func(e wire.AuditEntry) bool { return e.Changes != nil }) {
				shown.heads = slices.Concat(audit.heads, []string{"CHANGES"})
			}
			return shown.list(c, each(list, err))
		},
	}.command()
	latestFlag(cmd, &latest, 50)
	return cmd
}

// changesOf writes what was changed: rate null -> {"per_second":50}. Times of
// holds are numbers in it, as they are in the API.
func changesOf(e *wire.AuditEntry) string {
	parts := make([]string, len(e.Changes))
	for i, c := range e.Changes {
		parts[i] = c.Field + " " + string(c.From) + " -> " + string(c.To)
	}
	return strings.Join(parts, "; ")
}
