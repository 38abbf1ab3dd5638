package ship

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

// server answers as the test says and keeps what it got.
type server struct {
	*httptest.Server
	mu     sync.Mutex // guards what follows
	got    []*http.Request
	bodies []string
}

func newServer(t *testing.T, answer http.HandlerFunc) *server {
	s := &server{}
	s.Server = httptest.NewServer(s.handler(t, answer))
	t.Cleanup(s.Close)
	return s
}

func (s *server) handler(t *testing.T, answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.got, s.bodies = append(s.got, r), append(s.bodies, unpack(t, r.Header.Get("Content-Encoding"), body))
		s.mu.Unlock()
		answer(w, r)
	})
}

func unpack(t *testing.T, encoding string, body []byte) string {
	var err error
	switch encoding {
	case "gzip":
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(r)
		}
	case "snappy":
		body, err = s2.Decode(nil, body)
	case "zstd":
		var r *zstd.Decoder
		if r, err = zstd.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(r)
			r.Close()
		}
	}
	if err != nil {
		t.Errorf("%s: %v", encoding, err)
	}
	return string(body)
}

// last are the last request and its body.
func (s *server) last() (*http.Request, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[len(s.got)-1], s.bodies[len(s.bodies)-1]
}

// count says how many requests came.
func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

func answerWith(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // the client may be gone
	}
}

// at points a target to an address.
func at(t testing.TB, target *Target, address string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	target.Host = host
	if target.Port, err = net.LookupPort("tcp", port); err != nil {
		t.Fatal(err)
	}
}

func newHTTP(t *testing.T, address string, change func(*HTTPOptions)) *HTTP {
	t.Helper()
	o := DefaultHTTP()
	at(t, &o.Target, address)
	if change != nil {
		change(&o)
	}
	s, err := NewHTTP(o)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, s)
	return s
}

func closing(t *testing.T, s connect.Sink) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// raw answers each connection with these bytes, and keeps it open until the test is over or
// ends it, once a request was read.
func raw(t *testing.T, text string, end bool) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return // the client is gone
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(conn, text)
				if !end {
					<-over
				}
			})
		}
	})
	t.Cleanup(func() {
		close(over)
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// object is the raw value of a JSON text.
func object(t testing.TB, text string) []byte {
	t.Helper()
	body, err := record.AppendFromJSON(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// chunk has one event for each JSON text, the first at the second 1.
func chunk(t testing.TB, bodies ...string) (events []byte) {
	t.Helper()
	for i, body := range bodies {
		events = record.AppendEvent(events, record.Time{Sec: int64(i + 1)}, nil, object(t, body))
	}
	return events
}

// bodiesOf are the bodies of the events of a chunk as JSON, one a line.
func bodiesOf(t *testing.T, events []byte) string {
	t.Helper()
	text, _, err := record.NewJSONWriter(record.Lines, "", "", false).AppendChunk(nil, events)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " ")
}

func deliver(ctx context.Context, s connect.Sink, events []byte) connect.Result {
	return s.Deliver(ctx, &connect.Batch{Queue: "pipeline/p/out", Messages: []connect.Message{{ID: "j1", Attempt: 1, Type: "app.web", Body: events}}})[0]
}

// whole reports a result that is of the whole chunk.
func whole(t *testing.T, name string, r connect.Result, outcome job.Outcome, text string) {
	t.Helper()
	if r.Outcome != outcome || r.Parts != nil || !strings.Contains(r.Failure.Message, text) {
		t.Errorf("%s: %+v, want %s of the whole with %q", name, r, outcome, text)
	}
	if bad := outcome == job.Retried || outcome == job.Died; bad && (r.Failure.Type == "" || r.Failure.Message == "") {
		t.Errorf("%s tells no reason: %+v", name, r)
	}
}
