package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// server is a process of the binary, running `serve` on a directory.
type server struct {
	t    testing.TB
	cmd  *exec.Cmd
	addr string // host:port, once it listens
	url  string

	listens chan string   // gets the address, once
	exited  chan struct{} // closed at the end of the process

	mu    sync.Mutex // guards lines
	lines []string   // of both outputs
}

// launch starts a process and does not wait for it. Whatever happens, the
// process is gone when the test ends.
func launch(t testing.TB, dir string, args ...string) *server {
	t.Helper()
	return launchWith(t, nil, append([]string{"serve", "--port", "0", "--no-admin", "--log-format", "json", "--root-dir", dir}, args...))
}

// launchWith starts a process with variables of the environment of its own.
func launchWith(t testing.TB, environment, args []string) *server {
	t.Helper()
	s := &server{
		t: t, cmd: exec.Command(binary, args...),
		listens: make(chan string, 1), exited: make(chan struct{}),
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REPRISE_") && !strings.HasPrefix(v, "ZIZQ_") {
			s.cmd.Env = append(s.cmd.Env, v)
		}
	}
	s.cmd.Env = append(s.cmd.Env, environment...)
	// Pipes of our own: those of exec.Cmd are closed by Wait before all is read.
	out, outEnd := pipe(t)
	errs, errsEnd := pipe(t)
	s.cmd.Stdout, s.cmd.Stderr = outEnd, errsEnd
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", binary, err)
	}
	closeAll([]*os.File{outEnd, errsEnd}) // the process has its own
	var readers sync.WaitGroup
	readers.Go(func() { s.read(out) })
	readers.Go(func() { s.read(errs) })
	go func() {
		readers.Wait()
		_ = s.cmd.Wait() // the exit code is in ProcessState
		close(s.exited)
	}()
	t.Cleanup(s.cleanUp)
	return s
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// start launches a server and waits until it listens.
func start(t testing.TB, dir string, args ...string) *server {
	t.Helper()
	s := launch(t, dir, args...)
	s.waitListening()
	return s
}

// read collects lines until the process ends, and looks for the one that says
// where it listens.
func (s *server) read(from *os.File) {
	defer func() { _ = from.Close() }()
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			s.mu.Lock()
			s.lines = append(s.lines, strings.TrimRight(line, "\n"))
			s.mu.Unlock()
			if strings.Contains(line, `"api":"primary"`) {
				s.listens <- addressIn(line)
			}
		}
		if err != nil {
			return // EOF: the process is gone
		}
	}
}

// addressIn reads the line as the harnesses of Zizq's clients do.
func addressIn(line string) string {
	var said struct {
		Fields struct{ Message, API, Addr, Scheme string }
	}
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.Fields.Scheme != "http" || said.Fields.Message != "listening" {
		return ""
	}
	return said.Fields.Addr
}

func (s *server) waitListening() {
	s.t.Helper()
	select {
	case s.addr = <-s.listens:
		if s.addr == "" {
			s.t.Fatalf("the line that tells the address cannot be read:\n%s", s.output())
		}
		s.url = "http://" + s.addr
	case <-s.exited:
		s.t.Fatalf("the server ended before it listened:\n%s", s.output())
	case <-time.After(patience):
		s.t.Fatalf("the server did not listen within %s:\n%s", patience, s.output())
	}
}

// port is what another start needs to take over the address.
func (s *server) port() string { return s.addr[strings.LastIndexByte(s.addr, ':')+1:] }

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("sending %s: %v", sig, err)
	}
}

// kill ends the process as a crash does, and waits until it is gone.
func (s *server) kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	s.wait()
}

// terminate asks the process to stop and returns its exit code.
func (s *server) terminate() int {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	return s.wait()
}

// wait waits for the end of the process and returns its exit code; -1 = a
// signal ended it.
func (s *server) wait() int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatalf("the server did not end within %s:\n%s", patience, s.output())
	}
	return s.cmd.ProcessState.ExitCode()
}

func (s *server) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := slices.Clone(s.lines[max(0, len(s.lines)-30):])
	for i, line := range last {
		last[i] = line[:min(len(line), 600)]
	}
	return strings.Join(last, "\n")
}

func (s *server) cleanUp() {
	select {
	case <-s.exited:
	default:
		_ = s.cmd.Process.Signal(syscall.SIGCONT) // it may have been stopped
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
	if s.t.Failed() {
		s.t.Logf("the server on pid %d said last:\n%s", s.cmd.Process.Pid, s.output())
	}
}

// refusesToStart runs a server that must end by itself with exit code 1, and
// returns what it said.
func refusesToStart(t *testing.T, dir string, args ...string) string {
	t.Helper()
	s := launch(t, dir, args...)
	select {
	case <-s.listens:
		t.Fatal("the server started")
	case <-s.exited:
	case <-time.After(patience):
		t.Fatalf("the server neither started nor ended within %s", patience)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	return s.output()
}

// says checks that a text holds all parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not said in:\n%s", part, text)
		}
	}
}

// write makes a file and returns its path.
func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func closeAll[C io.Closer](list []C) {
	for _, c := range list {
		_ = c.Close()
	}
}
