package demo

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

const (
	startPatience = 20 * time.Second
	stopPatience  = 20 * time.Second
)

// process is a subprocess with its log.
type process struct {
	name   string
	cmd    *exec.Cmd
	log    *logFile
	exited chan struct{}
	err    error // how it ended; set before exited closes

	once    sync.Once
	stopped error
}

// startProcess starts program and adds all it writes to the file at path.
func startProcess(ctx context.Context, program, path string, args ...string) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{
		name: args[0], cmd: exec.Command(program, args...), exited: make(chan struct{}),
		log: &logFile{to: file, addr: make(chan string, 1)},
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.Env = environment(os.Environ())
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s %s: %w", filepath.Base(program), p.name, err), file.Close())
	}
	go func() {
		defer close(p.exited)
		p.err = errors.Join(p.cmd.Wait(), file.Close())
	}()
	return p, nil
}

// environment leaves out what would configure the processes differently.
func environment(all []string) (kept []string) {
	for _, e := range all {
		if !strings.HasPrefix(e, "REPRISE_") && !strings.HasPrefix(e, "ZIZQ_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// listening waits until a server serves, and returns its address.
func (p *process) listening(ctx context.Context) (string, error) {
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	var why error
	select {
	case addr := <-p.log.addr:
		return addr, nil
	case <-p.exited:
		why = errors.New("it ended")
	case <-patience.C:
		why = fmt.Errorf("it does not listen after %s", startPatience)
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	return "", fmt.Errorf("starting the server: %w\n%s", why, p.lastWords())
}

// kill ends the process as a power cut would, and waits until it is gone.
func (p *process) kill() {
	p.once.Do(func() { _ = p.cmd.Process.Kill() })
	<-p.exited
}

// stop asks the process to end, and insists after a while. It is an error if
// it did not end well.
func (p *process) stop() error {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		patience := time.NewTimer(stopPatience)
		defer patience.Stop()
		select {
		case <-p.exited:
			p.stopped = p.err
		case <-patience.C:
			_ = p.cmd.Process.Kill()
			<-p.exited
			p.stopped = fmt.Errorf("it did not stop within %s", stopPatience)
		}
		if p.stopped != nil {
			p.stopped = fmt.Errorf("stopping %s: %w\n%s", p.name, p.stopped, p.lastWords())
		}
	})
	return p.stopped
}

// lastWords is the end of the log.
func (p *process) lastWords() string {
	return "last words of " + p.name + ":\n" + p.log.tail()
}

// logFile writes a log and finds the address in it.
type logFile struct {
	to   io.Writer
	addr chan string

	mu    sync.Mutex // guards what follows
	line  []byte     // not ended yet
	lines []string   // the last ones
}

func (l *logFile) Write(b []byte) (int, error) {
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

func (l *logFile) see(line []byte) {
	const kept = 8
	if l.lines = append(l.lines, string(line)); len(l.lines) > kept {
		l.lines = l.lines[1:]
	}
	if addr := address(line); addr != "" {
		select {
		case l.addr <- addr:
		default:
		}
	}
}

func (l *logFile) tail() string {
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
