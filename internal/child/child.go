// Package child runs the reprise binary beside this process, most of all as a server:
// for the demonstration and for the load generator.
package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopPatience is how long a child may take to stop.
const stopPatience = 30 * time.Second

// Process is a child and what it writes.
type Process struct {
	Exited <-chan struct{} // closed when it has ended

	name string
	cmd  *exec.Cmd
	log  *log
	err  error // how it ended; set before Exited closes

	once    sync.Once
	stopped error
}

// Start runs program. All it writes goes to a file, which is closed when it ends; nil = it
// is not kept. system may ask for more; nil = nothing.
func Start(ctx context.Context, program string, to io.WriteCloser, system *syscall.SysProcAttr, args ...string) (*Process, error) {
	if to == nil {
		to = nowhere{io.Discard}
	}
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), to.Close())
	}
	exited := make(chan struct{})
	p := &Process{Exited: exited, name: args[0], cmd: exec.Command(program, args...), log: &log{to: to, heard: make(chan listening, 1)}}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = p.log, p.log, system
	p.cmd.Env = environment(os.Environ())
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s %s: %w", filepath.Base(program), p.name, err), to.Close())
	}
	go func() {
		defer close(exited)
		p.err = errors.Join(p.cmd.Wait(), to.Close())
	}()
	return p, nil
}

// nowhere is a file that is not kept.
type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// environment leaves out what would configure the processes differently.
func environment(all []string) (kept []string) {
	for _, e := range all {
		if !strings.HasPrefix(e, "REPRISE_") && !strings.HasPrefix(e, "ZIZQ_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Used is the processor time of a process that has ended, and its largest size in memory in
// bytes; 0 = the system does not tell.
func (p *Process) Used() (cpu time.Duration, bytes int64) {
	<-p.Exited
	state := p.cmd.ProcessState
	return state.UserTime() + state.SystemTime(), peakOf(state.SysUsage())
}

// Listening waits until a server serves, and returns its address and when it said so.
func (p *Process) Listening(ctx context.Context, most time.Duration) (addr string, at time.Time, err error) {
	patience := time.NewTimer(most)
	defer patience.Stop()
	select {
	case l := <-p.log.heard:
		return l.addr, l.at, nil
	case <-p.Exited:
		err = errors.New("it ended")
	case <-patience.C:
		err = fmt.Errorf("it does not listen after %s", most)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return "", at, fmt.Errorf("starting the server: %w\n%s", err, p.LastWords())
}

// Ended is why a process has ended by itself; nil = it runs.
func (p *Process) Ended() error {
	select {
	case <-p.Exited:
		return fmt.Errorf("process %d: %v\n%s", p.PID(), p.cmd.ProcessState, p.LastWords())
	default:
		return nil
	}
}

// Kill ends the process as a power cut would, and waits until it is gone.
func (p *Process) Kill() {
	p.once.Do(func() { _ = p.cmd.Process.Kill() })
	<-p.Exited
}

// Stop asks the process to end, and insists after a while. It is an error if
// it did not end well.
func (p *Process) Stop() error {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		patience := time.NewTimer(stopPatience)
		defer patience.Stop()
		select {
		case <-p.Exited:
			p.stopped = p.err
		case <-patience.C:
			_ = p.cmd.Process.Kill()
			<-p.Exited
			p.stopped = fmt.Errorf("it did not stop within %s", stopPatience)
		}
		if p.stopped != nil {
			p.stopped = fmt.Errorf("stopping %s: %w\n%s", p.name, p.stopped, p.LastWords())
		}
	})
	return p.stopped
}

// LastWords is the end of the log.
func (p *Process) LastWords() string {
	return "last words of " + p.name + ":\n" + p.log.tail()
}

// log passes on what a process writes, and finds the address in it.
type log struct {
	to    io.Writer
	heard chan listening

	mu    sync.Mutex // guards what follows
	line  []byte     // not ended yet
	lines []string   // the last ones
}

// listening is where a server listens, and when it said so.
type listening struct {
	addr string
	at   time.Time
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = append(l.line, b...)
	for {
		line, rest, ended := bytes.Cut(l.line, []byte("\n"))
		if !ended {
			break
		}
		l.line = rest
		l.see(line)
	}
	return l.to.Write(b)
}

func (l *log) see(line []byte) {
	const kept = 8
	if l.lines = append(l.lines, string(line)); len(l.lines) > kept {
		l.lines = l.lines[1:]
	}
	if addr := address(line); addr != "" {
		select {
		case l.heard <- listening{addr, time.Now()}:
		default:
		}
	}
}

func (l *log) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "  " + strings.Join(append(l.lines[:len(l.lines):len(l.lines)], string(l.line)), "\n  ")
}

// address reads the line with which a server tells where it listens.
func address(line []byte) string {
	if !bytes.Contains(line, []byte(`"api":"primary"`)) {
		return ""
	}
	var entry struct {
		Fields struct {
			Addr string `json:"addr"`
		} `json:"fields"`
	}
	if json.Unmarshal(line, &entry) != nil {
		return ""
	}
	return entry.Fields.Addr
}
