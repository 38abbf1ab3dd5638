package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

const (
	startPatience = time.Minute
	stopPatience  = 30 * time.Second
	pingInterval  = 2 * time.Millisecond

	outputPatience = time.Second
)

// process is a child that is ended by its process id.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	output *gauge.Tail
}

// command is what to execute. user is the account to become when this process
// is root's, for servers that refuse to run as root.
type command struct {
	program string
	args    []string
	env     []string // added to the environment
	dir     string
	user    *account
}

// execute starts a command. It dies with this process, and a Ctrl-C meant for
// this process does not reach it.
func execute(c command) (*process, error) {
	cmd := exec.Command(c.program, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = attributes(c.user)
	p := &process{cmd: cmd, exited: make(chan struct{}), output: &gauge.Tail{}}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.WaitDelay = outputPatience // a child that lives on may hold the output open
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(c.program), err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(p.exited)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// alive returns why the process ended, nil while it runs.
func (p *process) alive() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s (process %d) ended: %v; its last words: %q",
			filepath.Base(p.cmd.Path), p.pid(), p.cmd.ProcessState, p.output)
	default:
		return nil
	}
}

// stop sends a signal and waits; a process that does not end is killed, which
// is an error.
func (p *process) stop(signal os.Signal) error {
	_ = p.cmd.Process.Signal(signal) // fails only when it has ended
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-p.exited:
		return nil
	case <-patience.C:
		p.kill()
		return fmt.Errorf("%s did not end within %v of %v", filepath.Base(p.cmd.Path), stopPatience, signal)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended
	<-p.exited
}

// daemon is a server that is one process and its children.
type daemon struct {
	process *process
	signal  os.Signal // that asks it to end
}

// run starts the process and waits until ping succeeds.
func (d *daemon) run(ctx context.Context, c command, ping func(context.Context) error) error {
	p, err := execute(c)
	if err != nil {
		return err
	}
	d.process = p
	if err := untilServed(ctx, p, ping); err != nil {
		return errors.Join(err, d.Kill())
	}
	return nil
}

func untilServed(ctx context.Context, p *process, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		err := ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return p.alive()
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve: %w; its last words: %q", filepath.Base(p.cmd.Path), err, p.output)
		}
	}
}

func (d *daemon) Stop() error {
	if d.process == nil {
		return nil
	}
	err := d.process.stop(d.signal)
	d.process = nil
	return err
}

// Kill ends the whole tree, the root first, so that none of them can react to
// the death of another by tidying up.
func (d *daemon) Kill() error {
	if d.process == nil {
		return nil
	}
	var tree []int
	err := eachInTree(d.PIDs(), func(pid int, _ []string) error {
		tree = append(tree, pid)
		return nil
	})
	for _, pid := range tree { // the root comes first
		_ = syscall.Kill(pid, syscall.SIGKILL) // fails only when it has ended
	}
	d.process.kill()
	for _, pid := range tree {
		err = errors.Join(err, untilGone(pid))
	}
	d.process = nil
	return err
}

func untilGone(pid int) error {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	for !gone(pid) {
		select {
		case <-tick.C:
		case <-patience.C:
			return fmt.Errorf("process %d has not ended %v after SIGKILL", pid, stopPatience)
		}
	}
	return nil
}

func (d *daemon) PIDs() []int {
	if d.process == nil {
		return nil
	}
	return []int{d.process.pid()}
}

func (d *daemon) Alive() error {
	if d.process == nil {
		return errors.New("the server is not running")
	}
	return d.process.alive()
}

// dialable is a ping for servers that serve as soon as they listen.
func dialable(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// freePort is a loopback port that nobody listened on a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// account is a user of this machine.
type account struct{ uid, gid uint32 }

func attributes(user *account) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if user != nil && os.Getuid() == 0 {
		a.Credential = &syscall.Credential{Uid: user.uid, Gid: user.gid}
	}
	return a
}
