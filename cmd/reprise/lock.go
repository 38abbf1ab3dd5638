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
	return group(&cobra.Command{
		Use:   "lock",
		Short: "Run a command on one machine at a time",
		Long: `Run a command under a named lock of the server, look at the locks, and break one
whose holder is gone. A lock needs neither a queue nor a job.`,
		Example: `  reprise lock run nightly -- ./report.sh
  reprise lock list
  reprise lock break nightly`,
	}, newLockRunCommand(), locks.listCommand(), newLockBreakCommand())
}

var locks = &noun[wire.Lock]{
	single: "the name of a lock", lister: "reprise lock list",
	read: all((*client.Client).Locks),
	name: func(l *wire.Lock) (string, string) { return l.Name, l.Status + ", " + l.LockedBy },

	none:  "no lock was held in the last day",
	heads: []string{"NAME", "STATUS", "BY", "FENCING", "LOCKED", "UNTIL"},
	row: func(t *table, l *wire.Lock) {
		t.row(l.Name, l.Status, l.LockedBy, whole(l.Fencing), ago(l.LockedAt), ago(l.LockUntil))
	},
	listed: verb{
		use:     "list",
		short:   "Show the locks that are held, and those that were in the last day",
		example: `  reprise lock list --json | jq -r 'select(.status == "held") | .locked_by'`,
		json:    "print each lock as a line of JSON",
	},
}

func newLockRunCommand() *cobra.Command {
	var f lockRun
	cmd := verb{
		use:   "run NAME -- COMMAND [ARGUMENT...]",
		short: "Run a command, if nobody else does so under this lock",
		long: `Take a named lock, run a command, keep the lock for as long as it runs, and
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
		example: `  reprise lock run nightly -- ./report.sh
  reprise lock run nightly --at-least 10s --held-exit 0 -- sh -c 'date; ./report.sh'`,
		args: []kind{locks, files{}}, repeat: true,
		do: func(c *call) error {
			if f.heldExit < 0 || f.heldExit > 255 {
				return usagef("--held-exit %d: an exit code is between 0 and 255", f.heldExit)
			}
			return f.run(c, c.args[0], c.args[1:])
		},
	}.command()
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || cmd.ArgsLenAtDash() == 0:
			return usagef("name the lock: reprise lock run NAME -- COMMAND")
		case cmd.ArgsLenAtDash() > 1:
			return usagef("one name comes before --, not %d", cmd.ArgsLenAtDash())
		case len(args) == 1:
			return usagef("say what to run: reprise lock run %s -- COMMAND", args[0])
		}
		return nil
	}
	flags := cmd.Flags()
	spanVar(flags, &f.options.AtMost, "at-most", 30*time.Second, "how long nobody else gets the lock if this program dies; at least 1s")
	spanVar(flags, &f.options.AtLeast, "at-least", 0, "how long the lock stays taken even if the command ends sooner")
	flags.StringVar(&f.options.Owner, "owner", "", "who asks, for people who look at the lock (default this host and process)")
	flags.IntVar(&f.heldExit, "held-exit", exitTemporary, "exit code if somebody else has the lock")
	return cmd
}

func newLockBreakCommand() *cobra.Command {
	return verb{
		use:   "break NAME",
		short: "Take a lock from whoever has it",
		long: `Take a lock from whoever has it, so that others can get it at once. Do so only
when you know that its holder is gone: a holder that still runs learns of it
when it extends the lock next. The audit log records it ("reprise audit").`,
		example: `  reprise lock break nightly`,
		args:    []kind{locks},
		do: func(c *call) error {
			l, err := c.cl.BreakLock(c.Context(), c.args[0])
			if err == nil {
				c.say("the lock %s is free; %s had it last", l.Name, l.LockedBy)
			}
			return err
		},
	}.command()
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
