package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// client speaks to a server as a stranger would: net/http and JSON. It is not
// package client, which would hide what these tests look for.
type client struct {
	url  string
	http *http.Client
}

// reply is an answer that arrived whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// into reads the body of an answer.
func (r reply) into(v any) error { return json.Unmarshal(r.body, v) }

func dial(url string) *client {
	return &client{url: url, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// dialH2 speaks HTTP/2 with prior knowledge, as Zizq's clients do.
func dialH2(url string) *client {
	only := new(http.Protocols)
	only.SetUnencryptedHTTP2(true)
	return &client{url: url, http: &http.Client{Transport: &http.Transport{Protocols: only}}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// request makes a request; body is JSON text, a value to be written as JSON,
// or nil.
func (c *client) request(ctx context.Context, method, path string, body any, header ...string) (*http.Request, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, r)
	if err != nil {
		return nil, err
	}
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req, nil
}

// do sends a request. An error means that no whole answer came: what became of
// the request is unknown.
func (c *client) do(ctx context.Context, method, path string, body any, header ...string) (reply, error) {
	req, err := c.request(ctx, method, path, body, header...)
	if err != nil {
		return reply{}, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, text}, err
}

// must sends a request whose answer has to have the status, and reads it into
// v unless that is nil.
func (c *client) must(t testing.TB, status int, v any, method, path string, body any, header ...string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := c.do(ctx, method, path, body, header...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if r.status != status {
		t.Fatalf("%s %s: %s, want %d", method, path, r, status)
	}
	if v != nil {
		if err := r.into(v); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, r.body)
		}
	}
	return r
}

func (c *client) enqueue(t testing.TB, queue string, payload any) wire.Enqueued {
	t.Helper()
	var out wire.Enqueued
	c.must(t, 201, &out, "POST", "/jobs", map[string]any{"type": "test", "queue": queue, "payload": payload})
	return out
}

// enqueueMany puts n jobs into a queue with one request; each payload is its
// number.
func (c *client) enqueueMany(t testing.TB, queue string, n int) []wire.Enqueued {
	t.Helper()
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{"type": "test", "queue": queue, "payload": i}
	}
	var out wire.BulkEnqueued
	c.must(t, 201, &out, "POST", "/jobs/bulk", map[string]any{"jobs": list})
	return out.Jobs
}

func (c *client) get(t testing.TB, id string) wire.Job {
	t.Helper()
	var out wire.Job
	c.must(t, 200, &out, "GET", "/jobs/"+id, nil)
	return out
}

func (c *client) count(t testing.TB, query string) int64 {
	t.Helper()
	var out wire.Count
	c.must(t, 200, &out, "GET", "/jobs/count?"+query, nil)
	return out.Count
}

// list reads all pages.
func (c *client) list(t testing.TB, query string) []wire.Job {
	t.Helper()
	var all []wire.Job
	path := "/jobs?limit=2000&" + query
	for {
		var page wire.Page
		c.must(t, 200, &page, "GET", path, nil)
		all = append(all, page.Jobs...)
		if page.Pages.Next == nil {
			return all
		}
		path = *page.Pages.Next
	}
}

// settle ends one attempt by its token.
func (c *client) settle(t testing.TB, s wire.Settle) wire.Verdict {
	t.Helper()
	var out wire.Verdicts
	c.must(t, 200, &out, "POST", "/jobs/settle", []wire.Settle{s})
	if len(out.Verdicts) != 1 || out.Verdicts[0].ID != s.ID {
		t.Fatalf("the verdicts are %+v", out.Verdicts)
	}
	return out.Verdicts[0]
}

// takeStream is an open GET /jobs/take.
type takeStream struct {
	body   io.ReadCloser
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// openTake opens a stream and returns once the headers are there.
func (c *client) openTake(ctx context.Context, worker string, prefetch int, queues ...string) (*takeStream, error) {
	query := url.Values{"prefetch": {fmt.Sprint(prefetch)}, "queue": {strings.Join(queues, ",")}}
	var header []string
	if worker != "" {
		query.Set("lease", "token")
		header = []string{"Worker-Id", worker}
	}
	return c.openQuery(ctx, query.Encode(), header...)
}

// openQuery opens a stream with a query and headers of its own.
func (c *client) openQuery(ctx context.Context, query string, header ...string) (*takeStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := c.request(ctx, "GET", "/jobs/take?"+query, nil, header...)
	if err != nil {
		cancel()
		return nil, err
	}
	res, err := c.http.Do(req) //nolint:bodyclose // takeStream closes it
	if err != nil {
		cancel()
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		cancel()
		return nil, fmt.Errorf("take: %d %s", res.StatusCode, text)
	}
	return &takeStream{body: res.Body, lines: bufio.NewReaderSize(res.Body, 64<<10), cancel: cancel}, nil
}

// next reads the next job, over heartbeats.
func (s *takeStream) next() (j wire.Job, err error) {
	for {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return j, err
		}
		if len(line) > 1 {
			return j, json.Unmarshal(line, &j)
		}
	}
}

// more reports whether a job can be read without waiting for the network.
func (s *takeStream) more() bool {
	waiting, _ := s.lines.Peek(s.lines.Buffered())
	for len(waiting) > 0 && waiting[0] == '\n' { // heartbeats
		_, _ = s.lines.Discard(1)
		waiting = waiting[1:]
	}
	return bytes.IndexByte(waiting, '\n') >= 0
}

func (s *takeStream) Close() error {
	s.cancel()
	return s.body.Close()
}

// take opens a stream that is closed with the test.
func (c *client) take(t testing.TB, worker string, prefetch int, queues ...string) *takeStream {
	t.Helper()
	s, err := c.openTake(t.Context(), worker, prefetch, queues...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// read reads n jobs that have to come soon.
func (s *takeStream) read(t testing.TB, n int) []wire.Job {
	t.Helper()
	late := time.AfterFunc(patience, s.cancel)
	defer late.Stop()
	list := make([]wire.Job, n)
	for i := range list {
		var err error
		if list[i], err = s.next(); err != nil {
			t.Fatalf("job %d of %d did not come: %v", i+1, n, err)
		}
	}
	return list
}

// raw opens a connection to write on by hand.
func raw(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}
