package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
)

// engineFlags are the flags of "reprise engine".
type engineFlags struct {
	options    client.EngineOptions
	properties []string

	command        string
	timeout        time.Duration
	quiet, verbose bool
}

func newEngineCommand() *cobra.Command {
	var f engineFlags
	cmd := verb{
		use:   "engine --slots N --exec COMMAND",
		short: "Run tasks of sessions with a command",
		long: `Run tasks of sessions (see "reprise grid") with a command.

An engine logs in with its slots and properties, says that it lives, takes
tasks, and tells the server when each begins and how it ends. The command is run
by "sh -c" as "reprise work --exec" does it, with the payload on its standard
input and REPRISE_ID, REPRISE_QUEUE (the session), REPRISE_TYPE, REPRISE_ATTEMPT
and the others in its environment. What it writes to standard output is the
result of the task: as it is if it is JSON, else as a text. How it exits
decides:
  0             completed
  65            failed for good: trying again cannot help (EX_DATAERR)
  any other     tried again, as often as the session's max_retries says

An attempt that counts no more, because it took too long, the session was
cancelled or a copy was faster, is asked to stop (SIGTERM to all it started) and
killed after five seconds. A broken connection or a restart of the server alone
stops nothing: the engine comes back to what it runs.

Ctrl-C or SIGTERM drains: nothing more is taken, running tasks may finish within
--drain-timeout, the others are given back without blame; a second one gives the
running ones back too. So does "reprise grid drain".`,
		example: `  reprise engine --slots 8 --exec './price.sh' --prop cpuMHz=2400 --prop os=linux
  reprise engine --slots 1 --exec 'python3 simulate.py' --session risk-42 --host rack1-node7`,
		do: f.run,
	}.command()
	flags, o := cmd.Flags(), &f.options
	flags.SortFlags = false
	flags.StringVar(&f.command, "exec", "", "command to run for each task (required)")
	flags.IntVar(&o.Slots, "slots", 1, "tasks to run at the same time")
	flags.StringArrayVar(&f.properties, "prop", nil, "property that conditions of tasks look at, NAME=VALUE; may be repeated")
	flags.StringSliceVar(&o.Sessions, "session", nil, "sessions to work for (default all; several with commas)")
	flags.StringVar(&o.ID, "id", "", "name of this engine, unique among all that run (default made up from the host's)")
	flags.StringVar(&o.Host, "host", "", "host of this engine: copies of a task run on different hosts (default the name of this host)")
	flags.IntVar(&o.Prefetch, "prefetch", 0, "tasks to hold, running ones included; more helps where tasks are short (default as many as slots)")
	spanVar(flags, &f.timeout, "timeout", 0, "longest time for one attempt here, whatever the session says; 0 = none")
	spanVar(flags, &o.DrainTimeout, "drain-timeout", 30*time.Second, "how long running tasks may go on after Ctrl-C or SIGTERM")
	flags.IntVar(&o.TasksMax, "max", 0, "exit after so many attempts; 0 for never")
	flags.BoolVar(&f.quiet, "quiet", false, "report only errors; drop what commands write to standard error")
	flags.BoolVar(&f.verbose, "verbose", false, "also report each task that is completed")
	completeFlag(cmd, "session", sessions)
	return cmd
}

func (f *engineFlags) check() (err error) {
	o := &f.options
	switch {
	case f.command == "":
		return usagef("--exec is missing: which command runs a task?")
	case o.Slots < 1:
		return usagef("--slots %d: at least one task must run at a time", o.Slots)
	case o.Prefetch < 0 || o.TasksMax < 0 || f.timeout < 0 || o.DrainTimeout < 0:
		return usagef("--prefetch, --max, --timeout and --drain-timeout cannot be negative")
	case f.quiet && f.verbose:
		return usagef("--quiet and --verbose exclude each other")
	}
	o.Properties, err = namedValues("prop", f.properties)
	return err
}

func (f *engineFlags) run(c *call) error {
	if err := f.check(); err != nil {
		return err
	}
	defer c.cl.Close()
	ctx, stopNow, release := stopBySignal(c.Context())
	defer release()
	stderr := &sharedWriter{w: c.ErrOrStderr()}
	log := &workLog{w: stderr, quiet: f.quiet, verbose: f.verbose}
	f.options.Events = log.events()
	var e *client.Engine
	x := &command{
		line: f.command, timeout: f.timeout, grace: killGrace, stdout: c.OutOrStdout(), stderr: stderr,
		url: c.cl.URL(), worker: func() string { return e.ID() }, result: true,
	}
	if f.quiet {
		x.stderr = io.Discard
	}
	e, err := client.NewEngine(c.cl, hurried(stopNow, x.handle), f.options)
	if err != nil {
		return &usageError{err}
	}
	log.tell("engine %s, %s", e.ID(), plural(int64(f.options.Slots), "slot"))
	err = e.Run(ctx)
	log.summary()
	return err
}
