package main

import (
	"fmt"
	"slices"

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
		return text + "; it is tried again " + ago(e.Until)
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
	var engine string
	cmd := onSession(verb{
		use:   "clear ID",
		short: "Give engines that a session excludes another chance",
		long: `Give engines that a session excludes another chance. A session gives an engine
nothing more on which its tasks failed too often (failures_before_exclusion);
"reprise grid status" names them.`,
		example: "  reprise grid clear risk-42\n  reprise grid clear risk-42 --engine node7",
	}, func(c *call, s *client.Session) (*wire.Session, error) { return s.ClearExclusions(c.Context(), engine) })
	cmd.Flags().StringVar(&engine, "engine", "", "only this one")
	completeFlag(cmd, "engine", engines)
	return cmd
}
