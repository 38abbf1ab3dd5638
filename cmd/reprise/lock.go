package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func newLockCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Run a command on one machine at a time",
		Long: `Run a command under a named lock of the server, look at the locks, and break one
whose holder is gone. A lock needs neither a queue nor a job.`,
		Example: `  reprise lock run nightly -- ./report.sh
  reprise lock list
  reprise lock break nightly`,
		Args: oneOfMine, RunE: showHelp,
	}
	cmd.AddCommand(newLockRunCommand(), newLockListCommand(), newLockBreakCommand())
	return cmd
}

func newLockRunCommand() *cobra.Command {
	var conn connection
	var f lockRun
	cmd := &cobra.Command{
		Use:   "run NAME -- COMMAND [ARGUMENT...]",
		Short: "Run a command, if nobody else does so under this lock",
		Long: `Take a named lock, run a command, keep the lock for as long as it runs, and
give it back. The exit code is the command's; that of a command which a signal
ended is 128 and its number.

If somebody else has the lock, nothing is run, and the exit code is 75
(EX_TEMPFAIL), or what --held-exit says: 0 suits a cron job on several machines.

If this machine or this program dies, the lock is free again after --at-most.
If the server cannot be reached for so long, or somebody breaks the lock, the
command is stopped, because another one may be running: SIGTERM, then SIGKILL,
and exit code 1. Ctrl-C and SIGTERM stop it too.

The command finds in its environment:
  REPRISE_LOCK     the name of the lock
  REPRISE_FENCING  a number that is higher at every run. Write it along with
                   your data, and let nothing be written with a lower one.
  REPRISE_URL      the server`,
		Example: `  reprise lock run nightly -- ./report.sh
  reprise lock run nightly --at-least 10s --held-exit 0 -- sh -c 'date; ./report.sh'`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || cmd.ArgsLenAtDash() == 0:
				return usagef("name the lock: reprise lock run NAME -- COMMAND")
			case cmd.ArgsLenAtDash() > 1:
				return usagef("one name comes before --, not %d", cmd.ArgsLenAtDash())
			case len(args) == 1:
				return usagef("say what to run: reprise lock run %s -- COMMAND", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.heldExit < 0 || f.heldExit > 255 {
				return usagef("--held-exit %d: an exit code is between 0 and 255", f.heldExit)
			}
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			return f.run(cmd, cl, args[0], args[1:])
		},
	}
	conn.register(cmd)
	flags := cmd.Flags()
	spanVar(flags, &f.options.AtMost, "at-most", 30*time.Second, "how long nobody else gets the lock if this program dies; at least 1s")
	spanVar(flags, &f.options.AtLeast, "at-least", 0, "how long the lock stays taken even if the command ends sooner")
	flags.StringVar(&f.options.Owner, "owner", "", "who asks, for people who look at the lock (default this host and process)")
	flags.IntVar(&f.heldExit, "held-exit", exitTemporary, "exit code if somebody else has the lock")
	complete(cmd, true, locks, files)
	return cmd
}

func newLockListCommand() *cobra.Command {
	var conn connection
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Show the locks that are held, and those that were in the last day",
		Example: `  reprise lock list --json | jq -r 'select(.status == "held") | .locked_by'`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := conn.client(client.Options{})
			if err != nil {
				return err
			}
			list, err := cl.Locks(cmd.Context())
			if err != nil {
				return advise(err, cl)
			}
			return showLocks(cmd, list, asJSON)
		},
	}
	conn.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each lock as a line of JSON")
	return cmd
}

func showLocks(cmd *cobra.Command, list []wire.Lock, asJSON bool) error {
	out, now := cmd.OutOrStdout(), time.Now()
	t := newTable(out)
	for i := range list {
		l := &list[i]
		if asJSON {
			if err := jsonLine(out, l); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			t.heads("NAME", "STATUS", "BY", "FENCING", "LOCKED", "UNTIL")
		}
		t.row(l.Name, l.Status, l.LockedBy, fmt.Sprint(l.Fencing), distance(time.UnixMilli(l.LockedAt), now), distance(time.UnixMilli(l.LockUntil), now))
	}
	if err := t.flush(); err != nil || asJSON {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "no lock was held in the last day")
	}
	return nil
}

func newLockBreakCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "break NAME",
		Short: "Take a lock from whoever has it",
		Long: `Take a lock from whoever has it, so that others can get it at once. Do so only
when you know that its holder is gone: one that runs on hears of it when it
extends the lock next. It goes into the audit log ("reprise dead audit").`,
		Example: `  reprise lock break nightly`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s needs one name, but was given %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := conn.operator()
			if err != nil {
				return err
			}
			l, err := cl.BreakLock(cmd.Context(), args[0])
			if err != nil {
				return advise(err, cl)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the lock %s is free; %s had it last\n", printable(l.Name), printable(l.LockedBy))
			return err
		},
	}
	conn.register(cmd)
	complete(cmd, false, locks)
	return cmd
}

// exitCode is an error that ends the program with a code of its own. It says
// nothing if it has no cause.
type exitCode struct {
	code  int
	cause error
}

func (e *exitCode) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exitCode) Unwrap() error { return e.cause }

// heldBy says who has a lock, for people.
func heldBy(err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Lock == nil {
		return err
	}
	l, now := refused.Lock, time.Now()
	until := distance(time.UnixMilli(l.LockUntil), now)
	if l.Status == wire.LockKept {
		return fmt.Errorf("nothing was run: %s gave the lock %s back and it is kept for its --at-least; it ends %s", l.LockedBy, l.Name, until)
	}
	return fmt.Errorf("nothing was run: %s has the lock %s since %s; unless it is extended it ends %s", l.LockedBy, l.Name, span(now.Sub(time.UnixMilli(l.LockedAt))), until)
}
