package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
	"github.com/reprisehq/reprise/internal/child"
)

// startPatience is how long a server may take to listen, and to give its first job.
const startPatience = 2 * time.Minute

// server is a server under test: one that this run started, or one at a URL.
type server struct {
	addr site
	pid  int // 0 for a server at a URL
	dir  string

	started   time.Duration // when it was executed
	listening time.Duration // when its line came
	process   *child.Process
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
	s := &server{started: gauge.Now()}
	var err error
	if s.process, err = child.Start(ctx, program, nil, serverAttributes(), args...); err != nil {
		return nil, err
	}
	addr, at, err := s.process.Listening(ctx, startPatience)
	if err != nil {
		s.kill()
		return nil, err
	}
	s.addr, s.pid, s.listening = site{host: addr}, s.process.PID(), gauge.Now()-time.Since(at)
	return s, nil
}

// stop asks the server to end and waits; one that does not is killed, which is
// an error.
func (s *server) stop() error {
	if s.process == nil || s.process.Ended() != nil {
		return nil
	}
	return s.process.Stop()
}

// kill ends the server at once, by its process id.
func (s *server) kill() { s.process.Kill() }

// dead returns why the server ended, or nil while it runs.
func (s *server) dead() error {
	if s.process == nil {
		return nil
	}
	return s.process.Ended()
}
