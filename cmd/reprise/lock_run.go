package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// lockRun runs a command under a lock.
type lockRun struct {
	options  client.LockOptions
	heldExit int
}

func (f *lockRun) run(c *call, name string, command []string) error {
	ctx, _, release := stopBySignal(c.Context())
	defer release()
	began := false
	err := c.cl.Lock(ctx, name, f.options, func(ctx context.Context, fencing int64) error {
		began = true
		return f.command(ctx, c, name, fencing, command)
	})
	switch {
	case errors.Is(err, client.ErrLockLost):
		why, _, _ := strings.Cut(err.Error(), "\n") // what the command has to say it said itself
		return &exitCode{1, errors.New("somebody else may have run under this lock too: " + why)}
	case began:
		return err
	case client.CodeOf(err) == wire.CodeLocked:
		return &exitCode{f.heldExit, heldBy(err)}
	}
	return err
}

// command runs the command once.
func (f *lockRun) command(ctx context.Context, c *call, name string, fencing int64, command []string) error {
	x := exec.CommandContext(ctx, command[0], command[1:]...)
	x.Stdout, x.Stderr = c.OutOrStdout(), c.ErrOrStderr()
	if in := c.InOrStdin(); in != io.Reader(os.Stdin) || !fromTerminal() { // a group in the background must not read from one
		x.Stdin = in
	}
	x.Env = append(os.Environ(), "REPRISE_LOCK="+name, "REPRISE_FENCING="+strconv.FormatInt(fencing, 10), "REPRISE_URL="+c.cl.URL())
	err := runGroup(x, killGrace)
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil, errors.Is(context.Cause(ctx), client.ErrLockLost): // which is told already
		return nil
	case !ok && ctx.Err() == nil:
		return fmt.Errorf("starting the command: %w", err)
	}
	code := 1
	if ok {
		code = exit.ExitCode()
		if status, known := exit.Sys().(syscall.WaitStatus); known && status.Signaled() {
			code = exitSignal + int(status.Signal())
		}
	}
	return &exitCode{code, nil}
}

func fromTerminal() bool {
	info, err := os.Stdin.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
