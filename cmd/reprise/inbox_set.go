package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/internal/server"
	"github.com/reprisehq/reprise/wire"
)

func newInboxSetCommand() *cobra.Command {
	var file string
	cmd := verb{
		use: "set NAME", short: "Make an inbox, or replace its settings",
		example: `  reprise inbox set reservations -f reservations.yaml`,
		args:    []kind{inboxes},
		do: func(c *call) error {
			settings, _, err := readBody(file, c.InOrStdin())
			if err != nil {
				return err
			}
			x, err := c.cl.SetInbox(c.Context(), c.args[0], settings)
			if err != nil {
				return err
			}
			c.say("inbox %s is set; it %s", c.args[0], inboxState(x))
			return nil
		},
	}.command()
	cmd.Flags().StringVarP(&file, "file", "f", "", "settings, YAML or JSON, as below a name of inboxes in the configuration; - for standard input")
	must(cmd.MarkFlagRequired("file"))
	return cmd
}

func newInboxRemoveCommand() *cobra.Command {
	return verb{
		use: "remove NAME", short: "Remove an inbox that has no unfinished message",
		example: `  reprise inbox remove reservations`,
		args:    []kind{inboxes},
		do: func(c *call) error {
			return c.done(c.cl.DeleteInbox(c.Context(), c.args[0]), "inbox %s is gone", c.args[0])
		},
	}.command()
}

var inboxRuns = noun[wire.InboxTry]{
	heads: []string{"OFFSET (SEC)", "WHAT HAPPENS", "ATTEMPT", "NEXT RETRY (SEC)"},
	row: func(t *table, r *wire.InboxTry) {
		next := "-"
		if r.Next > 0 {
			next = seconds(r.Next)
		}
		t.row(seconds(r.At), happens[r.Outcome], strconv.Itoa(r.Attempts), next)
	},
}

func newInboxPreviewCommand() *cobra.Command {
	var file string
	cmd := verb{
		use: "preview [NAME]", short: "Show when an inbox tries a message that no receiver takes",
		long: `Show when an inbox tries a message that no receiver takes, run by run, by the
rules of the server: the inbox NAME as it is set, or one with the settings of a
file, for which no server is needed. The receiver is thought to answer at once.`,
		example: `  reprise inbox preview reservations
  reprise inbox preview -f reservations.yaml`,
		args: []kind{inboxes}, optional: 1,
		json: "print one line of JSON for each row",
		do: func(c *call) error {
			if (file == "") == (len(c.args) == 0) {
				return usagef("give either the name of an inbox, or --file with settings")
			}
			preview, err := previewOf(c, file)
			if err != nil {
				return err
			}
			return inboxRuns.list(c, each(preview.Runs, nil))
		},
	}.command()
	cmd.Flags().StringVarP(&file, "file", "f", "", "settings, YAML or JSON, as below a name of inboxes in the configuration; - for standard input")
	return cmd
}

func previewOf(c *call, file string) (*wire.InboxPreview, error) {
	if file == "" {
		return c.cl.PreviewInbox(c.Context(), c.args[0], nil)
	}
	settings, _, err := readBody(file, c.InOrStdin())
	if err != nil {
		return nil, err
	}
	return server.PreviewInbox(settings)
}

// happens says what a run does.
var happens = map[string]string{
	wire.TrySuppressed: "tried, error not noted: inside the time to live",
	wire.TryNoted:      "tried, error noted",
	wire.TryExhausted:  "tried, error noted: exhausted",
	wire.TryNotDue:     "not tried: not due",
	wire.TryOver:       "not tried: exhausted",
}

func seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }
