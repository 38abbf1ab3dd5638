package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

func newQueueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Look at queues, change their settings, stop and protect them",
		Long: `Look at queues, and change what they do while they work: pause, hold, limits,
rates, circuit breakers, retry budgets, fair share. docs/protection.md explains
when to use which.`,
		Example: `  reprise queue list
  reprise queue show hooks
  reprise queue set hooks group_breaker=on rate=50
  reprise queue hold hooks --group example.com --for 10m`,
		Args: oneOfMine, RunE: showHelp,
	}
	cmd.AddCommand(newQueueListCommand(), newQueueShowCommand(), newQueueSetCommand(),
		newPauseCommand("pause", "Stop giving out jobs of a queue; those that run go on", true),
		newPauseCommand("resume", "Give out jobs of a queue again", false),
		newHoldCommand(), newReleaseCommand(), newBreakerCommand())
	return cmd
}

// queueCommand is a command about one queue, whose name is its first argument,
// and more arguments if it takes some.
func queueCommand(cmd *cobra.Command, more int, run func(cmd *cobra.Command, cl *client.Client, args []string) error) *cobra.Command {
	var conn connection
	conn.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || more >= 0 && len(args) != 1+more {
			return usagef("it is used as: %s", cmd.UseLine())
		}
		cl, err := conn.operator()
		if err != nil {
			return err
		}
		return advise(run(cmd, cl, args), cl)
	}
	complete(cmd, false, queues)
	return cmd
}

func newQueueListCommand() *cobra.Command {
	var conn connection
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the queues that hold jobs",
		Example: `  reprise queue list`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			names, err := cl.Queues(cmd.Context())
			if err != nil {
				return advise(err, cl)
			}
			out := cmd.OutOrStdout()
			t := newList(out, "no queue holds a job; \"reprise enqueue --queue NAME --type NAME\" puts one in", "QUEUE", "SCHEDULED", "READY", "IN FLIGHT", "DEAD", "IN/S", "DONE/S", "FAILED/S", "STATE")
			for _, name := range names {
				q, err := cl.Queue(cmd.Context(), name)
				if err != nil {
					return advise(err, cl)
				}
				if asJSON {
					if err := jsonLine(out, q); err != nil {
						return err
					}
					continue
				}
				count := func(n int64) string { return strconv.FormatInt(n, 10) }
				in, done, failed := "-", "-", "-"
				if r := q.Rates; r != nil {
					in, done, failed = rateWords(r.Enqueued), rateWords(r.Completed), rateWords(r.Failed)
				}
				t.row(name, count(q.Jobs.Scheduled), count(q.Jobs.Ready), count(q.Jobs.InFlight), count(q.Jobs.Dead), in, done, failed, queueState(q, time.Now()))
			}
			if asJSON {
				return nil
			}
			return t.flush()
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each queue as a line of JSON")
	return cmd
}

// queueState says in a few words what stops a queue.
func queueState(q *wire.Queue, now time.Time) string {
	var parts []string
	if q.Paused {
		parts = append(parts, "paused")
	}
	if q.HoldUntil > 0 {
		parts = append(parts, "held, "+distance(time.UnixMilli(q.HoldUntil), now))
	}
	if q.BreakerState != nil {
		parts = append(parts, breakerWords(q.BreakerState, now))
	}
	switch q.Session {
	case wire.SessionCancelling, wire.SessionCancelled, wire.SessionDone, wire.SessionErrors:
		parts = append(parts, "session "+strings.ReplaceAll(q.Session, "_", " "))
	}
	if parts == nil {
		return "works"
	}
	return strings.Join(parts, "; ")
}

func breakerWords(s *wire.BreakerState, now time.Time) string {
	text := "breaker " + strings.ReplaceAll(s.State, "_", " ")
	switch {
	case s.Forced:
		text += ", by an operator"
	case s.State == wire.BreakerOpen:
		text += ", probes " + distance(time.UnixMilli(s.Until), now)
	case s.Allowed > 0:
		text += fmt.Sprintf(", %d of %d run", s.Running, s.Allowed)
	}
	return text
}

// rateWords is a rate per second, with more digits the smaller it is.
func rateWords(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 1:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func newQueueShowCommand() *cobra.Command {
	var asJSON bool
	cmd := queueCommand(&cobra.Command{
		Use: "show NAME", Short: "Show a queue: depth, settings, and groups that are held or slowed down",
		Example: `  reprise queue show hooks
  reprise queue show hooks --json | jq .queue.breaker_state`,
	}, 0, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		q, err := cl.Queue(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		groups, err := cl.Asides(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if asJSON {
			return jsonLine(cmd.OutOrStdout(), map[string]any{"queue": q, "groups": groups})
		}
		if fresh := newcomer(cmd.Context(), cl, args[0]); fresh != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "queue %s%s; these are the settings that it has\n", printable(args[0]), fresh)
		}
		return showQueue(cmd.OutOrStdout(), q, groups, time.Now())
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON: {queue, groups}")
	return cmd
}

// atHead are the members that the head of the table tells.
var atHead = []string{"name", "jobs", "bytes", "paused", "hold_until", "breaker_state", "oldest_ready_at", "rates"}

func showQueue(out io.Writer, q *wire.Queue, groups []wire.Aside, now time.Time) error {
	t := newTable(out)
	t.row("queue", q.Name)
	t.row("state", queueState(q, now))
	t.row("jobs", fmt.Sprintf("%d scheduled, %d ready, %d in flight, %d completed, %d dead",
		q.Jobs.Scheduled, q.Jobs.Ready, q.Jobs.InFlight, q.Jobs.Completed, q.Jobs.Dead))
	if since := time.UnixMilli(q.OldestReadyAt); q.OldestReadyAt > 0 && now.Sub(since) >= time.Minute {
		t.row("oldest", "became ready "+distance(since, now))
	}
	if q.Rates != nil {
		t.row("rates", fmt.Sprintf("%s enqueued, %s taken, %s completed, %s failed per second, over %s",
			rateWords(q.Rates.Enqueued), rateWords(q.Rates.Taken), rateWords(q.Rates.Completed), rateWords(q.Rates.Failed),
			(time.Duration(q.Rates.WindowMS)*time.Millisecond).Round(time.Second)))
	}
	if err := t.flush(); err != nil {
		return err
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return err
	}
	var settings map[string]json.RawMessage
	if err := json.Unmarshal(raw, &settings); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nsettings")
	t = newTable(out)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := string(settings[name])
		if !slices.Contains(atHead, name) && !slices.Contains([]string{"0", "false", "{}"}, value) {
			t.row("  "+name, strings.Trim(value, `"`))
		}
	}
	if err := t.flush(); err != nil || len(groups) == 0 {
		return err
	}
	fmt.Fprintln(out, "\ngroups that are held or slowed down")
	t = newTable(out)
	for _, g := range groups {
		t.row("  "+g.Group, asideWords(g, now))
	}
	return t.flush()
}

func asideWords(g wire.Aside, now time.Time) string {
	var parts []string
	if g.HoldUntil > 0 {
		parts = append(parts, "held, "+distance(time.UnixMilli(g.HoldUntil), now))
	}
	if g.BreakerState != nil {
		parts = append(parts, breakerWords(g.BreakerState, now))
	}
	if g.RateUntil > 0 {
		parts = append(parts, "rate used up, "+distance(time.UnixMilli(g.RateUntil), now))
	}
	return strings.Join(parts, "; ")
}

func newQueueSetCommand() *cobra.Command {
	return queueCommand(&cobra.Command{
		Use: "set NAME SETTING=VALUE...", Short: "Change settings of a queue, at once and for waiting jobs too",
		Long: `Change settings of a queue, at once and for waiting jobs too.

A value is JSON, a word, or short for it: "off" is the default again, "on" a
breaker, retry_budget or fair_share with its defaults, and a number as rate or
group_rate is takes per second. "reprise queue show" lists the settings.`,
		Example: `  reprise queue set hooks group_breaker=on group_rate=20 retry_budget=on
  reprise queue set hooks 'breaker={"consecutive": 5, "open_for_ms": 10000}'
  reprise queue set hooks max_running=100 concurrency=5 paused=true
  reprise queue set hooks breaker=off`,
	}, -1, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		settings, err := settingsOf(args[1:])
		if err != nil {
			return err
		}
		fresh := newcomer(cmd.Context(), cl, args[0])
		q, err := cl.SetQueue(cmd.Context(), args[0], settings)
		if err != nil {
			return err
		}
		if fresh != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "queue %s is set%s\n", printable(args[0]), fresh)
		}
		return showQueue(cmd.OutOrStdout(), q, nil, time.Now())
	})
}

// settingsOf reads SETTING=VALUE.
func settingsOf(args []string) (map[string]any, error) {
	if len(args) == 0 {
		return nil, usagef("name what to change, such as rate=50")
	}
	settings := map[string]any{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usagef("%q is not of the form SETTING=VALUE", arg)
		}
		if _, twice := settings[name]; twice {
			return nil, usagef("%s is there twice", name)
		}
		settings[name] = settingOf(name, value)
	}
	return settings, nil
}

func settingOf(name, value string) any {
	number, notNumber := strconv.ParseFloat(value, 64)
	switch {
	case value == "off":
		return nil
	case value == "on":
		return struct{}{}
	case (name == "rate" || name == "group_rate") && notNumber == nil:
		return map[string]float64{"per_second": number}
	case json.Valid([]byte(value)):
		return json.RawMessage(value)
	}
	return value
}

func newPauseCommand(name, short string, paused bool) *cobra.Command {
	return queueCommand(&cobra.Command{Use: name + " NAME", Short: short, Example: "  reprise queue " + name + " hooks"}, 0, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		fresh := newcomer(cmd.Context(), cl, args[0])
		_, err := cl.SetQueue(cmd.Context(), args[0], map[string]any{"paused": paused})
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "queue %s is %sd%s\n", printable(args[0]), name, fresh)
		}
		return err
	})
}

// groupFlag is the flag --group of commands that act on a queue or on a group.
func groupFlag(cmd *cobra.Command, group *string) {
	cmd.Flags().StringVarP(group, "group", "g", "", "only this group of the queue")
	completeFlag(cmd, "group", queueGroups)
}

// whose names what such a command acted on.
func whose(queue, group string) string {
	if group == "" {
		return "queue " + printable(queue)
	}
	return "group " + printable(group) + " of queue " + printable(queue)
}

func newHoldCommand() *cobra.Command {
	var group string
	var asked time.Duration
	cmd := queueCommand(&cobra.Command{
		Use: "hold NAME --for SPAN", Short: "Keep a queue or a group out of line for a while",
		Long: `Keep a queue or a group out of line for a while. Its jobs spend no attempts. It
comes back by itself, up to a tenth later, so that not all who wait for one
target return at once; an hour is the longest. A longer hold stays.`,
		Example: `  reprise queue hold hooks --for 10m
  reprise queue hold hooks --group example.com --for 30s`,
	}, 0, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		if asked <= 0 {
			return usagef("--for is how long, such as 30s or 10m")
		}
		fresh := newcomer(cmd.Context(), cl, args[0])
		until, err := cl.Hold(cmd.Context(), args[0], group, asked)
		if err == nil {
			if now := time.Now(); until.Sub(now) < asked-asked/100 { // it only gets longer by jitter
				fresh = "; that is the longest hold, not the " + span(asked) + " that were asked for: \"reprise queue pause\" has no end" + fresh
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is held until %s%s\n", whose(args[0], group), moment(until.UnixMilli(), time.Now()), fresh)
		}
		return err
	})
	groupFlag(cmd, &group)
	spanVar(cmd.Flags(), &asked, "for", 0, "how long: 30s, 10m; at most 1h")
	return cmd
}

func newReleaseCommand() *cobra.Command {
	var group string
	cmd := queueCommand(&cobra.Command{
		Use: "release NAME", Short: "End the hold of a queue or a group",
		Example: `  reprise queue release hooks
  reprise queue release hooks --group example.com`,
	}, 0,
		func(cmd *cobra.Command, cl *client.Client, args []string) error {
			fresh := newcomer(cmd.Context(), cl, args[0])
			err := cl.Release(cmd.Context(), args[0], group)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is not held%s\n", whose(args[0], group), fresh)
			}
			return err
		})
	groupFlag(cmd, &group)
	return cmd
}

func newBreakerCommand() *cobra.Command {
	var group string
	cmd := queueCommand(&cobra.Command{
		Use: "breaker NAME open|closed|auto", Short: "Force the breaker of a queue or a group open or closed, or let it decide",
		Long: `Force the breaker of a queue or a group open or closed, whatever happens and
whether it has settings or not; auto lets it decide by itself again. One that
was open begins with a probe.`,
		Example: `  reprise queue breaker hooks open --group example.com
  reprise queue breaker hooks auto --group example.com`,
	}, 1, func(cmd *cobra.Command, cl *client.Client, args []string) error {
		if !slices.Contains([]string{wire.BreakerOpen, wire.BreakerClosed, wire.BreakerAuto}, args[1]) {
			return usagef("a breaker is open, closed or auto, not %q%s", args[1], spell.Hint(args[1], []string{wire.BreakerOpen, wire.BreakerClosed, wire.BreakerAuto}))
		}
		fresh := newcomer(cmd.Context(), cl, args[0])
		err := cl.ForceBreaker(cmd.Context(), args[0], group, args[1])
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "the breaker of %s is set to %s%s\n", whose(args[0], group), args[1], fresh)
		}
		return err
	})
	groupFlag(cmd, &group)
	complete(cmd, false, queues, oneOf(wire.BreakerOpen, wire.BreakerClosed, wire.BreakerAuto))
	return cmd
}

func newJobsExplainCommand() *cobra.Command {
	var conn connection
	var asJSON bool
	cmd := &cobra.Command{
		Use: "explain ID", Short: "Say why a job does not run",
		Long: `Say why a job does not run: paused, held, a breaker, behind the head of its
group, a limit, not due, no worker. For a job that waits for a retry also which
policy drew which wait.`,
		Example: `  reprise jobs explain 03gq0x7k2m4v9c1d8f5h6j0a1`,
		Args:    oneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			e, err := cl.Explain(cmd.Context(), args[0])
			switch {
			case err != nil:
				return advise(err, cl)
			case asJSON:
				return jsonLine(cmd.OutOrStdout(), e)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s\n", e.Status, printableLines(localTimes(strings.ReplaceAll(e.Text, "; ", "\n")), "  "))
			return nil
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	complete(cmd, false, jobIDs)
	return cmd
}
