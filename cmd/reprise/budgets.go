package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newBudgetsCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "budgets", Aliases: []string{"budget"},
		Short: "Limit what jobs of any queue use together",
		Long: `Look at budgets and change them. A budget limits what jobs use together,
whatever their queues: so many units at once, or so many in a span of time.
Jobs are bound to budgets when they are enqueued. A job whose budget has too few
units waits, and others run before it.`,
		Example: `  reprise budgets set gpu --allocation 2
  reprise budgets set api --allocation 100 --per 1m --burst 20
  reprise enqueue --queue video --type render --budget gpu --budget api=5
  reprise budgets list
  reprise jobs list --budget gpu`,
	}, budgets.listCommand(), newBudgetsShowCommand(), newBudgetsSetCommand(), newBudgetsDeleteCommand())
}

var budgets = &noun[wire.BudgetState]{
	single: "the key of a budget", lister: "reprise budgets list",
	read: all((*client.Client).Budgets),
	name: func(b *wire.BudgetState) (string, string) { return b.Key, bound(&b.Budget) },

	none:  "no budgets; \"reprise budgets set KEY --allocation N\" makes one",
	heads: []string{"BUDGET", "BOUND", "IN FLIGHT", "AVAILABLE", "JOBS", "WAITING"},
	row: func(t *table, b *wire.BudgetState) {
		t.row(b.Key, bound(&b.Budget), thousands(b.InFlight), thousands(b.Available), thousands(b.Jobs), yes(b.Waiting))
	},
	listed: verb{
		use: "list", short: "List all budgets and how they are used",
		example: `  reprise budgets list
  reprise budgets list --json | jq -r 'select(.waiting) | .key'`,
		json: "print each budget as a line of JSON",
	},
}

func newBudgetsShowCommand() *cobra.Command {
	return verb{
		use: "show KEY", short: "Show one budget and how it is used",
		example: "  reprise budgets show gpu",
		args:    []kind{budgets},
		json:    "print the budget as a line of JSON",
		do: func(c *call) error {
			b, err := c.cl.Budget(c.Context(), c.args[0])
			return c.show(b, err, func(w io.Writer) error { return showBudget(w, b, time.Now()) })
		},
	}.command()
}

func showBudget(w io.Writer, b *wire.BudgetState, now time.Time) error {
	t := newTable(w)
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
}

func newBudgetsSetCommand() *cobra.Command {
	var units, burst int64
	var per time.Duration
	cmd := verb{
		use: "set KEY --allocation N", short: "Make a budget, or replace its limit",
		long: `Make a budget, or replace its limit. The limit holds at once; what runs goes on.

Without --per the units are lent: a run takes them and gives them back when it
ends. With --per they are a rate: so many units are added in that span,
continuously, and a run uses them up; in a pause up to --burst units gather.`,
		example: `  reprise budgets set gpu --allocation 2
  reprise budgets set api --allocation 100 --per 1m --burst 20`,
		args: []kind{budgets},
		json: "print the budget as a line of JSON",
		do: func(c *call) error {
			flags := c.Flags()
			switch {
			case !flags.Changed("allocation"):
				return usagef("--allocation is missing: how many units are there?")
			case flags.Changed("per") && per < time.Millisecond:
				return usagef("--per %s: the span must be at least a millisecond", per)
			case flags.Changed("burst") && per == 0:
				return usagef("--burst needs --per: only the units of a rate gather")
			}
			ask := client.AtOnce(units)
			if per > 0 {
				ask = client.Per(units, per)
				ask.Strategy.Burst = burst
			}
			b, err := c.cl.SetBudget(c.Context(), c.args[0], ask)
			if err != nil {
				return err
			}
			return c.answer(b, "budget %s is %s", b.Key, bound(&b.Budget))
		},
	}.command()
	flags := cmd.Flags()
	flags.Int64Var(&units, "allocation", 0, "units of the budget (required)")
	spanVar(flags, &per, "per", 0, "span in which they are added, such as 1m; without it they are lent")
	flags.Int64Var(&burst, "burst", 0, "most units that gather (default: the allocation)")
	return cmd
}

func newBudgetsDeleteCommand() *cobra.Command {
	return verb{
		use: "delete KEY", short: "Delete a budget that no job is bound to",
		example: "  reprise budgets delete gpu",
		args:    []kind{budgets},
		do: func(c *call) error {
			key := c.args[0]
			err := c.cl.DeleteBudget(c.Context(), key)
			if client.CodeOf(err) == wire.CodeExists {
				return fmt.Errorf("%w\n\"reprise jobs list --budget %s\" shows them", err, key)
			}
			return c.done(err, "budget %s is deleted", key)
		},
	}.command()
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
