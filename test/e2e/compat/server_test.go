package compat

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// server is a process that was started as the harnesses of Zizq's clients do.
type server struct {
	url   string // scheme://host:port, from the log line
	admin string // the same of the admin listener, if there is one
	stop  func() // asks it to stop, once: a second signal would end it
}

// start runs the binary with the five flags of the harnesses, and more (an admin
// listener in the place of --no-admin), and waits for the line that tells the address. It is stopped when the test ends,
// and has to stop well.
func start(t testing.TB, more ...string) *server {
	t.Helper()
	args := append([]string{
		"serve", "--port", "0", "--root-dir", t.TempDir(), "--log-format", "json", "--log-level", "info",
	}, more...)
	if !slices.Contains(more, "--admin-port") {
		args = append(args, "--no-admin")
	}
	cmd := exec.Command(program, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REPRISE_") && !strings.HasPrefix(v, "ZIZQ_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	found, admin, ended := make(chan string, 1), make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewReader(stdout)
		for {
			line, err := lines.ReadString('\n')
			if strings.Contains(line, `"api":"admin"`) {
				admin <- line
			}
			if strings.Contains(line, `"api":"primary"`) { // as text: that is how it is found with grep
				found <- line
			}
			if err != nil {
				return
			}
		}
	}()
	stop := sync.OnceFunc(func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	t.Cleanup(func() {
		stop()
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		<-ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server did not stop well: %v", err)
		}
	})
	select {
	case line := <-found:
		s := &server{url: address(t, line), stop: stop}
		select {
		case line := <-admin: // it was there before
			s.admin = address(t, line)
		default:
		}
		return s
	case <-ended:
		t.Fatal("the server ended before it listened")
	case <-time.After(10 * time.Second): // no harness waits longer
		t.Fatal("the server did not listen within 10 s")
	}
	return nil
}

// address reads the line that tells one.
func address(t testing.TB, line string) string {
	t.Helper()
	var said struct {
		Level  string
		Fields struct{ Message, Addr, Scheme string }
	}
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.Level != "INFO" || said.Fields.Message != "listening" {
		t.Fatalf("the line is %s, %v", line, err)
	}
	return said.Fields.Scheme + "://" + said.Fields.Addr
}

// certificates makes an authority, and certificates of a server and a client.
func certificates(t testing.TB) (in func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command(program, "tls", "init", "--out-dir", dir, "--client", "worker").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func(name string) string { return dir + "/" + name }
}
