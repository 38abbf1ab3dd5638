package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/wire"
)

func newGridTaskCommand() *cobra.Command {
	return verb{
		use:   "task ID TASK",
		short: "Show one task of a session: every attempt, where it ran and why it ended",
		long: `Show one task of a session, by the number you gave it or its id: what it was
charged, and every attempt at it, with the engine that had it and why it ended.
Of very many attempts the first 8 and the last 24 are kept. Of a task that waits
it says why.`,
		example: "  reprise grid task risk-42 17\n  reprise grid task risk-42 17 --json | jq .attempts",
		args:    []kind{sessions, words{}},
		json:    "print JSON",
		do: func(c *call) error {
			s := c.cl.Session(c.args[0])
			t, err := s.Task(c.Context(), c.args[1])
			return c.show(t, err, func(w io.Writer) error {
				var why *wire.Explanation
				if t.State == wire.TaskWaiting {
					if why, err = s.Explain(c.Context(), c.args[1]); err != nil {
						return err
					}
				}
				return showTask(w, t, why)
			})
		},
	}.command()
}

// showTask writes a task for people, and a row for each attempt at it.
func showTask(w io.Writer, t *wire.TaskState, why *wire.Explanation) error {
	about := newTable(w)
	about.row("task", fmt.Sprintf("%d (%s)", t.Seq, t.ID))
	about.row("type", t.Type)
	about.row("state", t.State)
	about.row("charged", fmt.Sprintf("retries %d, losses %d, evictions %d, reschedules %d", t.Retries, t.Losses, t.Evictions, t.Reschedules))
	if why != nil {
		about.row("waits", printable(localTimes(why.Text)))
	}
	if len(t.Errors) > 0 {
		about.row("error", clip(printable(t.Errors[0].Message), 100))
	}
	if t.LeftOut > 0 {
		about.row("left out", plural(int64(t.LeftOut), "attempt"))
	}
	if err := about.flush(); err != nil || len(t.Attempts) == 0 {
		return err
	}
	fmt.Fprintln(w)
	rows := newTable(w, "ATTEMPT", "ENGINE", "HOST", "RAN", "ENDED", "CHARGED", "")
	for _, a := range t.Attempts {
		ran, ended, mark := "", cmp.Or(a.Reason, "running"), ""
		if a.StartedAt > 0 && a.EndedAt > 0 {
			ran = span(time.Duration(a.EndedAt-a.StartedAt) * time.Millisecond)
		}
		if a.Copy {
			mark = "copy"
		}
		if a.Committed {
			mark += " committed"
		}
		rows.row(strconv.Itoa(int(a.Number)), orDash(a.Engine), orDash(a.Host), orDash(ran), ended, orDash(a.Charged), mark)
	}
	return rows.flush()
}

// errMayNot is what "reprise grid try-commit" ends with where the answer is no.
var errMayNot = errors.New("this attempt may not commit: another one does, or it is over")

func newGridTryCommitCommand() *cobra.Command {
	return verb{
		use:   "try-commit",
		short: "Ask, from inside the command of an engine, whether this attempt may do what must not be done twice",
		long: `Ask whether this attempt may do what must not be done twice: of the attempts at
a task that run, one is told yes, however often it asks, and the others are
stopped. It is for a command that "reprise engine --exec" started, and takes
session, task and lease from its environment (REPRISE_QUEUE, REPRISE_ID,
REPRISE_LEASE).

It exits with 0 for yes and 1 for no. While the server does not answer it asks
again, for 15 s. If the engine that was told yes is lost, the next attempt may
be told yes, too: its command must then check what was done.`,
		example: "  reprise grid try-commit && curl -X POST https://bank.example/transfer",
		do: func(c *call) error {
			session, task, lease := os.Getenv("REPRISE_QUEUE"), os.Getenv("REPRISE_ID"), os.Getenv("REPRISE_LEASE")
			if session == "" || task == "" || lease == "" {
				return usagef("%s is for a command that \"reprise engine --exec\" runs", c.CommandPath())
			}
			may, err := c.cl.TryCommit(c.Context(), session, task, lease)
			if err == nil && !may {
				return errMayNot
			}
			return err
		},
	}.command()
}
