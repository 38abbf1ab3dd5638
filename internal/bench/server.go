package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

const (
	startPatience = 2 * time.Minute
	stopPatience  = 30 * time.Second
)

// server is a server under test: one that this run started, or one at a URL.
type server struct {
	addr site
	pid  int // 0 for a server at a URL
	dir  string

	started   time.Duration // when it was executed
	listening time.Duration // when its line came
	process   *os.Process
	exited    chan struct{}
	state     *os.ProcessState // set before exited closes
	stderr    *gauge.Tail
}

// site is where requests go, and the token that they carry.
type site struct {
	host, token string
	tls         *tls.Config // nil = plain HTTP
}

func (s site) scheme() string {
	if s.tls != nil {
		return "https"
	}
	return "http"
}

// head is what stands behind "Host: " in a request.
func (s site) head() string {
	if s.token == "" {
		return s.host
	}
	return s.host + "\r\nAuthorization: Bearer " + s.token
}

// remoteServer is one that somebody else runs.
func remoteServer(target, token string, secure *tls.Config) (*server, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	at, port := site{host: u.Host, token: token}, ":80"
	if u.Scheme == "https" {
		if at.tls, port = secure, ":443"; secure == nil {
			at.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	if u.Port() == "" {
		at.host += port
	}
	return &server{addr: at}, nil
}

// startServer executes program with args and waits for its listening line.
func startServer(ctx context.Context, program string, args []string) (*server, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = serverEnvironment(os.Environ())
	cmd.SysProcAttr = serverAttributes()
	s := &server{exited: make(chan struct{}), stderr: &gauge.Tail{}}
	cmd.Stderr = s.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	s.started = gauge.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a server: %w", err)
	}
	s.process, s.pid = cmd.Process, cmd.Process.Pid
	ready := make(chan listening, 1)
	go func() {
		readServerLog(stdout, ready)
		_ = cmd.Wait() // how it ended is in ProcessState
		s.state = cmd.ProcessState
		close(s.exited)
	}()
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	select {
	case l := <-ready:
		s.addr, s.listening = site{host: l.addr}, l.at
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("the server ended before it listened: %w", s.death())
	case <-patience.C:
		err = fmt.Errorf("the server (%s) did not say within %v that it listens", strings.Join(args, " "), startPatience)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.kill()
	return nil, err
}

// serverEnvironment drops the settings meant for another server of the user.
func serverEnvironment(env []string) []string {
	kept := make([]string, 0, len(env))
	for _, entry := range env {
		if !strings.HasPrefix(entry, "REPRISE_") && !strings.HasPrefix(entry, "ZIZQ_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// listening is the address of a primary listener and when it was announced.
type listening struct {
	addr string
	at   time.Duration
}

// readServerLog passes on the address of the primary listener, and then reads
// on, because a server blocked on its log would measure as slow.
func readServerLog(stdout io.Reader, ready chan<- listening) {
	lines := bufio.NewReader(stdout)
	for announced := false; ; {
		line, err := lines.ReadString('\n')
		if !announced && strings.Contains(line, `"api":"primary"`) {
			var entry struct {
				Fields struct {
					Addr string `json:"addr"`
				} `json:"fields"`
			}
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Fields.Addr != "" {
				announced = true
				ready <- listening{entry.Fields.Addr, gauge.Now()}
			}
		}
		if err != nil {
			return
		}
	}
}

// stop asks the server to end and waits; one that does not is killed, which is
// an error.
func (s *server) stop() error {
	if s.process == nil {
		return nil
	}
	select {
	case <-s.exited:
		return nil
	default:
	}
	_ = s.process.Signal(syscall.SIGTERM) // fails only when it has just ended
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-s.exited:
		if !s.state.Success() {
			return fmt.Errorf("stopping the server: %w", s.death())
		}
		return nil
	case <-patience.C:
		s.kill()
		return fmt.Errorf("the server did not end within %v of SIGTERM", stopPatience)
	}
}

// kill ends the server at once, by its process id.
func (s *server) kill() {
	_ = s.process.Kill() // fails only when it has ended
	<-s.exited
}

// dead returns why the server ended, or nil while it runs.
func (s *server) dead() error {
	if s.process == nil {
		return nil
	}
	select {
	case <-s.exited:
		return s.death()
	default:
		return nil
	}
}

func (s *server) death() error {
	return fmt.Errorf("process %d: %v; its last words: %q", s.pid, s.state, s.stderr.String())
}
