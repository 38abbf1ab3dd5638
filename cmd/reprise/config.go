package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/internal/config"
)

func newConfigCommand() *cobra.Command {
	var asJSON, check bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting of the server, and where it came from",
		Long: `Show every setting of the server, and where it came from.

Takes the flags of "reprise serve", reads the same environment and the same
file, and starts nothing. What stands behind a reference such as ${env:NAME} is
not shown. If something is wrong, everything that is wrong is told and the exit
code is 1.`,
		Example: `  reprise config
  reprise config -c reprise.yaml --port 8000
  reprise config -c reprise.yaml --check
  reprise config --json | jq -r '.values[] | select(.origin.from != "default") | .name'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			_, report, err := config.Load(cmd.Flags(), os.Environ(), os.ReadFile)
			switch {
			case check && asJSON:
				return errors.Join(printCheck(cmd, err), err)
			case check && err == nil:
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "no problems")
				return err
			case check:
				return err
			case asJSON:
				return errors.Join(printJSON(cmd, report), err)
			}
			for _, n := range report.Notices {
				if n.Level >= slog.LevelInfo {
					fmt.Fprintln(cmd.ErrOrStderr(), "note:", n.Text)
				}
			}
			return errors.Join(report.WriteTable(cmd.OutOrStdout()), err)
		},
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().BoolVar(&check, "check", false, "write only what is wrong")
	cmd.Annotations = map[string]string{serverFlags: ""}
	helpInSections(cmd)
	return cmd
}

func printCheck(cmd *cobra.Command, err error) error {
	problems, _ := errors.AsType[config.Problems](err)
	if problems == nil {
		problems = config.Problems{}
	}
	return printJSON(cmd, map[string]any{"problems": problems})
}

func printJSON(cmd *cobra.Command, v any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
