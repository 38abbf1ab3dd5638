package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

func newQueueCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "queue",
		Short: "Look at queues, change their settings, stop and protect them",
		Long: `Look at queues, and change what they do while they work: pause, hold, limits,
rates, circuit breakers, retry budgets, fair share. docs/protection.md explains
when to use which.`,
		Example: `  reprise queue list
  reprise queue show hooks
  reprise queue set hooks group_breaker=on rate=50
  reprise queue hold hooks --group example.com --for 10m`,
	}, queues.listCommand(), newQueueShowCommand(), newQueueSetCommand(),
		newPauseCommand("pause", "Stop giving out jobs of a queue; those that run go on", true),
		newPauseCommand("resume", "Give out jobs of a queue again", false),
		newHoldCommand(), newReleaseCommand(), newBreakerCommand())
}

var queues = &noun[wire.Queue]{
	single: "the name of a queue", lister: "reprise queue list",
	read: byName((*client.Client).Queues, func(name string) wire.Queue { return wire.Queue{Name: name} }),
	name: func(q *wire.Queue) (string, string) { return q.Name, "" },
	get:  (*client.Client).Queue,

	none:  "no queue holds a job; \"reprise enqueue --queue NAME --type NAME\" puts one in",
	heads: []string{"QUEUE", "SCHEDULED", "READY", "IN FLIGHT", "DEAD", "IN/S", "DONE/S", "FAILED/S", "STATE"},
	row: func(t *table, q *wire.Queue) {
		in, done, failed := "-", "-", "-"
		if r := q.Rates; r != nil {
			in, done, failed = rateWords(r.Enqueued), rateWords(r.Completed), rateWords(r.Failed)
		}
		n := &q.Jobs
		t.row(q.Name, whole(n.Scheduled), whole(n.Ready), whole(n.InFlight), whole(n.Dead), in, done, failed, queueState(q, time.Now()))
	},
	listed: verb{
		use: "list", short: "List the queues that hold jobs",
		example: `  reprise queue list`,
		json:    "print each queue as a line of JSON",
	},
}

// queueGroups are the groups of a queue that are held or slowed down.
var queueGroups = &noun[wire.Aside]{
	within: true,
	read: func(ctx context.Context, cl *client.Client, args []string) iter.Seq2[wire.Aside, error] {
		return each(cl.Asides(ctx, args[0]))
	},
	name: func(a *wire.Aside) (string, string) { return a.Group, "" },
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
	return verb{
		use: "show NAME", short: "Show a queue: depth, settings, and groups that are held or slowed down",
		example: `  reprise queue show hooks
  reprise queue show hooks --json | jq .queue.breaker_state`,
		args: []kind{queues},
		json: "print one line of JSON: {queue, groups}",
		do: func(c *call) error {
			name := c.args[0]
			q, err := c.cl.Queue(c.Context(), name)
			if err != nil {
				return err
			}
			groups, err := c.cl.Asides(c.Context(), name)
			return c.show(map[string]any{"queue": q, "groups": groups}, err, func(w io.Writer) error {
				if fresh := newcomer(c, name); fresh != "" {
					c.note("queue %s%s; these are the settings that it has", printable(name), fresh)
				}
				return showQueue(w, q, groups, time.Now())
			})
		},
	}.command()
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
	return verb{
		use: "set NAME SETTING=VALUE...", short: "Change settings of a queue, at once and for waiting jobs too",
		long: `Change settings of a queue, at once and for waiting jobs too.

Settings are written as below queues.NAME in the configuration file (see
docs/config.md), or as JSON: run_timeout=30s, max_bytes=1GiB, rate=50 jobs per
second, breaker=on with its defaults. "off" sets the default again.`,
		example: `  reprise queue set hooks group_breaker=on group_rate=20 retry_budget=on
  reprise queue set hooks 'breaker={"consecutive": 5, "open_for_ms": 10000}'
  reprise queue set hooks max_running=100 run_timeout=30s paused=true
  reprise queue set hooks breaker=off`,
		args: []kind{queues, words{}}, optional: 1, repeat: true,
		do: func(c *call) error {
			settings, err := settingsOf(c.args[1:])
			if err != nil {
				return err
			}
			fresh := newcomer(c, c.args[0])
			q, err := c.cl.SetQueue(c.Context(), c.args[0], settings)
			if err != nil {
				return err
			}
			if fresh != "" {
				c.note("queue %s is set%s", printable(c.args[0]), fresh)
			}
			return showQueue(c.OutOrStdout(), q, nil, time.Now())
		},
	}.command()
}

// settingsOf reads SETTING=VALUE.
func settingsOf(args []string) (map[string]any, error) {
	if len(args) == 0 {
		return nil, usagef("name what to change, such as rate=50")
	}
	given := map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usagef("%q is not of the form SETTING=VALUE", arg)
		}
		if _, twice := given[name]; twice {
			return nil, usagef("%s is there twice", name)
		}
		given[name] = value
	}
	settings, err := config.ReadQueueSettings(given)
	if err != nil {
		return nil, usagef("%s", err)
	}
	return settings, nil
}

// newcomer says of a queue that holds no job yet that it does not, and which one
// may have been meant, "" if it does. It is asked before the queue is changed.
func newcomer(c *call, queue string) string {
	names, err := c.cl.Queues(c.Context())
	if err != nil || slices.Contains(names, queue) {
		return ""
	}
	return ": no job has been in it yet" + spell.Hint(queue, names)
}

// changeQueue is a command that changes a queue or a group of it. act answers with how it
// is then; that no job has been in the queue yet is added.
func changeQueue(v verb, act func(c *call, queue string) (is string, err error)) *cobra.Command {
	if v.args == nil {
		v.args = []kind{queues}
	}
	v.do = func(c *call) error {
		fresh := newcomer(c, c.args[0])
		is, err := act(c, c.args[0])
		return c.done(err, "%s", is+fresh)
	}
	return v.command()
}

func newPauseCommand(name, short string, paused bool) *cobra.Command {
	return changeQueue(verb{
		use: name + " NAME", short: short, example: "  reprise queue " + name + " hooks",
	}, func(c *call, queue string) (string, error) {
		_, err := c.cl.SetQueue(c.Context(), queue, map[string]any{"paused": paused})
		return "queue " + queue + " is " + name + "d", err
	})
}

// groupFlag is the flag --group of commands that act on a queue or on a group.
func groupFlag(cmd *cobra.Command, group *string) *cobra.Command {
	cmd.Flags().StringVarP(group, "group", "g", "", "only this group of the queue")
	completeFlag(cmd, "group", queueGroups)
	return cmd
}

// whose names what such a command acted on.
func whose(queue, group string) string {
	if group == "" {
		return "queue " + queue
	}
	return "group " + group + " of queue " + queue
}

func newHoldCommand() *cobra.Command {
	var group string
	var asked time.Duration
	cmd := changeQueue(verb{
		use: "hold NAME --for SPAN", short: "Hold a queue or a group: for a while none of its jobs is given out",
		long: `Hold a queue or a group: for a while none of its jobs is given out, and they use
up no attempts. The hold ends by itself, up to a tenth of its span later, so
that not all who wait for one target return at once. The longest hold is an
hour. A hold that is there already and ends later stays as it is.`,
		example: `  reprise queue hold hooks --for 10m
  reprise queue hold hooks --group example.com --for 30s`,
	}, func(c *call, queue string) (string, error) {
		if asked <= 0 {
			return "", usagef("--for is how long, such as 30s or 10m")
		}
		until, err := c.cl.Hold(c.Context(), queue, group, asked)
		is := whose(queue, group) + " is held until " + moment(until.UnixMilli(), time.Now())
		if time.Until(until) < asked-asked/100 { // it only gets longer by jitter
			is += "; that is the longest hold, not the " + span(asked) + " that were asked for: \"reprise queue pause\" has no end"
		}
		return is, err
	})
	spanVar(cmd.Flags(), &asked, "for", 0, "how long: 30s, 10m; at most 1h")
	return groupFlag(cmd, &group)
}

func newReleaseCommand() *cobra.Command {
	var group string
	return groupFlag(changeQueue(verb{
		use: "release NAME", short: "End the hold of a queue or a group",
		example: `  reprise queue release hooks
  reprise queue release hooks --group example.com`,
	}, func(c *call, queue string) (string, error) {
		return whose(queue, group) + " is not held", c.cl.Release(c.Context(), queue, group)
	}), &group)
}

func newBreakerCommand() *cobra.Command {
	var group string
	states := words{wire.BreakerOpen, wire.BreakerClosed, wire.BreakerAuto}
	return groupFlag(changeQueue(verb{
		use: "breaker NAME open|closed|auto", short: "Force the breaker of a queue or a group open or closed, or let it decide",
		long: `Force the breaker of a queue or a group open or closed, whatever happens and
whether it has settings or not; auto lets it decide by itself again. A
breaker that was open begins with a probe.`,
		example: `  reprise queue breaker hooks open --group example.com
  reprise queue breaker hooks auto --group example.com`,
		args: []kind{queues, states},
	}, func(c *call, queue string) (string, error) {
		state := c.args[1]
		if !slices.Contains(states, state) {
			return "", usagef("a breaker is open, closed or auto, not %q%s", state, spell.Hint(state, states))
		}
		return "the breaker of " + whose(queue, group) + " is set to " + state, c.cl.ForceBreaker(c.Context(), queue, group, state)
	}), &group)
}
