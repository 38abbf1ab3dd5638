package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

// api is a server on a socket with a real engine, and a client of it.
type api struct {
	t       testing.TB
	url     string
	client  *http.Client
	engine  *part.Engine
	handler http.Handler
	ids     []string // of enqueued jobs, in order
}

// newEngine starts an engine on a store in memory.
func newEngine(t testing.TB) *part.Engine {
	clock := engine.SystemClock()
	e := part.New(mem.Open(mem.Options{Now: clock.Wall}), clock, rand.Uint64, slog.New(slog.DiscardHandler),
		engine.Options{Server: rule.DefaultServer(), Reattach: 30_000, Changes: httpapi.QueueChanges})
	e.Folds.Folder = jobs.Fold(0)
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func start(t testing.TB, o httpapi.Options) *api {
	t.Helper()
	if o.Engine == nil {
		o.Engine = newEngine(t)
	}
	if o.Inboxes == nil {
		o.Inboxes = inboxesOf(t, o.Engine)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := httpapi.New(o)
	server := httpapi.NewServer(handler)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	a := &api{t: t, url: "http://" + listener.Addr().String(), engine: o.Engine, handler: handler}
	a.speak(false)
	t.Cleanup(func() {
		a.client.CloseIdleConnections()
		_ = server.Close()
		<-done
	})
	return a
}

// speak chooses the protocol: HTTP/1.1, or HTTP/2 by prior knowledge.
func (a *api) speak(h2 bool) {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!h2)
	transport.Protocols.SetUnencryptedHTTP2(h2)
	a.client = &http.Client{Transport: transport}
	if t, ok := a.t.(*testing.T); ok {
		a.client.Transport = watched{transport, t, false}
	}
	a.t.Cleanup(transport.CloseIdleConnections)
}

// bothProtocols runs a test on HTTP/1.1 and on HTTP/2, each with a new server.
func bothProtocols(t *testing.T, o httpapi.Options, test func(t *testing.T, a *api)) {
	for _, name := range []string{"h1", "h2c"} {
		t.Run(name, func(t *testing.T) {
			a := start(t, o)
			a.speak(name == "h2c")
			test(t, a)
		})
	}
}

// request makes a request; header is a list of names and values.
func (a *api) request(method, path, body string, header ...string) *http.Request {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	return r
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a *api) do(r *http.Request) answer {
	a.t.Helper()
	resp, err := a.client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	if n := resp.Header.Get("Content-Length"); resp.StatusCode != http.StatusNoContent && r.Method != http.MethodHead && n != strconv.Itoa(len(body)) {
		a.t.Errorf("%s %s: Content-Length %q for %d bytes", r.Method, r.URL.Path, n, len(body))
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func (a *api) call(method, path, body string, header ...string) answer {
	a.t.Helper()
	return a.do(a.request(method, path, body, header...))
}

// want calls and compares the status, and the body unless it is "*".
func (a *api) want(status int, body, method, path, sent string, header ...string) string {
	a.t.Helper()
	got := a.call(method, path, sent, header...)
	if got.status != status || body != "*" && got.body != body {
		a.t.Errorf("%s %s %.200s\n got %d %s\nwant %d %s", method, path, sent, got.status, got.body, status, body)
	}
	return got.body
}

// put enqueues one job and returns its id.
func (a *api) put(members string) string {
	a.t.Helper()
	body := `{"type":"t","queue":"q","payload":null` + members + `}`
	j := object(a.t, a.want(201, "*", "POST", "/jobs", body))
	a.ids = append(a.ids, j["id"].(string))
	return a.ids[len(a.ids)-1]
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// stream is an open take.
type stream struct {
	t      testing.TB
	resp   *http.Response
	lines  *bufio.Reader
	cancel func()
}

func (a *api) take(query string, header ...string) *stream {
	a.t.Helper()
	r := a.request("GET", "/jobs/take"+query, "", header...)
	ctx, cancel := context.WithCancel(r.Context())
	resp, err := a.client.Do(r.WithContext(ctx)) //nolint:bodyclose // returns with the headers; the stream closes it
	if err != nil {
		a.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/x-ndjson" {
		a.t.Fatalf("take answers %d %s", resp.StatusCode, resp.Header)
	}
	s := &stream{a.t, resp, bufio.NewReader(resp.Body), cancel}
	a.t.Cleanup(s.close)
	return s
}

// next reads the next job, over heartbeats.
func (s *stream) next() map[string]any {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("reading a take: %v", err)
		}
		if line != "\n" {
			return object(s.t, line)
		}
	}
}

func (s *stream) close() {
	s.cancel()
	_ = s.resp.Body.Close()
}

// eventually waits for what another goroutine of the server will do, by the
// engine's own commits: every Count is answered after what came before it.
func (a *api) eventually(what string, ok func() bool) {
	a.t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			a.t.Fatalf("it never came to pass that %s", what)
		default:
			a.call("GET", "/health", "")
		}
	}
}

func (a *api) status(id string) string {
	a.t.Helper()
	got := a.call("GET", "/jobs/"+id, "")
	if got.status != http.StatusOK {
		return strconv.Itoa(got.status)
	}
	return object(a.t, got.body)["status"].(string)
}

// logged collects log lines.
type logged struct{ bytes.Buffer }

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
