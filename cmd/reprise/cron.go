package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/server"
	"github.com/reprisehq/reprise/wire"
)

func newCronCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cron",
		Short: "Enqueue jobs at times of the day, the week, the month",
		Long: `Enqueue jobs at times of the day, the week, the month. A group holds entries;
an entry is a cron expression and the job that each of its ticks enqueues, once.
docs/cron.md explains expressions, time zones and missed ticks.`,
		Example: `  reprise cron preview '0 3 * * MON-FRI' --timezone Europe/Berlin
  reprise cron set nightly -f nightly.yaml
  reprise cron list
  reprise cron pause nightly report`,
		Args: oneOfMine, RunE: showHelp,
	}
	cmd.AddCommand(newCronListCommand(), newCronShowCommand(), newCronSetCommand(), newCronDeleteCommand(),
		newCronPauseCommand("pause", "Pass over the ticks of a group or an entry", true),
		newCronPauseCommand("resume", "Enqueue at the ticks of a group or an entry again", false),
		newCronRunCommand(), newCronPreviewCommand())
	return cmd
}

// cronCommand is a command about a group, or an entry of it: from least to 2 names.
func cronCommand(cmd *cobra.Command, least, most int, run func(cmd *cobra.Command, cl *client.Client, args []string) error) *cobra.Command {
	var conn connection
	conn.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("it is used as: %s", cmd.UseLine())
		}
		cl, err := conn.operator()
		if err != nil {
			return err
		}
		return advise(run(cmd, cl, args), cl)
	}
	complete(cmd, false, []kind{crons, cronEntries}[:most]...)
	return cmd
}

// cronName names a group or an entry for people.
func cronName(args []string) string {
	if len(args) == 1 {
		return "cron group " + printable(args[0])
	}
	return "cron entry " + printable(args[1]) + " of " + printable(args[0])
}

func newCronListCommand() *cobra.Command {
	var asJSON bool
	cmd := cronCommand(&cobra.Command{
		Use: "list", Short: "List all entries and when they come next",
		Example: "  reprise cron list",
	}, 0, 0, func(cmd *cobra.Command, cl *client.Client, _ []string) error {
		groups, err := cl.Crons(cmd.Context())
		if err != nil {
			return err
		}
		t := newList(cmd.OutOrStdout(), "no cron group; \"reprise cron set GROUP -f FILE\" makes one", "GROUP", "ENTRY", "EXPRESSION", "TIME ZONE", "NEXT", "STATE")
		now := time.Now()
		for _, name := range groups {
			g, err := cl.Cron(cmd.Context(), name)
			if err != nil {
				return err
			}
			if asJSON {
				if err := jsonLine(cmd.OutOrStdout(), g); err != nil {
					return err
				}
				continue
			}
			if len(g.Entries) == 0 {
				t.row(name, "-", "-", orDash(g.Timezone), "-", cronState(g, nil))
			}
			for i := range g.Entries {
				e := &g.Entries[i]
				next := "never"
				if e.NextEnqueueAt != 0 {
					next = moment(e.NextEnqueueAt, now)
				}
				zone := e.Timezone
				if zone == "" {
					zone = g.Timezone
				}
				t.row(name, e.Name, e.Expression, orDash(zone), next, cronState(g, e))
			}
		}
		if asJSON {
			return nil
		}
		return t.flush()
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each group with its entries as a line of JSON")
	return cmd
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
	return cronCommand(&cobra.Command{
		Use: "show GROUP [ENTRY]", Short: "Show a group or an entry, as the API tells it",
		Example: `  reprise cron show nightly
  reprise cron show nightly report | jq .next_enqueue_at`,
	}, 1, 2, func(cmd *cobra.Command, cl *client.Client, args []string) (err error) {
		var shown any
		if len(args) == 1 {
			shown, err = cl.Cron(cmd.Context(), args[0])
		} else {
			shown, err = cl.CronEntry(cmd.Context(), args[0], args[1])
		}
		if err != nil {
			return err
		}
		raw, err := json.Marshal(shown)
		if err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), indented(raw))
		}
		return err
	})
}

func newCronSetCommand() *cobra.Command {
	var file string
	cmd := cronCommand(&cobra.Command{
		Use: "set GROUP -f FILE", Short: "Make a group what a file says; entries that are not in it leave",
		Long: `Make a group what a file says; entries that are not in it leave. The file is
YAML or JSON and has the body of PUT /crons/{group}: timezone, missed, paused
and entries, each with name, expression and job. - is standard input.

An entry whose expression and time zone are as before keeps its next tick.`,
		Example: `  reprise cron set nightly -f nightly.yaml`,
	}, 1, 1, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		if file == "" {
			return usagef("name the file with -f")
		}
		g, err := readCron(file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		now, err := cl.SetCron(cmd.Context(), args[0], g)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "cron group %s is set; entries: %d\n", printable(args[0]), len(now.Entries))
		}
		return err
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the group, YAML or JSON; - is standard input")
	return cmd
}

func readCron(file string, stdin io.Reader) (g wire.CronGroup, err error) {
	var text []byte
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err == nil {
		text, err = server.ReadCron(file, text)
	}
	if err != nil {
		return g, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&g); err != nil {
		return g, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "json: "))
	}
	return g, nil
}

func newCronDeleteCommand() *cobra.Command {
	return cronCommand(&cobra.Command{
		Use: "delete GROUP [ENTRY]", Short: "Delete a group with its entries, or one entry; what they enqueued stays",
		Example: `  reprise cron delete nightly report`,
	}, 1, 2, func(cmd *cobra.Command, cl *client.Client, args []string) (err error) {
		if len(args) == 1 {
			err = cl.DeleteCron(cmd.Context(), args[0])
		} else {
			err = cl.DeleteCronEntry(cmd.Context(), args[0], args[1])
		}
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s is deleted\n", cronName(args))
		}
		return err
	})
}

func newCronPauseCommand(name, short string, paused bool) *cobra.Command {
	return cronCommand(&cobra.Command{
		Use: name + " GROUP [ENTRY]", Short: short, Example: "  reprise cron " + name + " nightly report",
	}, 1, 2, func(cmd *cobra.Command, cl *client.Client, args []string) (err error) {
		if len(args) == 1 {
			_, err = cl.PauseCron(cmd.Context(), args[0], paused)
		} else {
			_, err = cl.PauseCronEntry(cmd.Context(), args[0], args[1], paused)
		}
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s is %sd\n", cronName(args), name)
		}
		return err
	})
}

func newCronRunCommand() *cobra.Command {
	return cronCommand(&cobra.Command{
		Use: "run GROUP ENTRY", Short: "Enqueue the job of an entry now, paused or not",
		Example: "  reprise cron run nightly report",
	}, 2, 2, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		j, err := cl.RunCronEntry(cmd.Context(), args[0], args[1])
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s is in queue %s (%s)\n", j.ID, printable(j.Queue), j.Status)
		}
		return err
	})
}

func newCronPreviewCommand() *cobra.Command {
	var zone, from string
	var n int
	cmd := &cobra.Command{
		Use: "preview EXPRESSION", Short: "Print the next ticks of an expression; needs no server",
		Example: `  reprise cron preview '*/5 * * * *' --timezone Europe/Berlin
  reprise cron preview '30 2 * * *' --timezone Europe/Berlin --from 2026-03-28T00:00:00Z -n 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("it needs one expression in quotes, such as '*/5 * * * *'")
			}
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
