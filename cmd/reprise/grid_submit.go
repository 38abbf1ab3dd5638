package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// submitFlags are the flags of "reprise grid submit".
type submitFlags struct {
	options    []string
	session    client.SessionOptions
	task       client.Task
	from       int64
	open, wait bool
}

func newGridSubmitCommand() *cobra.Command {
	var f submitFlags
	cmd := verb{
		use:   "submit [FILE]",
		short: "Open a session and submit tasks: each line of a file is the payload of one",
		long: `Open a session, or go on with one, and submit tasks: each line of a file, or of
standard input, is the payload of one task, as JSON. Then the session is closed,
so that it is over when its last task is finished; --open leaves it open.

Lines that are not empty are numbered, from --from on. So a command that was
broken off is repeated with the same --session: tasks that are there are not
added again.

A file is read to its end before a session is opened, so that nothing is
submitted if one of its lines is no JSON. What a pipe has submitted when such a
line comes, or when the server refuses a task, is cancelled with the session, if
it was this command that opened it.

The id of the session is printed. With --wait the command goes on until the
session is over, shows how far it is, and prints the results instead, one line
of JSON each as tasks finish. It fails if any task did.`,
		example: `  seq 1000 | reprise grid submit --session squares --wait
  reprise grid submit --session risk-42 -O task_max_time=50s -O max_retries=5 trades.ndjson
  reprise grid submit --session risk-42 --requires 'cpuMHz > 350' --open more.ndjson --from 1001`,
		args: []kind{files{}}, optional: 1,
		json: "print JSON",
		do:   f.run,
	}.command()
	flags := cmd.Flags()
	flags.StringVar(&f.session.ID, "session", "", "id of the session; one that exists goes on (default made up)")
	flags.StringVar(&f.session.Service, "service", "", "service type of the server's configuration")
	flags.StringArrayVarP(&f.options, "option", "O", nil, "option of the session, NAME=VALUE; may be repeated")
	flags.StringVar(&f.task.Type, "type", "", "type of the tasks, for engines that do several things")
	flags.StringVar(&f.task.Affinity, "affinity", "", "tag: the tasks go to engines that ran tasks with the same tag")
	flags.StringArrayVar(&f.task.Requires, "requires", nil, "condition on the engine, such as 'cpuMHz > 350'; may be repeated")
	flags.BoolVar(&f.task.Front, "front", false, "before all tasks that wait")
	flags.Int64Var(&f.from, "from", 1, "number of the first task")
	flags.BoolVar(&f.open, "open", false, "leave the session open for more tasks")
	flags.BoolVar(&f.wait, "wait", false, "wait for the session and print its results")
	completeFlag(cmd, "session", sessions)
	return cmd
}

// errTasksFailed is the outcome of a session that was waited for.
var errTasksFailed = errors.New("not all tasks were completed")

func (f *submitFlags) run(c *call) (err error) {
	if f.wait && f.open {
		return usagef("--wait and --open exclude each other: a session that is open is not over")
	}
	if f.from < 1 {
		return usagef("--from %d: tasks are numbered from 1 on", f.from)
	}
	if f.session.Options, err = readOptions(f.options); err != nil {
		return err
	}
	in, err := openTasks(c.InOrStdin(), c.args, &f.task, f.from)
	if err != nil {
		return err
	}
	defer in.close()
	first, err := in.part() // with which a session is worth opening
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	id, mine, err := f.openSession(ctx, c.conn)
	if err != nil {
		return err
	}
	s := c.cl.Session(id)
	p := newProgress(c.ErrOrStderr())
	sent, err := f.submit(ctx, s, first, in, p)
	p.hide()
	if err != nil && mine {
		return takeBack(s, sent, err)
	}
	if err != nil {
		return err
	}
	var state *wire.Session
	if f.open {
		state, err = s.State(ctx)
	} else {
		state, err = s.Close(ctx)
	}
	switch {
	case err != nil:
		return err
	case f.wait:
		return collect(ctx, c, s)
	case c.asJSON:
		return jsonLine(c.OutOrStdout(), state)
	}
	fmt.Fprintln(c.OutOrStdout(), s.ID())
	return nil
}

// openSession opens the session. One that is there is gone on with, unless
// options are asked for that it does not have. mine says that it was not there.
func (f *submitFlags) openSession(ctx context.Context, conn *connection) (id string, mine bool, err error) {
	cl, err := conn.operator(once)
	if err != nil {
		return "", false, err
	}
	if mine = f.session.ID == ""; !mine {
		_, err := cl.Session(f.session.ID).State(ctx)
		if mine = client.CodeOf(err) == wire.CodeNotFound; err != nil && !mine {
			return "", false, err
		}
	}
	s, err := cl.OpenSession(ctx, f.session)
	if client.CodeOf(err) == wire.CodeExists && len(f.session.Options) == 0 && f.session.Service == "" {
		s, mine = cl.Session(f.session.ID), false
		_, err = s.State(ctx)
	}
	if err != nil {
		return "", false, err
	}
	return s.ID(), mine, nil
}

// submit sends tasks part by part, and says how many are in.
func (f *submitFlags) submit(ctx context.Context, s *client.Session, part *taskPart, in *taskLines, p *progress) (sent int64, err error) {
	for began := time.Now(); part != nil; {
		if _, err := s.Submit(ctx, part.tasks...); err != nil {
			return sent, part.blame(err)
		}
		sent += int64(len(part.tasks))
		p.show(fmt.Sprintf("%s submitted, %.0f/s", plural(sent, "task"), float64(sent)/time.Since(began).Seconds()))
		if part, err = in.part(); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// stalledEvery is how often a session that is waited for is asked whether any
// engine may run its tasks.
const stalledEvery = 2 * time.Second

func tellStalled(w io.Writer, s *wire.Session) {
	fmt.Fprintf(w, "session %s waits: %s; \"reprise engine --exec COMMAND\" starts one, \"reprise grid engines\" lists them\n", s.ID, stalledText(s))
}

// watchStalled says whenever no engine may run any more what is left, until the
// context ends.
func watchStalled(ctx context.Context, w io.Writer, s *client.Session, state *wire.Session) {
	told := state != nil && state.Stalled
	tick := time.NewTicker(stalledEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := s.State(ctx)
		if err != nil {
			continue // who collects the results tells of that
		}
		if now.Stalled && !told && !now.Ended() {
			tellStalled(w, now)
		}
		told = now.Stalled
	}
}

// collect prints results, and shows how far the session is.
func collect(ctx context.Context, c *call, s *client.Session) error {
	p := newProgress(c.ErrOrStderr())
	tellWaiting(c.ErrOrStderr(), s)
	state, err := s.State(ctx)
	if err == nil && state.Stalled {
		tellStalled(c.ErrOrStderr(), state)
	}
	watching, enough := context.WithCancel(ctx)
	defer enough()
	go watchStalled(watching, c.ErrOrStderr(), c.cl.Session(s.ID()), state)
	began, at := time.Now(), int64(0)
	failed := int64(0)
	for r, bad := range s.Results(ctx, 0) {
		if err = bad; err == nil {
			p.hide()
			err = jsonLine(c.OutOrStdout(), r)
		}
		if err != nil {
			break
		}
		at++
		if r.State != wire.TaskDone {
			failed++
		}
		shown := *state
		shown.Tasks.Completed, shown.Tasks.Failed, shown.Tasks.Cancelled = at-failed, failed, 0
		p.show(sessionBar(&shown, at, time.Since(began)))
	}
	p.hide()
	if errors.Is(err, context.Canceled) {
		err = &exitCode{exitInterrupted, fmt.Errorf("interrupted; session %s goes on in the server: \"reprise grid results %[1]s\" collects it, \"reprise grid cancel %[1]s\" ends it", s.ID())}
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%w: %s of %s failed", errTasksFailed, thousands(failed), thousands(at))
	}
	return err
}
