package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/server"
	"github.com/reprisehq/reprise/wire"
)

// inboxFile reads the settings of an inbox from a file, - for standard input,
// and returns them as JSON.
func inboxFile(cmd *cobra.Command, name string) (json.RawMessage, error) {
	if name == "-" {
		text, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return server.ReadInbox("standard input", text)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return server.ReadInbox(name, text)
}

func newInboxSetCommand() *cobra.Command {
	var file string
	cmd := inboxCommand(&cobra.Command{
		Use: "set NAME", Short: "Make an inbox, or replace its settings",
		Example: `  reprise inbox set reservations -f reservations.yaml`,
	}, 1, 1, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		settings, err := inboxFile(cmd, file)
		if err != nil {
			return err
		}
		x, err := cl.SetInbox(cmd.Context(), args[0], settings)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "inbox %s is set; it %s\n", printable(args[0]), inboxState(x))
		return nil
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "settings, YAML or JSON, as below a name of inboxes in the configuration; - for standard input")
	must(cmd.MarkFlagRequired("file"))
	return cmd
}

func newInboxRemoveCommand() *cobra.Command {
	return inboxCommand(&cobra.Command{
		Use: "remove NAME", Short: "Forget an inbox that has no unfinished message",
		Example: `  reprise inbox remove reservations`,
	}, 1, 1, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		if err := cl.DeleteInbox(cmd.Context(), args[0]); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "inbox %s is gone\n", printable(args[0]))
		return nil
	})
}

func newInboxPreviewCommand() *cobra.Command {
	var asJSON bool
	var file string
	cmd := inboxCommand(&cobra.Command{
		Use: "preview [NAME]", Short: "Show when an inbox tries a message that no receiver takes",
		Long: `Show when an inbox tries a message that no receiver takes, run by run, by the
rules of the server: the inbox NAME as it is set, or one with the settings of a
file, for which no server is needed. The receiver is thought to answer at once.`,
		Example: `  reprise inbox preview reservations
  reprise inbox preview -f reservations.yaml`,
	}, 0, 1, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		if (file == "") == (len(args) == 0) {
			return usagef("give either the name of an inbox, or --file with settings")
		}
		preview, err := previewOf(cmd, cl, file, args)
		if err != nil {
			return err
		}
		t := newTable(cmd.OutOrStdout(), "OFFSET (SEC)", "WHAT HAPPENS", "ATTEMPT", "NEXT RETRY (SEC)")
		for _, try := range preview.Runs {
			if asJSON {
				if err := jsonLine(cmd.OutOrStdout(), try); err != nil {
					return err
				}
				continue
			}
			next := "-"
			if try.Next > 0 {
				next = seconds(try.Next)
			}
			t.row(seconds(try.At), happens[try.Outcome], strconv.Itoa(try.Attempts), next)
		}
		if asJSON {
			return nil
		}
		return t.flush()
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "settings, YAML or JSON, as below a name of inboxes in the configuration; - for standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON for each row")
	return cmd
}

func previewOf(cmd *cobra.Command, cl *client.Client, file string, args []string) (*wire.InboxPreview, error) {
	if file == "" {
		return cl.PreviewInbox(cmd.Context(), args[0], nil)
	}
	settings, err := inboxFile(cmd, file)
	if err != nil {
		return nil, err
	}
	return server.PreviewInbox(settings)
}

// happens says what a run does.
var happens = map[string]string{
	"suppressed": "tried, error not noted: inside the time to live",
	"noted":      "tried, error noted",
	"exhausted":  "tried, error noted: exhausted",
	"not_due":    "not tried: not due",
	"over":       "not tried: exhausted",
}

func seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }
