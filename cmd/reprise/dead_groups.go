package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

var fingerprints = &noun[wire.DeadGroup]{
	single: "the fingerprint of a group", lister: "reprise dead groups",
	read: func(ctx context.Context, cl *client.Client, _ []string) iter.Seq2[wire.DeadGroup, error] {
		return cl.DeadGroups(ctx, client.GroupFilter{Muted: "any", PageSize: completionMost})
	},
	name: func(g *wire.DeadGroup) (string, string) {
		return g.Fingerprint, fmt.Sprintf("%d × %s", g.Count, diedOf(g))
	},

	none:  "nothing is dead",
	heads: []string{"FINGERPRINT", "JOBS", "LATEST", "LAST 24 H", "QUEUES", "DIED OF"},
	row: func(t *table, g *wire.DeadGroup) {
		queues := strings.Join(slices.Sorted(maps.Keys(g.Queues)), ",")
		t.row(g.Fingerprint, thousands(g.Count), ago(g.LastSeen), bars(g.Trend), clip(queues, 30), clip(diedOf(g), 60)+marks(g))
	},
}

func newDeadGroupsCommand() *cobra.Command {
	var filter client.GroupFilter
	var muted bool
	cmd := verb{
		use:   "groups",
		short: "Show what dead jobs died of, and how many of each",
		long: `Show what dead jobs died of, and how many of each: one line for each
fingerprint. The chart shows the deaths of the last 24 hours, a bar for each
hour.`,
		example: `  reprise dead groups
  reprise dead groups --queue mail --latest
  reprise dead groups --muted --json | jq -r .fingerprint`,
		json:  "print each group as a line of JSON",
		limit: 50,
		do: func(c *call) error {
			if filter.PageSize = c.perPage(); muted {
				filter.Muted = "any"
			}
			return fingerprints.list(c, c.cl.DeadGroups(c.Context(), filter))
		},
	}.command()
	flags := cmd.Flags()
	flags.StringSliceVarP(&filter.Queues, "queue", "q", nil, "only jobs of these queues")
	flags.BoolVar(&filter.ByLast, "latest", false, "latest death first, not most jobs first")
	flags.BoolVar(&muted, "muted", false, "muted groups too")
	completeFlag(cmd, "queue", queues)
	return cmd
}

func newDeadMarkCommand() *cobra.Command {
	var mute, pause bool
	var note string
	cmd := verb{
		use:   "mark FINGERPRINT",
		short: "Mute a group, pause its retries, or leave a note",
		long: `Mute a group, pause its retries, or leave a note.

  --mute   it is known: "dead groups" leaves it out
  --pause  jobs that fail of it are held instead of retried, and so are those
           whose retry falls due; --pause=false lets all of them go on
  --note   for people; an empty note removes it`,
		example: `  reprise dead mark ede865b8574a584a --pause --note "smtp is down, ticket 4711"
  reprise dead mark ede865b8574a584a --pause=false --note ""
  reprise dead mark ede865b8574a584a --mute`,
		args: []kind{fingerprints},
		json: "print what is decided about it as a line of JSON",
		do: func(c *call) error {
			var m wire.Mark
			if c.Flags().Changed("mute") {
				m.Muted = &mute
			}
			if c.Flags().Changed("pause") {
				m.Paused = &pause
			}
			if c.Flags().Changed("note") {
				m.Note = &note
			}
			if m == (wire.Mark{}) {
				return usagef("say what shall change: --mute, --pause or --note")
			}
			now, err := c.cl.Mark(c.Context(), c.args[0], m)
			return c.show(now, err, func(w io.Writer) error {
				fmt.Fprintf(w, "%s: muted %t, paused %t, note %q\n", now.Fingerprint, *now.Muted, *now.Paused, *now.Note)
				if _, err := c.cl.DeadGroup(c.Context(), c.args[0]); client.CodeOf(err) == wire.CodeNotFound {
					c.note("No dead job has this fingerprint%s; the mark is kept for later ones.", spell.Hint(c.args[0], known(c.Command, fingerprints, nil)))
				}
				return nil
			})
		},
	}.command()
	flags := cmd.Flags()
	flags.BoolVar(&mute, "mute", false, "leave it out of \"dead groups\"")
	flags.BoolVar(&pause, "pause", false, "hold its jobs instead of retrying them")
	flags.StringVar(&note, "note", "", "a note for people")
	return cmd
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
