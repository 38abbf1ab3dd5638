package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newGridCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "grid",
		Short: "Compute with sessions of tasks on engines",
		Long: `Compute with sessions of tasks on engines. A session is what one program wants
computed: tasks, options such as max_retries and task_max_time, and a share of
the engines. Engines are started with "reprise engine".

What retries and reschedules are, and every option, is in docs/grid.md.`,
		Example: `  reprise engine --slots 4 --exec ./square &
  seq 1000 | reprise grid submit --session squares --wait
  reprise grid results squares`,
	}, newGridSubmitCommand(), newGridStatusCommand(), newGridResultsCommand(), newGridSetCommand(), newGridCancelCommand(),
		sessions.listCommand(), engines.listCommand(), newGridDrainCommand(), newGridSimulateCommand(),
		newGridTaskCommand(), newGridTryCommitCommand(), newGridClearCommand())
}

var sessions = &noun[wire.Session]{
	single: "the id of a session", lister: "reprise grid sessions",
	read: all((*client.Client).Sessions),
	name: func(s *wire.Session) (string, string) { return s.ID, s.State },

	none:  "no session; \"reprise grid submit\" opens one",
	heads: []string{"SESSION", "STATE", "SHARE", "SUBMITTED", "WAITING", "ACTIVE", "COMPLETED", "FAILED", "CANCELLED"},
	row: func(t *table, s *wire.Session) {
		n := &s.Tasks
		t.row(s.ID, s.State, thousands(int64(s.Share)), thousands(n.Submitted), thousands(n.Waiting), thousands(n.Active),
			thousands(n.Completed), thousands(n.Failed), thousands(n.Cancelled))
	},
	listed: verb{
		use: "sessions", short: "List sessions",
		example: "  reprise grid sessions\n  reprise grid sessions --json | jq .id",
		json:    "print JSON",
	},
}

var engines = &noun[wire.Engine]{
	single: "the id of an engine", lister: "reprise grid engines",
	read: all((*client.Client).Engines),
	name: func(e *wire.Engine) (string, string) { return e.ID, e.State + " on " + e.Host },

	none:  "no engine is logged in; \"reprise engine --slots N --exec COMMAND\" is one",
	heads: []string{"ENGINE", "HOST", "STATE", "RUNNING", "SLOTS", "HEARD", "PROPERTIES"},
	row: func(t *table, e *wire.Engine) {
		t.row(e.ID, e.Host, e.State, thousands(int64(e.Running)), thousands(int64(e.Slots)), ago(e.HeardAt), clip(pairs(e.Properties, " "), 60))
	},
	listed: verb{
		use: "engines", short: "List engines",
		example: "  reprise grid engines\n  reprise grid engines --json | jq 'select(.state == \"suspect\")'",
		json:    "print JSON",
	},
}

// onSession is a command about one session. act answers with how the session is then,
// which is printed; nil = there is nothing to print.
func onSession(v verb, act func(c *call, s *client.Session) (*wire.Session, error)) *cobra.Command {
	v.args, v.json, v.options = []kind{sessions}, "print JSON", once
	v.do = func(c *call) error {
		state, err := act(c, c.cl.Session(c.args[0]))
		if state == nil {
			return err
		}
		return c.show(state, err, func(w io.Writer) error { return showSession(w, state) })
	}
	return v.command()
}

// readOptions reads NAME=VALUE: a value that is JSON counts as that, any other
// as a text.
func readOptions(list []string) (map[string]any, error) {
	out := map[string]any{}
	values, err := namedValues("option", list)
	for name, value := range values {
		if out[name] = any(value); json.Valid([]byte(value)) {
			out[name] = json.RawMessage(value)
		}
	}
	return out, err
}

func newGridStatusCommand() *cobra.Command {
	var watches bool
	cmd := onSession(verb{
		use:     "status ID",
		short:   "Show how far a session is, its options, and who chose each",
		example: "  reprise grid status risk-42\n  reprise grid status risk-42 --watch",
	}, func(c *call, s *client.Session) (*wire.Session, error) {
		state, err := s.State(c.Context())
		if err == nil && watches {
			return watchSession(c, state)
		}
		return state, err
	})
	cmd.Flags().BoolVar(&watches, "watch", false, "show how it goes on until the session is over")
	return cmd
}

// showSession writes a session for people: options only where somebody chose
// them.
func showSession(w io.Writer, s *wire.Session) error {
	t := newTable(w)
	t.row("session", s.ID)
	t.row("state", s.State+map[bool]string{true: " (suspended)"}[s.Suspended])
	t.tell("why", s.Why)
	n := &s.Tasks
	t.row("tasks", fmt.Sprintf("%s submitted: %s waiting, %s active, %s completed, %s failed, %s cancelled", thousands(n.Submitted),
		thousands(n.Waiting), thousands(n.Active), thousands(n.Completed), thousands(n.Failed), thousands(n.Cancelled)))
	if !s.Ended() {
		t.row("share", plural(int64(s.Share), "slot"))
	}
	if s.Stalled {
		t.row("stalled", stalledText(s))
	}
	for _, e := range s.Excluded {
		t.row("excluded", excludedText(&e))
	}
	if s.ClientUntil > 0 {
		t.row("client", "if nothing is heard of it, the session is cancelled "+ago(s.ClientUntil))
	}
	t.row("profile", s.Profile)
	t.tell("service", s.Service)
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		if o := s.Options[name]; o.From != "profile" {
			t.row("  "+name, strings.Trim(string(o.Value), `"`)+" ("+o.From+")")
		}
	}
	return t.flush()
}

// watchSession shows a session until it is over, or until it is interrupted, which
// leaves the session alone. It outlives a restart of the server.
func watchSession(c *call, state *wire.Session) (*wire.Session, error) {
	cl, err := c.conn.operator(client.Options{})
	if err != nil {
		return state, err
	}
	s := cl.Session(state.ID)
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	at := finished(state)
	bar := func(now *wire.Session, took time.Duration) string { return sessionBar(now, finished(now)-at, took) }
	return follow(ctx, c.ErrOrStderr(), state, (*wire.Session).Ended, bar, func() (*wire.Session, error) { return s.State(ctx) })
}

func finished(s *wire.Session) int64 { return s.Tasks.Completed + s.Tasks.Failed + s.Tasks.Cancelled }

// sessionBar is one line: a bar, numbers, the rate, and how long it will take.
// since is how many tasks finished in the time that was looked at.
func sessionBar(s *wire.Session, since int64, took time.Duration) string {
	total, past := s.Tasks.Submitted, finished(s)
	text := fmt.Sprintf("%s %s of %s tasks, %s active", bar(past, total), thousands(past), thousands(total), thousands(s.Tasks.Active))
	if s.Tasks.Failed > 0 {
		text += fmt.Sprintf(", %s failed", thousands(s.Tasks.Failed))
	}
	text += pace(since, total-past, took)
	if s.Stalled {
		text += ", STALLED: no engine may run any of them"
	}
	return text
}

func newGridResultsCommand() *cobra.Command {
	var after int64
	var now, keep bool
	cmd := onSession(verb{
		use:   "results ID",
		short: "Print results as tasks finish, one line of JSON each",
		long: `Print the results of a session as its tasks finish, one line of JSON each, until
the session is over. The cursor of a line is where --after goes on.

What was printed is acknowledged, and unless the session is collected "later"
the server forgets it: --keep leaves it as it is.`,
		example: `  reprise grid results risk-42 | jq -c 'select(.state == "completed") | .result'
  reprise grid results risk-42 --after 117 --now --keep`,
	}, func(c *call, s *client.Session) (*wire.Session, error) {
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
		defer stop()
		s.Keep = keep
		tellWaiting(c.ErrOrStderr(), s)
		if now {
			return nil, printResults(c.OutOrStdout(), s.ResultsNow(ctx, after))
		}
		return nil, printResults(c.OutOrStdout(), s.Results(ctx, after))
	})
	flags := cmd.Flags()
	flags.Int64Var(&after, "after", 0, "go on behind this cursor")
	flags.BoolVar(&now, "now", false, "print the results that are there, and do not wait for more")
	flags.BoolVar(&keep, "keep", false, "do not acknowledge what was printed")
	must(flags.MarkHidden("json")) // it is nothing else
	return cmd
}

// tellWaiting says once that the server does not answer a collector, which goes on
// asking.
func tellWaiting(w io.Writer, s *client.Session) {
	told := false
	s.Waiting = func(err error, _ time.Duration) {
		if !told {
			fmt.Fprintf(w, "%v; trying again until the server answers\n", err)
		}
		told = true
	}
}

func printResults(w io.Writer, results func(func(wire.TaskResult, error) bool)) error {
	for r, err := range results {
		if err == nil {
			err = jsonLine(w, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newGridSetCommand() *cobra.Command {
	var given []string
	var suspend, resume bool
	cmd := onSession(verb{
		use:     "set ID",
		short:   "Change options of a session that is not over",
		example: "  reprise grid set risk-42 --option weight=9\n  reprise grid set risk-42 --suspend",
	}, func(c *call, s *client.Session) (state *wire.Session, err error) {
		options, err := readOptions(given)
		switch {
		case err != nil:
			return nil, err
		case suspend && resume:
			return nil, usagef("--suspend and --resume exclude each other")
		case !suspend && !resume && len(options) == 0:
			return nil, usagef("say what is to change: --option NAME=VALUE, --suspend or --resume")
		}
		if len(options) > 0 {
			state, err = s.Set(c.Context(), options)
		}
		if err == nil && suspend {
			state, err = s.Suspend(c.Context())
		}
		if err == nil && resume {
			state, err = s.Resume(c.Context())
		}
		return state, err
	})
	flags := cmd.Flags()
	flags.StringArrayVarP(&given, "option", "O", nil, "NAME=VALUE; may be repeated")
	flags.BoolVar(&suspend, "suspend", false, "begin no further task; what runs goes on")
	flags.BoolVar(&resume, "resume", false, "end --suspend")
	return cmd
}

func newGridCancelCommand() *cobra.Command {
	var forget bool
	cmd := onSession(verb{
		use:     "cancel ID",
		short:   "Cancel a session, or forget one that is over",
		example: "  reprise grid cancel risk-42\n  reprise grid cancel risk-42 --forget",
	}, func(c *call, s *client.Session) (*wire.Session, error) {
		if forget {
			return nil, s.Forget(c.Context())
		}
		state, err := s.Cancel(c.Context())
		if err != nil || c.asJSON {
			return state, err
		}
		c.say("session %s is %s", s.ID(), state.State)
		return nil, nil
	})
	cmd.Flags().BoolVar(&forget, "forget", false, "forget a session that is over, with its tasks and results")
	return cmd
}

func newGridDrainCommand() *cobra.Command {
	var atOnce bool
	cmd := verb{
		use:     "drain ENGINE",
		short:   "Take an engine out: it finishes what it runs, and ends",
		example: "  reprise grid drain node-7",
		args:    []kind{engines},
		do: func(c *call) error {
			if atOnce {
				return c.cl.LogoffEngine(c.Context(), c.args[0])
			}
			return c.cl.DrainEngine(c.Context(), c.args[0])
		},
	}.command()
	cmd.Flags().BoolVar(&atOnce, "at-once", false, "log it off: its tasks are given back without blame, and it is told to stop")
	return cmd
}

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
	cmd.Flags().StringVar(&engine, "engine", "", "only this engine")
	completeFlag(cmd, "engine", engines)
	return cmd
}
