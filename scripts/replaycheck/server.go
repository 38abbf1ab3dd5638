package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// server is a process of the binary on a directory of its own, which may be
// killed and started again.
type server struct {
	dir string // of the binary and of its data
	cmd *exec.Cmd
	url string

	reader sync.WaitGroup // of its output
	up     time.Time      // when it said that it listens
	ran    time.Duration  // of all earlier lives
}

// newServer builds the binary of this checkout and starts it.
func newServer() (*server, error) {
	dir, err := os.MkdirTemp("", "replaycheck-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "reprise"), "./cmd/reprise")
	build.Stderr = os.Stderr
	if err = build.Run(); err == nil {
		err = s.start("127.0.0.1:0")
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// start returns when the server listens.
func (s *server) start(addr string) error {
	port := addr[len("127.0.0.1:"):]
	s.cmd = exec.Command(filepath.Join(s.dir, "reprise"), "serve", "--port", port, "--no-admin", "--log-format", "json", "--root-dir", filepath.Join(s.dir, "root"))
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var entry struct{ Fields struct{ API, Addr string } }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Fields.API == "primary" {
			s.up, s.url = time.Now(), "http://"+entry.Fields.Addr
			s.reader.Go(func() { _, _ = io.Copy(io.Discard, out) })
			return nil
		}
	}
	return fmt.Errorf("the server ended without listening: %w", s.cmd.Wait())
}

// kill ends the server with SIGKILL and starts it again on the same port. It
// tells how long it was away.
func (s *server) kill() (away time.Duration, err error) {
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return 0, err
	}
	killed := time.Now()
	s.ran += killed.Sub(s.up)
	s.reader.Wait()
	if s.cmd.Wait() == nil || s.cmd.ProcessState.ExitCode() != -1 {
		return 0, errors.New("the server ended by itself, not by SIGKILL")
	}
	if err := s.start(s.url[len("http://"):]); err != nil {
		return 0, err
	}
	return s.up.Sub(killed), nil
}

// ranUntil is how long the server was up from a moment of its first life to a
// moment of its present one.
func (s *server) ranUntil(first time.Time, began, end time.Time) time.Duration {
	return s.ran + end.Sub(s.up) - began.Sub(first)
}

func (s *server) stop() error {
	err := s.cmd.Process.Signal(os.Interrupt)
	s.reader.Wait()
	return errors.Join(err, s.cmd.Wait(), os.RemoveAll(s.dir))
}
