package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newBudgetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "budgets", Aliases: []string{"budget"},
		Short: "Bound what jobs of any queue use together",
		Long: `Look at budgets and change them. A budget bounds what jobs use together,
whatever their queues: so many units at once, or so many in a span of time.
Jobs are bound to budgets when they are enqueued; one that lacks units waits,
and others pass.`,
		Example: `  reprise budgets set gpu --allocation 2
  reprise budgets set api --allocation 100 --per 1m --burst 20
  reprise enqueue --queue video --type render --budget gpu --budget api=5
  reprise budgets list
  reprise jobs list --budget gpu`,
		Args: oneOfMine, RunE: showHelp,
	}
	cmd.AddCommand(newBudgetsListCommand(), newBudgetsShowCommand(), newBudgetsSetCommand(), newBudgetsDeleteCommand())
	return cmd
}

// budgetCommand is a command about one budget, or with no key about all.
func budgetCommand(cmd *cobra.Command, keys int, run func(cmd *cobra.Command, cl *client.Client, key string) error) *cobra.Command {
	var conn connection
	conn.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != keys {
			return usagef("it is used as: %s", cmd.UseLine())
		}
		cl, err := conn.operator()
		if err != nil {
			return err
		}
		key := ""
		if keys > 0 {
			key = args[0]
		}
		return advise(run(cmd, cl, key), cl)
	}
	complete(cmd, false, []kind{budgets}[:keys]...)
	return cmd
}

func newBudgetsListCommand() *cobra.Command {
	var asJSON bool
	cmd := budgetCommand(&cobra.Command{
		Use: "list", Short: "List all budgets and how they are used",
		Example: `  reprise budgets list
  reprise budgets list --json | jq -r 'select(.waiting) | .key'`,
	}, 0, func(cmd *cobra.Command, cl *client.Client, _ string) error {
		list, err := cl.Budgets(cmd.Context())
		if err != nil {
			return err
		}
		t := newTable(cmd.OutOrStdout(), "BUDGET", "BOUND", "IN FLIGHT", "AVAILABLE", "JOBS", "WAITING")
		for i := range list {
			b := &list[i]
			if asJSON {
				if err := jsonLine(cmd.OutOrStdout(), b); err != nil {
					return err
				}
				continue
			}
			t.row(b.Key, bound(&b.Budget), thousands(b.InFlight), thousands(b.Available), thousands(b.Jobs), yes(b.Waiting))
		}
		switch {
		case asJSON:
			return nil
		case len(list) == 0:
			fmt.Fprintln(cmd.OutOrStdout(), "no budgets; \"reprise budgets set KEY --allocation N\" makes one")
			return nil
		}
		return t.flush()
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each budget as a line of JSON")
	return cmd
}

func newBudgetsShowCommand() *cobra.Command {
	var asJSON bool
	cmd := budgetCommand(&cobra.Command{
		Use: "show KEY", Short: "Show one budget and how it is used",
		Example: "  reprise budgets show gpu",
	}, 1, func(cmd *cobra.Command, cl *client.Client, key string) error {
		b, err := cl.Budget(cmd.Context(), key)
		if err != nil {
			return err
		}
		if asJSON {
			return jsonLine(cmd.OutOrStdout(), b)
		}
		now := time.Now()
		t := newTable(cmd.OutOrStdout())
		t.row("budget", b.Key)
		t.row("bound", bound(&b.Budget))
		t.row("in flight", plural(b.InFlight, "unit"))
		t.row("available", plural(b.Available, "unit"))
		t.row("jobs", thousands(b.Jobs)+" bound to it and not completed")
		if b.Waiting {
			t.row("waiting", "jobs wait for units; \"reprise jobs explain ID\" tells of one")
		}
		t.row("made", moment(b.CreatedAt, now))
		t.row("changed", moment(b.UpdatedAt, now))
		return t.flush()
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the budget as a line of JSON")
	return cmd
}

func newBudgetsSetCommand() *cobra.Command {
	var units, burst int64
	var per time.Duration
	var asJSON bool
	cmd := budgetCommand(&cobra.Command{
		Use: "set KEY --allocation N", Short: "Make a budget, or replace what bounds it",
		Long: `Make a budget, or replace what bounds it. That holds at once; what runs goes on.

Without --per the units are out at the same time: a run takes them and gives
them back when it ends. With --per so many units come in that span,
continuously, and do not come back; after a pause up to --burst have gathered.`,
		Example: `  reprise budgets set gpu --allocation 2
  reprise budgets set api --allocation 100 --per 1m --burst 20`,
	}, 1, func(cmd *cobra.Command, cl *client.Client, key string) error {
		flags := cmd.Flags()
		switch {
		case !flags.Changed("allocation"):
			return usagef("--allocation is missing: how many units are there?")
		case flags.Changed("per") && per < time.Millisecond:
			return usagef("--per %s: the units come in at least a millisecond", per)
		case flags.Changed("burst") && per == 0:
			return usagef("--burst needs --per: units that are out at once do not gather")
		}
		ask := client.AtOnce(units)
		if per > 0 {
			ask = client.Per(units, per)
			ask.Strategy.Burst = burst
		}
		b, err := cl.SetBudget(cmd.Context(), key, ask)
		if err != nil {
			return err
		}
		if asJSON {
			return jsonLine(cmd.OutOrStdout(), b)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "budget %s is %s\n", printable(b.Key), bound(&b.Budget))
		return nil
	})
	flags := cmd.Flags()
	flags.Int64Var(&units, "allocation", 0, "units there are (required)")
	spanVar(flags, &per, "per", 0, "span in which they come, such as 1m; without it they are out at once")
	flags.Int64Var(&burst, "burst", 0, "units that gather at most (default: the allocation)")
	flags.BoolVar(&asJSON, "json", false, "print the budget as a line of JSON")
	return cmd
}

func newBudgetsDeleteCommand() *cobra.Command {
	return budgetCommand(&cobra.Command{
		Use: "delete KEY", Short: "Delete a budget that no job is bound to",
		Example: "  reprise budgets delete gpu",
	}, 1, func(cmd *cobra.Command, cl *client.Client, key string) error {
		err := cl.DeleteBudget(cmd.Context(), key)
		if client.CodeOf(err) == wire.CodeExists {
			return fmt.Errorf("%w\n\"reprise jobs list --budget %s\" shows them", err, key)
		}
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "budget %s is deleted\n", printable(key))
		}
		return err
	})
}

// bound says in words what a budget allows.
func bound(b *wire.Budget) string {
	if b.Strategy.Type != wire.BudgetTimeBased {
		return thousands(b.Allocation) + " at once"
	}
	text := thousands(b.Allocation) + " in " + span(time.Duration(b.Strategy.DurationMS)*time.Millisecond)
	if b.Strategy.Burst > 0 {
		text += ", up to " + thousands(b.Strategy.Burst) + " gather"
	}
	return text
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// budgetsOf tells what a run of the job uses.
func budgetsOf(j *wire.Job) string {
	var list []string
	for _, b := range j.Budgets {
		list = append(list, b.Key+"="+strconv.FormatInt(b.Cost, 10))
	}
	return strings.Join(list, ", ")
}

// bind reads the budgets of a new job.
func (f *enqueueFlags) bind() error {
	for _, text := range f.budgets {
		b := wire.Binding{Key: text}
		if at := strings.LastIndexByte(text, '='); at >= 0 {
			cost, err := strconv.ParseInt(text[at+1:], 10, 64)
			if err != nil || cost < 1 {
				return usagef("--budget %q: the cost is a whole number from 1 on, as in --budget gpu=2", text)
			}
			b = wire.Binding{Key: text[:at], Cost: cost}
		}
		if b.Key == "" {
			return usagef("--budget %q names no budget", text)
		}
		f.job.Budgets = append(f.job.Budgets, b)
	}
	return nil
}
