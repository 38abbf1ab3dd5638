package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/wire"
)

func newCronCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "cron",
		Short: "Enqueue jobs at times of the day, the week, the month",
		Long: `Enqueue jobs at times of the day, the week, the month. A group holds entries;
an entry is a cron expression and the job that each of its ticks enqueues, once.
docs/cron.md explains expressions, time zones and missed ticks.`,
		Example: `  reprise cron preview '0 3 * * MON-FRI' --timezone Europe/Berlin
  reprise cron set nightly -f nightly.yaml
  reprise cron list
  reprise cron pause nightly report`,
	}, crons.listCommand(), newCronShowCommand(), newCronSetCommand(), newCronDeleteCommand(),
		newCronPauseCommand("pause", "Pause a group or an entry: its ticks enqueue nothing", true),
		newCronPauseCommand("resume", "Resume a group or an entry: its ticks enqueue again", false),
		newCronRunCommand(), newCronPreviewCommand())
}

var crons = &noun[wire.CronGroup]{
	single: "the name of a group", lister: "reprise cron list",
	read: byName((*client.Client).Crons, func(name string) wire.CronGroup { return wire.CronGroup{Name: name} }),
	name: func(g *wire.CronGroup) (string, string) { return g.Name, "" },
	get:  (*client.Client).Cron,

	none:  "no cron group; \"reprise cron set GROUP -f FILE\" makes one",
	heads: []string{"GROUP", "ENTRY", "EXPRESSION", "TIME ZONE", "NEXT", "STATE"},
	row: func(t *table, g *wire.CronGroup) {
		if len(g.Entries) == 0 {
			t.row(g.Name, "-", "-", orDash(g.Timezone), "-", cronState(g, nil))
		}
		for i := range g.Entries {
			e := &g.Entries[i]
			next := cmp.Or(at(e.NextEnqueueAt, time.Now()), "never")
			t.row(g.Name, e.Name, e.Expression, orDash(cmp.Or(e.Timezone, g.Timezone)), next, cronState(g, e))
		}
	},
	listed: verb{
		use: "list", short: "List all entries and when each enqueues next",
		example: "  reprise cron list",
		json:    "print each group with its entries as a line of JSON",
	},
}

// cronEntries are those of the group that is the first argument.
var cronEntries = &noun[wire.CronEntry]{
	lister: "reprise cron show NAME", within: true,
	read: func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[wire.CronEntry, error] {
		g, err := cl.Cron(ctx, args[0])
		if err != nil {
			return each[wire.CronEntry](nil, err)
		}
		return each(g.Entries, nil)
	},
	name: func(e *wire.CronEntry) (string, string) { return e.Name, e.Expression },
}

// onCron is a command about a group, or about the entry of it that a second argument
// names. did is what is said once it is done; "" = nothing.
func onCron(v verb, did string, group func(c *call, group string) error, entry func(c *call, group, entry string) error) *cobra.Command {
	v.args, v.optional = []kind{crons, cronEntries}, 1
	v.do = func(c *call) (err error) {
		what := "cron group " + c.args[0]
		if len(c.args) == 1 {
			err = group(c, c.args[0])
		} else {
			what = "cron entry " + c.args[1] + " of " + c.args[0]
			err = entry(c, c.args[0], c.args[1])
		}
		if did == "" {
			return err
		}
		return c.done(err, "%s is %s", what, did)
	}
	return v.command()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// cronState says in a few words whether an entry works; nil = there is none.
func cronState(g *wire.CronGroup, e *wire.CronEntry) string {
	switch {
	case g.Paused != nil && *g.Paused:
		return "group paused"
	case e == nil:
		return "no entries"
	case e.Paused != nil && *e.Paused:
		return "paused"
	case e.LastError != "":
		return "refused " + plural(int64(e.Failures), "time") + ": " + e.LastError
	}
	return "works"
}

func newCronShowCommand() *cobra.Command {
	return onCron(verb{
		use: "show GROUP [ENTRY]", short: "Show a group or an entry, as the API tells it",
		example: `  reprise cron show nightly
  reprise cron show nightly report | jq .next_enqueue_at`,
	}, "", func(c *call, group string) error {
		g, err := c.cl.Cron(c.Context(), group)
		return c.show(g, err, func(w io.Writer) error { return laidOut(w, g) })
	}, func(c *call, group, entry string) error {
		e, err := c.cl.CronEntry(c.Context(), group, entry)
		return c.show(e, err, func(w io.Writer) error { return laidOut(w, e) })
	})
}

func newCronSetCommand() *cobra.Command {
	var file string
	cmd := verb{
		use: "set GROUP -f FILE", short: "Set a group as a file says; entries that are not in the file are removed",
		long: `Set a group as a file says; entries that are not in the file are removed. The
file is YAML or JSON and has the body of PUT /crons/{group}: timezone, missed,
paused and entries, each with name, expression and job. - is standard input.

An entry whose expression and time zone are as before keeps its next tick.`,
		example: `  reprise cron set nightly -f nightly.yaml`,
		args:    []kind{crons},
		do: func(c *call) error {
			if file == "" {
				return usagef("name the file with -f")
			}
			g, err := readCron(file, c.InOrStdin())
			if err != nil {
				return err
			}
			now, err := c.cl.SetCron(c.Context(), c.args[0], g)
			if err == nil {
				c.say("cron group %s is set; entries: %d", c.args[0], len(now.Entries))
			}
			return err
		},
	}.command()
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the group, YAML or JSON; - is standard input")
	return cmd
}

func readCron(file string, stdin io.Reader) (g wire.CronGroup, err error) {
	text, called, err := readBody(file, stdin)
	if err != nil {
		return g, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&g); err != nil {
		return g, fmt.Errorf("%s: %s", called, strings.TrimPrefix(err.Error(), "json: "))
	}
	return g, nil
}

func newCronDeleteCommand() *cobra.Command {
	return onCron(verb{
		use: "delete GROUP [ENTRY]", short: "Delete a group with its entries, or one entry; what they enqueued stays",
		example: `  reprise cron delete nightly report`,
	}, "deleted", func(c *call, group string) error {
		return c.cl.DeleteCron(c.Context(), group)
	}, func(c *call, group, entry string) error {
		return c.cl.DeleteCronEntry(c.Context(), group, entry)
	})
}

func newCronPauseCommand(name, short string, paused bool) *cobra.Command {
	return onCron(verb{
		use: name + " GROUP [ENTRY]", short: short, example: "  reprise cron " + name + " nightly report",
	}, name+"d", func(c *call, group string) error {
		_, err := c.cl.PauseCron(c.Context(), group, paused)
		return err
	}, func(c *call, group, entry string) error {
		_, err := c.cl.PauseCronEntry(c.Context(), group, entry, paused)
		return err
	})
}

func newCronRunCommand() *cobra.Command {
	return verb{
		use: "run GROUP ENTRY", short: "Enqueue the job of an entry now, paused or not",
		example: "  reprise cron run nightly report",
		args:    []kind{crons, cronEntries},
		do: func(c *call) error {
			j, err := c.cl.RunCronEntry(c.Context(), c.args[0], c.args[1])
			if err == nil {
				c.say("%s is in queue %s (%s)", j.ID, j.Queue, j.Status)
			}
			return err
		},
	}.command()
}

func newCronPreviewCommand() *cobra.Command {
	var zone, from string
	var n int
	cmd := &cobra.Command{
		Use: "preview EXPRESSION", Short: "Print the next ticks of an expression; needs no server",
		Example: `  reprise cron preview '*/5 * * * *' --timezone Europe/Berlin
  reprise cron preview '30 2 * * *' --timezone Europe/Berlin --from 2026-03-28T00:00:00Z -n 3`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("it needs one expression in quotes, such as '*/5 * * * *'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 1 || n > 1000 {
				return usagef("-n must be from 1 to 1000")
			}
			e, err := cron.Parse(args[0])
			if err != nil {
				return usagef("the expression is refused: %w", err)
			}
			place, start := time.Local, time.Now()
			if zone != "" {
				if place, err = cron.Zone(zone); err != nil {
					return usagef("--timezone %w", err)
				}
			}
			if from != "" {
				if start, err = parseTime(from); err != nil {
					return usagef("--from: %w", err)
				}
			}
			ticks := e.In(place)
			at, ok := ticks.NextTime(start)
			if !ok {
				fmt.Fprintln(cmd.OutOrStdout(), "it never comes")
			}
			for i := 0; ok && i < n; i++ {
				fmt.Fprintln(cmd.OutOrStdout(), at.Format("Mon 2006-01-02 15:04:05 -07:00 MST"))
				at, ok = ticks.NextTime(at)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&zone, "timezone", "", "IANA time zone (default that of this machine)")
	flags.StringVar(&from, "from", "", "first moment to look from, as enqueue --at takes it (default now)")
	flags.IntVarP(&n, "count", "n", 5, "how many ticks")
	return cmd
}
