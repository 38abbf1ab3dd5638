// Package inside tests the assembled server inside the test's own process, for
// faults that nobody can cause from outside: a file system whose operations
// fail one by one, a wall clock that is set, minutes that nobody waits for.
// Everything else is as it is for users: real sockets, HTTP, the embedded store.
package inside

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// patience is how long a test waits for what should come soon.
const patience = 2 * time.Minute

// stack is a server on a file system and a clock of the test's choice.
type stack struct {
	t       testing.TB
	url     string
	addr    string
	engine  *part.Engine
	store   *embedded.Store
	server  *http.Server
	client  *http.Client
	served  chan struct{}
	stopped bool
}

// options of a stack; the zero value is a server as users have it.
type options struct {
	fs    vfs.FS       // nil = in memory
	clock engine.Clock // nil = the machine's
	log   slog.Handler // nil = nothing is logged
	edit  func(*http.Server)
}

// open starts a server, or says why it does not start.
func open(t testing.TB, o options) (*stack, error) {
	t.Helper()
	if o.fs == nil {
		o.fs = vfs.NewMem()
	}
	if o.clock == nil {
		o.clock = engine.SystemClock()
	}
	if o.log == nil {
		o.log = slog.DiscardHandler
	}
	st, err := embedded.Open(embedded.Options{Dir: "root", FS: o.fs, Now: o.clock.Wall, Cache: 1 << 20})
	if err != nil {
		return nil, err
	}
	e := part.New(st, o.clock, rand.Uint64, slog.New(o.log), engine.Options{Server: rule.DefaultServer(), Reattach: 30 * job.Second, Idempotency: job.Hour})
	if err := e.Start(t.Context()); err != nil {
		_ = e.Stop(context.Background())
		_ = st.Close()
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{
		t: t, engine: e, store: st, served: make(chan struct{}), addr: listener.Addr().String(),
		server: httpapi.NewServer(httpapi.New(httpapi.Options{Engine: e})),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
	s.url = "http://" + s.addr
	if o.edit != nil {
		o.edit(s.server)
	}
	go func() { defer close(s.served); _ = s.server.Serve(listener) }()
	t.Cleanup(s.stop)
	return s, nil
}

func start(t testing.TB, o options) *stack {
	t.Helper()
	s, err := open(t, o)
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	return s
}

// stop ends a server; twice is harmless. Errors of a store that was broken on
// purpose are nobody's concern.
func (s *stack) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.engine.Stop(ctx); err != nil {
		s.t.Errorf("stopping: %v", err)
	}
	s.client.CloseIdleConnections()
	_ = s.server.Close()
	<-s.served
	_ = s.store.Close()
}

// reply is an answer that arrived whole.
type reply struct {
	status int
	body   []byte
}

func (r reply) String() string { return fmt.Sprintf("%d %.500s", r.status, r.body) }

// do sends a request; body is JSON text.
func (s *stack) do(ctx context.Context, method, path, body string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, text}, err
}

// call is do for who waits for the answer, whatever happens meanwhile.
func (s *stack) call(method, path, body string) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.do(ctx, method, path, body)
}

// must sends a request whose answer has to have the status, and reads it into
// v unless that is nil.
func (s *stack) must(status int, v any, method, path, body string) reply {
	s.t.Helper()
	r, err := s.call(method, path, body)
	if err == nil && r.status == status && v != nil {
		err = json.Unmarshal(r.body, v)
	}
	if err != nil || r.status != status {
		s.t.Fatalf("%s %s %.100s: %s, %v; want %d", method, path, body, r, err, status)
	}
	return r
}

// raw opens a connection and writes the beginning of a request on it.
func (s *stack) raw(text string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn, err := net.DialTimeout("tcp", s.addr, patience)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, err = io.WriteString(conn, text)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// until asks again and again whether a condition holds, which says what it saw
// last.
func until(t testing.TB, what string, holds func() (bool, string)) {
	t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		ok, saw := holds()
		if ok {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("%s: not within %s; last seen: %s", what, patience, saw)
		}
	}
}

// ready waits until the server takes work in.
func (s *stack) ready() {
	s.t.Helper()
	until(s.t, "the server is ready", func() (bool, string) {
		r, err := s.call("GET", "/ready", "")
		return err == nil && r.status == 200, fmt.Sprint(r, err)
	})
}

// counter of answers that tests wait for.
type counter struct {
	mu   sync.Mutex // guards what follows
	n    int
	want int
	bell chan struct{}
}

// after returns a channel that is closed after so many more.
func (c *counter) after(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want, c.bell = c.n+n, make(chan struct{})
	return c.bell
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.n == c.want {
		close(c.bell)
	}
}
