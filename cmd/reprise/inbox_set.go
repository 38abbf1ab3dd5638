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
	cmd := &cobra.Command{
		Use: "preview", Short: "Show when an inbox tries a message that no receiver takes",
		Long: `Show when an inbox with these settings tries a message that no receiver takes,
run by run, by the rules of the server. No server is needed. The receiver is
thought to answer at once.`,
		Example: `  reprise inbox preview -f reservations.yaml`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := inboxFile(cmd, file)
			if err != nil {
				return err
			}
			tries, err := server.PreviewInbox(settings)
			if err != nil {
				return err
			}
			t := newTable(cmd.OutOrStdout(), "OFFSET (SEC)", "WHAT HAPPENS", "ATTEMPT", "NEXT RETRY (SEC)")
			for _, try := range tries {
				at, next := seconds(int64(try.At)), "-"
				if try.Next > 0 {
					next = seconds(int64(try.Next))
				}
				if asJSON {
					line := map[string]any{"at_ms": try.At, "what": try.Outcome.String(), "attempt": try.Attempts, "next_ms": try.Next}
					if err := jsonLine(cmd.OutOrStdout(), line); err != nil {
						return err
					}
					continue
				}
				t.row(at, try.Outcome.String(), strconv.Itoa(try.Attempts), next)
			}
			if asJSON {
				return nil
			}
			return t.flush()
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "settings, YAML or JSON, as below a name of inboxes in the configuration; - for standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON for each row")
	must(cmd.MarkFlagRequired("file"))
	return cmd
}

func seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }
