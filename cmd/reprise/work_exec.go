package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/reprisehq/reprise/client"
	policies "github.com/reprisehq/reprise/internal/policy"
	"github.com/reprisehq/reprise/wire"
)

// Exit codes with a meaning (sysexits.h). Any other than these and 0 is
// treated as exitTemporary.
const (
	exitBadData   = policies.FinalExit // EX_DATAERR: dead
	exitTemporary = 75                 // EX_TEMPFAIL: retry

	exitSignal = 128 // added to a signal's number, as shells tell it

	exitInterrupted = exitSignal + 2 // SIGINT
)

const (
	traceBytesMax = 8 << 10 // of standard error that are kept
	killGrace     = 5 * time.Second
)

// command runs a shell command for each job.
type command struct {
	line           string
	timeout        time.Duration // 0 = none
	grace          time.Duration // between SIGTERM and SIGKILL
	stdout, stderr io.Writer
	url            string
	worker         func() string // its name
	result         bool          // its standard output is what it made
}

// runGroup runs a command in a process group of its own, so that what it started ends with
// it, and Ctrl-C in a terminal reaches only us. When its context ends, all of the group is
// asked to stop, and killed after grace.
func runGroup(x *exec.Cmd, grace time.Duration) error {
	x.SysProcAttr = ownGroup()
	x.WaitDelay = grace + time.Second // for what keeps its pipes open
	var kill *time.Timer
	x.Cancel = func() error {
		kill = time.AfterFunc(grace, func() { killGroup(x.Process) })
		return askGroup(x.Process)
	}
	err := x.Run()
	if kill != nil { // the leader is gone; nothing of its group may stay
		kill.Stop()
		killGroup(x.Process)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// handle runs the command once.
func (c *command) handle(ctx context.Context, d *client.Delivery) error {
	own, cancel := ctx, context.CancelFunc(func() {})
	if c.timeout > 0 {
		own, cancel = context.WithTimeout(ctx, c.timeout)
	}
	defer cancel()
	trace := &tail{max: traceBytesMax}
	cmd := exec.CommandContext(own, "sh", "-c", c.line)
	cmd.Stdin = bytes.NewReader(d.Job.Payload)
	cmd.Stdout = c.stdout
	var made *output
	if c.result {
		made = &output{}
		cmd.Stdout = made
	}
	cmd.Stderr = io.MultiWriter(c.stderr, trace)
	cmd.Env = append(os.Environ(), c.environment(d)...)
	err := runGroup(cmd, c.grace)
	switch {
	case err == nil:
		return made.keep(d)
	case errors.Is(context.Cause(ctx), context.Canceled):
		return errStopped
	case ctx.Err() != nil: // the job's own run timeout
		return c.failure("timeout", 0, context.Cause(ctx).Error(), trace)
	case own.Err() != nil:
		return c.failure("timeout", 0, fmt.Sprintf("timed out after %s", c.timeout), trace)
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok { // it never ran
		return &client.Failure{Type: "exec", Message: "starting the command: " + err.Error(), Err: err}
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled():
		return c.failure("signal", exitSignal+int(status.Signal()), "ended by a signal: "+status.Signal().String(), trace)
	case exit.ExitCode() == exitBadData:
		return client.Dead(c.failure("exit 65", exitBadData, "exit status 65", trace))
	}
	return c.failure(fmt.Sprintf("exit %d", exit.ExitCode()), exit.ExitCode(), exit.Error(), trace)
}

// failure prefers the command's own last words as the message.
func (c *command) failure(kind string, code int, otherwise string, trace *tail) error {
	text := trace.String()
	message := lastLine(text)
	switch {
	case message == "":
		message = otherwise
	case kind == "timeout" || kind == "signal":
		message = otherwise + "; its last words: " + message
	}
	return &client.Failure{Type: kind, Message: message, Backtrace: text, ExitCode: code, Timeout: kind == "timeout"}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// environment is what a command can know about its job.
func (c *command) environment(d *client.Delivery) []string {
	j := &d.Job
	out := []string{
		"REPRISE_ID=" + j.ID,
		"REPRISE_QUEUE=" + j.Queue,
		"REPRISE_TYPE=" + j.Type,
		"REPRISE_ATTEMPT=" + strconv.Itoa(d.Attempt()),
		"REPRISE_PRIORITY=" + strconv.Itoa(int(j.Priority)),
		"REPRISE_GROUP=" + j.Group,
		"REPRISE_READY_AT=" + strconv.FormatInt(j.ReadyAt, 10),
		"REPRISE_WORKER=" + c.worker(),
		"REPRISE_URL=" + c.url,
		"REPRISE_LEASE=" + j.Lease,
		"REPRISE_CHECKPOINT=" + checkpoint(j),
	}
	if t := d.Traceparent(); t != "" {
		out = append(out, "TRACEPARENT="+t)
	}
	return out
}

// checkpoint is what an earlier attempt left for this one.
func checkpoint(j *wire.Job) string {
	if j.Progress == nil {
		return ""
	}
	return string(j.Progress.Checkpoint)
}

// tail keeps the last bytes of what is written to it.
type tail struct {
	max int

	mu  sync.Mutex // guards what follows: a killed command may still write
	buf []byte
	cut bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
	return len(b), nil
}

// String is the text without the character and the line that were cut in two.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.buf
	if at := bytes.IndexByte(text, '\n'); t.cut && at >= 0 && at < len(text)-1 {
		text = text[at+1:]
	}
	return strings.ToValidUTF8(string(text), "�")
}
