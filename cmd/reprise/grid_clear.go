package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// excludedText tells of an engine that a session excludes.
func excludedText(e *wire.ExcludedEngine) string {
	text := fmt.Sprintf("engine %s, after %s", e.Engine, plural(int64(e.Failures), "failure"))
	switch {
	case e.Spared:
		return text + "; it goes on, as too many would be excluded"
	case e.Until > 0:
		return text + "; it is tried again " + distance(time.UnixMilli(e.Until), time.Now())
	}
	return text + "; \"reprise grid clear\" gives it another chance"
}

// stalledText tells why nothing of a session goes on, or only on engines that are
// spared.
func stalledText(s *wire.Session) string {
	if slices.ContainsFunc(s.Excluded, func(e wire.ExcludedEngine) bool { return e.Spared }) {
		return "its tasks failed too often on every engine that may run them"
	}
	return "no engine may run any of its tasks"
}

func newGridClearCommand() *cobra.Command {
	var f gridFlags
	var engine string
	cmd := &cobra.Command{
		Use:   "clear ID",
		Short: "Give engines that a session excludes another chance",
		Long: `Give engines that a session excludes another chance. A session gives an engine
nothing more on which its tasks failed too often (failures_before_exclusion);
"reprise grid status" names them.`,
		Example: "  reprise grid clear risk-42\n  reprise grid clear risk-42 --engine node7",
		Args:    oneSession,
		RunE: f.one(func(cmd *cobra.Command, s *client.Session) error {
			state, err := s.ClearExclusions(cmd.Context(), engine)
			switch {
			case err != nil:
				return err
			case f.asJSON:
				return jsonLine(cmd.OutOrStdout(), state)
			}
			return showSession(cmd.OutOrStdout(), state)
		}),
	}
	f.register(cmd)
	cmd.Flags().StringVar(&engine, "engine", "", "only this one")
	complete(cmd, false, sessions)
	completeFlag(cmd, "engine", engines)
	return cmd
}
