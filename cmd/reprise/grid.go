package main

import (
	"encoding/json"
	"fmt"
	"io"
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
	cmd := &cobra.Command{
		Use:   "grid",
		Short: "Compute with sessions of tasks on engines",
		Long: `Compute with sessions of tasks on engines. A session is what one program wants
computed: tasks, options such as max_retries and task_max_time, and a share of
the engines. Engines are started with "reprise engine".

What retries and reschedules are, and every option, is in docs/grid.md.`,
		Example: `  reprise engine --slots 4 --exec ./square &
  seq 1000 | reprise grid submit --session squares --wait
  reprise grid results squares`,
		Args: oneOfMine, RunE: showHelp,
	}
	cmd.AddCommand(newGridSubmitCommand(), newGridStatusCommand(), newGridResultsCommand(), newGridSetCommand(), newGridCancelCommand(),
		newGridSessionsCommand(), newGridEnginesCommand(), newGridDrainCommand(), newGridSimulateCommand(),
		newGridTaskCommand(), newGridTryCommitCommand(), newGridClearCommand())
	return cmd
}

// gridFlags are those of commands about one session.
type gridFlags struct {
	conn    connection
	asJSON  bool
	options []string
}

func (f *gridFlags) register(cmd *cobra.Command) {
	f.conn.register(cmd)
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
}

// one runs a command about the session that its argument names.
func (f *gridFlags) one(do func(cmd *cobra.Command, s *client.Session) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cl, err := f.conn.operatorOnce()
		if err != nil {
			return err
		}
		return advise(do(cmd, cl.Session(args[0])), cl)
	}
}

func oneSession(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s takes one argument, the id of a session (\"reprise grid sessions\" lists them)", cmd.CommandPath())
	}
	return nil
}

// readOptions reads NAME=VALUE: a value that is JSON counts as that, any other
// as a text.
func readOptions(list []string) (map[string]any, error) {
	out := map[string]any{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usagef("--option %q: write it as NAME=VALUE, such as max_retries=5", text)
		}
		if out[name] = any(value); json.Valid([]byte(value)) {
			out[name] = json.RawMessage(value)
		}
	}
	return out, nil
}

func newGridStatusCommand() *cobra.Command {
	var f gridFlags
	var watches bool
	cmd := &cobra.Command{
		Use:     "status ID",
		Short:   "Show how far a session is, its options, and who chose each",
		Example: "  reprise grid status risk-42\n  reprise grid status risk-42 --watch",
		Args:    oneSession,
		RunE: f.one(func(cmd *cobra.Command, s *client.Session) error {
			state, err := s.State(cmd.Context())
			if err == nil && watches {
				state, err = f.watch(cmd, s.ID(), state)
			}
			if err != nil {
				return err
			}
			if f.asJSON {
				return jsonLine(cmd.OutOrStdout(), state)
			}
			return showSession(cmd.OutOrStdout(), state)
		}),
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&watches, "watch", false, "show how it goes on until the session is over")
	complete(cmd, false, sessions)
	return cmd
}

// showSession writes a session for people: options only where somebody chose
// them.
func showSession(w io.Writer, s *wire.Session) error {
	t := newTable(w)
	t.row("session", s.ID)
	t.row("state", s.State+strings.Repeat(" (suspended)", oneIf(s.Suspended)))
	if s.Why != "" {
		t.row("why", s.Why)
	}
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
		t.row("client", "if nothing is heard of it, the session is cancelled "+distance(time.UnixMilli(s.ClientUntil), time.Now()))
	}
	t.row("profile", s.Profile)
	if s.Service != "" {
		t.row("service", s.Service)
	}
	for _, name := range optionNames(s) {
		if o := s.Options[name]; o.From != "profile" {
			t.row("  "+name, strings.Trim(string(o.Value), `"`)+" ("+o.From+")")
		}
	}
	return t.flush()
}

func optionNames(s *wire.Session) (list []string) {
	for name := range s.Options {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// watch shows a session until it is over, or until it is interrupted, which
// leaves the session alone. It outlives a restart of the server.
func (f *gridFlags) watch(cmd *cobra.Command, id string, state *wire.Session) (*wire.Session, error) {
	cl, err := f.conn.operator()
	if err != nil {
		return state, err
	}
	s := cl.Session(id)
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	p := newProgress(cmd.ErrOrStderr())
	defer p.hide()
	began, at := time.Now(), finished(state)
	for !state.Ended() {
		p.show(sessionBar(state, finished(state)-at, time.Since(began)))
		select {
		case <-ctx.Done():
			return state, nil
		case <-time.After(200 * time.Millisecond):
		}
		next, err := s.State(ctx)
		if ctx.Err() != nil {
			return state, nil
		}
		if err != nil {
			return state, err
		}
		state = next
	}
	return state, nil
}

func finished(s *wire.Session) int64 { return s.Tasks.Completed + s.Tasks.Failed + s.Tasks.Cancelled }

// sessionBar is one line: a bar, numbers, the rate, and how long it will take.
// since is how many tasks finished in the time that was looked at.
func sessionBar(s *wire.Session, since int64, took time.Duration) string {
	const width = 30
	total, past := s.Tasks.Submitted, finished(s)
	full := 0
	if total > 0 {
		full = int(past * width / total)
	}
	text := fmt.Sprintf("[%s%s] %s of %s tasks, %s active", strings.Repeat("█", full), strings.Repeat("░", width-full),
		thousands(past), thousands(total), thousands(s.Tasks.Active))
	if s.Tasks.Failed > 0 {
		text += fmt.Sprintf(", %s failed", thousands(s.Tasks.Failed))
	}
	if took > time.Second && since > 0 {
		rate := float64(since) / took.Seconds()
		text += fmt.Sprintf(", %.0f/s, %s left", rate, span(time.Duration(float64(total-past)/rate*float64(time.Second))))
	}
	if s.Stalled {
		text += ", STALLED: no engine may run any of them"
	}
	return text
}

func newGridResultsCommand() *cobra.Command {
	var f gridFlags
	var after int64
	var now, keep bool
	cmd := &cobra.Command{
		Use:   "results ID",
		Short: "Print results as tasks finish, one line of JSON each",
		Long: `Print the results of a session as its tasks finish, one line of JSON each, until
the session is over. The cursor of a line is where --after goes on.

What was printed is acknowledged, and unless the session is collected "later"
the server forgets it: --keep leaves it as it is.`,
		Example: `  reprise grid results risk-42 | jq -c 'select(.state == "completed") | .result'
  reprise grid results risk-42 --after 117 --now --keep`,
		Args: oneSession,
		RunE: f.one(func(cmd *cobra.Command, s *client.Session) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			s.Keep = keep
			tellWaiting(cmd.ErrOrStderr(), s)
			if now {
				return printResults(cmd.OutOrStdout(), s.ResultsNow(ctx, after))
			}
			return printResults(cmd.OutOrStdout(), s.Results(ctx, after))
		}),
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.Int64Var(&after, "after", 0, "go on behind this cursor")
	flags.BoolVar(&now, "now", false, "print what there is, and do not wait for more")
	flags.BoolVar(&keep, "keep", false, "do not acknowledge what was printed")
	must(flags.MarkHidden("json")) // it is nothing else
	complete(cmd, false, sessions)
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
	var f gridFlags
	var suspend, resume bool
	cmd := &cobra.Command{
		Use:     "set ID",
		Short:   "Change options of a session that is not over",
		Example: "  reprise grid set risk-42 --option weight=9\n  reprise grid set risk-42 --suspend",
		Args:    oneSession,
		RunE: f.one(func(cmd *cobra.Command, s *client.Session) error {
			options, err := readOptions(f.options)
			if err != nil {
				return err
			}
			if suspend && resume {
				return usagef("--suspend and --resume exclude each other")
			}
			if !suspend && !resume && len(options) == 0 {
				return usagef("say what is to change: --option NAME=VALUE, --suspend or --resume")
			}
			var state *wire.Session
			if len(options) > 0 {
				state, err = s.Set(cmd.Context(), options)
			}
			if err == nil && suspend {
				state, err = s.Suspend(cmd.Context())
			}
			if err == nil && resume {
				state, err = s.Resume(cmd.Context())
			}
			if err != nil {
				return err
			}
			if f.asJSON {
				return jsonLine(cmd.OutOrStdout(), state)
			}
			return showSession(cmd.OutOrStdout(), state)
		}),
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.options, "option", "O", nil, "NAME=VALUE; may be repeated")
	flags.BoolVar(&suspend, "suspend", false, "let nothing more begin; what runs goes on")
	flags.BoolVar(&resume, "resume", false, "end --suspend")
	complete(cmd, false, sessions)
	return cmd
}

func newGridCancelCommand() *cobra.Command {
	var f gridFlags
	var forget bool
	cmd := &cobra.Command{
		Use:     "cancel ID",
		Short:   "Cancel a session, or forget one that is over",
		Example: "  reprise grid cancel risk-42\n  reprise grid cancel risk-42 --forget",
		Args:    oneSession,
		RunE: f.one(func(cmd *cobra.Command, s *client.Session) error {
			if forget {
				return s.Forget(cmd.Context())
			}
			state, err := s.Cancel(cmd.Context())
			switch {
			case err != nil:
				return err
			case f.asJSON:
				return jsonLine(cmd.OutOrStdout(), state)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "session %s is %s\n", s.ID(), state.State)
			return nil
		}),
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&forget, "forget", false, "forget a session that is over, with its tasks and results")
	complete(cmd, false, sessions)
	return cmd
}

func newGridSessionsCommand() *cobra.Command {
	var f gridFlags
	cmd := &cobra.Command{
		Use: "sessions", Short: "List sessions", Args: noArguments,
		Example: "  reprise grid sessions\n  reprise grid sessions --json | jq .id",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := f.conn.operator()
			if err != nil {
				return err
			}
			list, err := cl.Sessions(cmd.Context())
			if err != nil {
				return advise(err, cl)
			}
			t := newList(cmd.OutOrStdout(), "no session; \"reprise grid submit\" opens one", "SESSION", "STATE", "SHARE", "SUBMITTED", "WAITING", "ACTIVE", "COMPLETED", "FAILED", "CANCELLED")
			for i := range list {
				s, n := &list[i], &list[i].Tasks
				if f.asJSON {
					if err := jsonLine(cmd.OutOrStdout(), s); err != nil {
						return err
					}
					continue
				}
				t.row(s.ID, s.State, thousands(int64(s.Share)), thousands(n.Submitted), thousands(n.Waiting), thousands(n.Active),
					thousands(n.Completed), thousands(n.Failed), thousands(n.Cancelled))
			}
			if f.asJSON {
				return nil
			}
			return t.flush()
		},
	}
	f.register(cmd)
	return cmd
}

func newGridEnginesCommand() *cobra.Command {
	var f gridFlags
	cmd := &cobra.Command{
		Use: "engines", Short: "List engines", Args: noArguments,
		Example: "  reprise grid engines\n  reprise grid engines --json | jq 'select(.state == \"suspect\")'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := f.conn.operator()
			if err != nil {
				return err
			}
			list, err := cl.Engines(cmd.Context())
			if err != nil {
				return advise(err, cl)
			}
			t := newList(cmd.OutOrStdout(), "no engine is logged in; \"reprise engine --slots N --exec COMMAND\" is one", "ENGINE", "HOST", "STATE", "RUNNING", "SLOTS", "HEARD", "PROPERTIES")
			for i := range list {
				e := &list[i]
				if f.asJSON {
					if err := jsonLine(cmd.OutOrStdout(), e); err != nil {
						return err
					}
					continue
				}
				var props []string
				for name, value := range e.Properties {
					props = append(props, name+"="+value)
				}
				slices.Sort(props)
				t.row(e.ID, e.Host, e.State, thousands(int64(e.Running)), thousands(int64(e.Slots)),
					distance(time.UnixMilli(e.HeardAt), time.Now()), clip(strings.Join(props, " "), 60))
			}
			if f.asJSON {
				return nil
			}
			return t.flush()
		},
	}
	f.register(cmd)
	return cmd
}

func newGridDrainCommand() *cobra.Command {
	var conn connection
	var at bool
	cmd := &cobra.Command{
		Use:     "drain ENGINE",
		Short:   "Take an engine out: it finishes what it runs, and ends",
		Example: "  reprise grid drain node-7",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s takes one argument, the id of an engine (\"reprise grid engines\" lists them)", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			if at {
				return advise(cl.LogoffEngine(cmd.Context(), args[0]), cl)
			}
			return advise(cl.DrainEngine(cmd.Context(), args[0]), cl)
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&at, "at-once", false, "log it off: what it runs is given back without blame, and it is told to stop")
	complete(cmd, false, engines)
	return cmd
}
