package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newDeadGroupsCommand() *cobra.Command {
	var conn connection
	var filter client.GroupFilter
	var muted, asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "Show what the dead died of, and how many of it",
		Long: `Show what the dead died of, and how many of it: one line a fingerprint. The
little chart is the deaths of the last 24 hours, an hour a bar.`,
		Example: `  reprise dead groups
  reprise dead groups --queue mail --latest
  reprise dead groups --muted --json | jq -r .fingerprint`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d: use 0 for all groups", limit)
			}
			if muted {
				filter.Muted = "any"
			}
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			return advise(deadGroups(cmd, cl, filter, limit, asJSON), cl)
		},
	}
	conn.register(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&filter.Queues, "queue", "q", nil, "only jobs of these queues")
	flags.BoolVar(&filter.ByLast, "latest", false, "latest death first, not most jobs first")
	flags.BoolVar(&muted, "muted", false, "muted groups too")
	flags.IntVarP(&limit, "limit", "n", 50, "at most so many; 0 for all")
	flags.BoolVar(&asJSON, "json", false, "print each group as a line of JSON")
	completeFlag(cmd, "queue", queues)
	return cmd
}

func deadGroups(cmd *cobra.Command, cl *client.Client, f client.GroupFilter, limit int, asJSON bool) error {
	out := cmd.OutOrStdout()
	if limit > 0 {
		f.PageSize = min(limit+1, wire.PageLimitMax)
	}
	rows := newTable(out)
	n, now := 0, time.Now()
	for g, err := range cl.DeadGroups(cmd.Context(), f) {
		if err != nil {
			return err
		}
		if limit > 0 && n == limit {
			defer fmt.Fprintf(cmd.ErrOrStderr(), "There are more than these %d; --limit shows more.\n", limit)
			break
		}
		n++
		if asJSON {
			if err := jsonLine(out, g); err != nil {
				return err
			}
			continue
		}
		if n == 1 {
			rows.heads("FINGERPRINT", "JOBS", "LATEST", "LAST 24 H", "QUEUES", "DIED OF")
		}
		queues := strings.Join(slices.Sorted(maps.Keys(g.Queues)), ",")
		rows.row(g.Fingerprint, thousands(g.Count), distance(time.UnixMilli(g.LastSeen), now), bars(g.Trend), clip(queues, 30), clip(diedOf(&g), 60)+marks(&g))
	}
	if err := rows.flush(); err != nil || asJSON {
		return err
	}
	if n == 0 {
		fmt.Fprintln(out, "nothing is dead")
	}
	return nil
}

// marks are what people said about a group.
func marks(g *wire.DeadGroup) string {
	text := ""
	if g.Paused {
		text += fmt.Sprintf(" [paused, %s held]", plural(int64(g.Held), "job"))
	}
	if g.Muted {
		text += " [muted]"
	}
	if g.Note != "" {
		text += " [" + clip(g.Note, 40) + "]"
	}
	return text
}

// bars draws numbers as bars, the highest full.
func bars(list []int64) string {
	const steps = "▁▂▃▄▅▆▇█"
	levels := []rune(steps)
	most := slices.Max(append([]int64{1}, list...))
	var b strings.Builder
	for _, n := range list {
		if n <= 0 {
			b.WriteRune('·')
			continue
		}
		b.WriteRune(levels[int(n*int64(len(levels)-1)/most)])
	}
	return b.String()
}
