package compat

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	mediaJSON    = "application/json"
	mediaMsgpack = "application/msgpack"
	mediaLines   = "application/x-ndjson"
	mediaFrames  = "application/vnd.zizq.msgpack-stream"
	mediaEvents  = "text/event-stream"
)

// client does calls over one transport in one format, and takes over HTTP/1.1
// connections of their own, as every official client does.
type client struct {
	t      testing.TB
	url    string
	format string // mediaJSON or mediaMsgpack
	queue  string // nobody else's

	calls, takes *http.Client
}

// transport is how calls travel: h1, or h2 by prior knowledge or ALPN.
func transport(t testing.TB, h2 bool, c *tls.Config) *http.Client {
	tr := &http.Transport{TLSClientConfig: c.Clone(), Protocols: new(http.Protocols), MaxIdleConnsPerHost: 32}
	tr.Protocols.SetHTTP1(!h2)
	tr.Protocols.SetHTTP2(h2 && c != nil)
	tr.Protocols.SetUnencryptedHTTP2(h2 && c == nil)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func newClient(t testing.TB, s *server, h2 bool, format string, c *tls.Config) *client {
	queue := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789", r|0x20) {
			return r
		}
		return '-'
	}, t.Name())
	return &client{t: t, url: s.url, format: format, queue: queue, calls: transport(t, h2, c), takes: transport(t, false, c)}
}

// raw is a body that is sent as it is.
type raw string

// answer is an answer that was read to its end.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   string
	value  any // read by the answer's own Content-Type
}

// call sends a body, given as JSON text, in the client's format, and reads the
// answer. header is a list of names and values over the usual ones.
func (c *client) call(method, path string, body any, header ...string) answer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	resp, err := c.calls.Do(c.request(ctx, method, path, body, header...))
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	a := answer{c.t, resp.StatusCode, resp.Header, string(content), nil}
	switch typ := resp.Header.Get("Content-Type"); {
	case len(content) == 0:
	case strings.Contains(typ, mediaMsgpack):
		a.value = unpack(c.t, content)
	case strings.Contains(typ, mediaJSON):
		a.value = value(c.t, a.body)
	default:
		c.t.Fatalf("%s %s answers %s %q", method, path, typ, content)
	}
	return a
}

func (c *client) request(ctx context.Context, method, path string, body any, header ...string) *http.Request {
	c.t.Helper()
	content := ""
	switch b := body.(type) {
	case raw:
		content = string(b)
	case string:
		if content = b; c.format == mediaMsgpack {
			content = string(pack(c.t, nil, value(c.t, b)))
		}
	}
	var r io.Reader
	if body != nil {
		r = strings.NewReader(content)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, r)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", c.format)
	if body != nil {
		req.Header.Set("Content-Type", c.format)
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i+1] == absent {
			req.Header.Del(header[i])
		}
	}
	return req
}

// absent takes a header away.
const absent = "\x00"

// want checks the status, and that an error is an object with a text.
func (a answer) want(status int, says ...string) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("got %d %q, want %d", a.status, a.body, status)
	}
	if status >= 400 && len(says) > 0 {
		if err, _ := a.at("error").(string); !strings.Contains(err, says[0]) {
			a.t.Errorf("the error is %q, want %q", err, says[0])
		}
	}
	return a
}

// at digs in the answer: names of members and indices. What is not there is nil.
func (a answer) at(path ...any) any { return at(a.value, path...) }

func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if v = nil; step < len(list) {
				v = list[step]
			}
		}
	}
	return v
}

func (a answer) id() string {
	a.t.Helper()
	id, _ := a.at("id").(string)
	if len(id) != 25 || strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
		a.t.Fatalf("%q is no id of a job", id)
	}
	return id
}

func number(t testing.TB, v any) int64 {
	t.Helper()
	n, _ := v.(json.Number)
	i, err := n.Int64()
	if err != nil {
		t.Fatalf("%v is no whole number", v)
	}
	return i
}

// same compares a value with JSON text.
func same(t testing.TB, what string, got any, want string) {
	t.Helper()
	if text(got) != text(value(t, want)) {
		t.Errorf("%s is\n     %s\nwant %s", what, text(got), text(value(t, want)))
	}
}

// enqueue puts a job into the client's queue; more are members of its body.
func (c *client) enqueue(more string) answer {
	c.t.Helper()
	return c.call("POST", "/jobs", `{"type":"t","queue":"`+c.queue+`","payload":null`+more+`}`).want(201)
}

// fresh gives the client another queue.
func (c *client) fresh() { c.queue += "x" }

// count counts jobs of the client's queue.
func (c *client) count(query string) int64 {
	c.t.Helper()
	return number(c.t, c.call("GET", "/jobs/count?queue="+c.queue+query, nil).want(200).at("count"))
}

// until asks again and again for what another goroutine of the server will do.
func (c *client) until(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// stream is an open take.
type stream struct {
	t      testing.TB
	media  string
	header http.Header
	from   *bufio.Reader
	cancel context.CancelFunc
}

// streamFormat is the format of takes that goes with that of the calls.
func (c *client) streamFormat() string {
	if c.format == mediaMsgpack {
		return mediaFrames
	}
	return mediaLines
}

// take opens a stream of the client's queue; query begins with & or is empty.
func (c *client) take(query string, header ...string) *stream {
	c.t.Helper()
	return c.takeOver(c.takes, "/jobs/take?queue="+c.queue+query, header...)
}

func (c *client) takeOver(over *http.Client, path string, header ...string) *stream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.t.Cleanup(cancel)
	resp, err := over.Do(c.request(ctx, "GET", path, nil, append([]string{"Accept", c.streamFormat()}, header...)...))
	if err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	c.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 {
		c.t.Fatalf("%s answers %s", path, resp.Status)
	}
	return &stream{c.t, resp.Header.Get("Content-Type"), resp.Header, bufio.NewReaderSize(resp.Body, 64), cancel}
}

// close leaves, as a worker that dies does.
func (s *stream) close() { s.cancel() }

// frame reads one frame; nil = a heartbeat.
func (s *stream) frame() (any, error) {
	switch s.media {
	case mediaFrames:
		var n uint32
		if err := binary.Read(s.from, binary.BigEndian, &n); err != nil || n == 0 {
			return nil, err
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(s.from, b); err != nil {
			return nil, err
		}
		return unpack(s.t, b), nil
	case mediaEvents:
		line, err := s.from.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if end, err := s.from.ReadString('\n'); err != nil || end != "\n" {
			s.t.Fatalf("an event %q ends in %q, %v", line, end, err)
		}
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			return value(s.t, data), nil
		}
		if line[0] != ':' || !strings.Contains(line, "heartbeat") {
			s.t.Fatalf("the comment %q is no heartbeat", line)
		}
		return nil, nil
	}
	line, err := s.from.ReadString('\n')
	if err != nil || line == "\n" {
		return nil, err
	}
	return value(s.t, line), nil
}

// next reads the next job, over heartbeats.
func (s *stream) next() answer {
	s.t.Helper()
	for {
		v, err := s.frame()
		if err != nil {
			s.t.Fatalf("reading a take: %v", err)
		}
		if v != nil {
			return answer{t: s.t, value: v}
		}
	}
}

// wantIDs reads as many jobs and compares their ids.
func (s *stream) wantIDs(ids ...string) {
	s.t.Helper()
	for i, id := range ids {
		if got := s.next().id(); got != id {
			s.t.Errorf("job %d is %s, want %s of %s", i, got, id, strings.Join(ids, " "))
		}
	}
}

func quoted(ids ...string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.Quote(id)
	}
	return "[" + strings.Join(list, ",") + "]"
}
