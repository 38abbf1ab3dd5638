package listen

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// intake keeps what it takes, as JSON.
type intake struct {
	mu    sync.Mutex
	list  []string
	fail  error
	gate  chan struct{} // closed while it takes; nil = it always does
	taken chan string
}

func newIntake() *intake { return &intake{taken: make(chan string, 1<<16)} }

func (*intake) Cursors(context.Context) (map[string][]byte, error) { return map[string][]byte{}, nil }

func (in *intake) Take(ctx context.Context, list ...connect.Records) error {
	if in.gate != nil {
		select {
		case <-in.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.fail != nil {
		return in.fail
	}
	for _, l := range list {
		w := record.NewJSONWriter(record.Lines, "date", record.Double, false)
		out, n, err := w.AppendChunk(nil, l.Events)
		if err != nil || n != l.Count {
			return errors.New("the events are broken")
		}
		for line := range strings.Lines(string(out)) {
			in.list = append(in.list, l.Tag+" "+strings.TrimSuffix(line, "\n"))
			in.taken <- l.Tag + " " + strings.TrimSuffix(line, "\n")
		}
	}
	return nil
}

// take is what was taken since it was last called.
func (in *intake) take() (list []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	list, in.list = in.list, nil
	return list
}

func (in *intake) want(t *testing.T, records ...string) {
	t.Helper()
	for _, want := range records {
		select {
		case got := <-in.taken:
			if got != want {
				t.Fatalf("took %s, want %s", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing more came; want %s", want)
		}
	}
}

func at7() time.Time { return time.Unix(7, 0) }

// run runs a source until the test ends, and returns its address.
func run(t testing.TB, into connect.Intake, make func(Address) (connect.Source, error)) string {
	t.Helper()
	opened := make1[net.Addr]()
	s, err := make(Address{Now: at7, Opened: func(a net.Addr) { opened <- a }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make1[error]()
	go func() { done <- s.Run(ctx, into) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-opened:
		return a.String()
	case err := <-done:
		done <- nil
		t.Fatal(err)
		return ""
	}
}

func make1[T any]() chan T { return make(chan T, 1) }

func startHTTP(t testing.TB, in connect.Intake, change func(*HTTPOptions)) string {
	return "http://" + run(t, in, func(a Address) (connect.Source, error) {
		o := HTTPOptions{Address: a, Tag: "http.0"}
		if change != nil {
			change(&o)
		}
		return NewHTTP(o)
	})
}

func send(t *testing.T, url, body string, header ...string) reply {
	t.Helper()
	method := http.MethodPost
	if len(header) > 1 && header[0] == "method" {
		method, header = header[1], header[2:]
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

type reply struct {
	status int
	header http.Header
	text   string
}

func zip(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func TestRequests(t *testing.T) {
	in := newIntake()
	url := startHTTP(t, in, func(o *HTTPOptions) { o.TagKey, o.BufferMaxSize = "key", 200_000 })
	for _, test := range []struct {
		name, path, body string
		header           []string
		status           int
		want             []string
	}{
		{"an object", "/", `{"a":1}`, nil, 201, []string{`http.0 {"date":7.0,"a":1}`}},
		{"the tag is the path", "/app.log_1", `{"a":1}`, nil, 201, []string{`app.log_1 {"date":7.0,"a":1}`}},
		{"signs in the path", "/a/b-c%20d", `{"a":1}`, nil, 201, []string{`a_b_c_d {"date":7.0,"a":1}`}},
		{"an array", "/x?y=1", `[{"a":1},{"b":[2]}]`, nil, 201, []string{`x {"date":7.0,"a":1}`, `x {"date":7.0,"b":[2]}`}},
		{"several values", "/x", "{\"a\":1}{\"b\":2}\n[{\"c\":3}]", nil, 201, []string{`x {"date":7.0,"a":1}`, `x {"date":7.0,"b":2}`, `x {"date":7.0,"c":3}`}},
		{"an empty array", "/x", "[]", nil, 201, nil},
		{"a tag of its own", "/x", `[{"key":"k","a":1},{"key":3},{"key":""},{"key":"k"}]`, nil, 201, []string{`k {"date":7.0,"key":"k","a":1}`, `x {"date":7.0,"key":3}`, `x {"date":7.0,"key":""}`, `k {"date":7.0,"key":"k"}`}},
		{"a character set", "/x", `{"a":1}`, []string{"Content-Type", "application/json; charset=utf-8"}, 201, []string{`x {"date":7.0,"a":1}`}},
		{"a form", "/x", "a=1&b=x+y%26&=&c", []string{"Content-Type", formType}, 201, []string{`x {"date":7.0,"a":"1","b":"x y&","c":""}`}},
		{"gzip", "/x", zip(`{"a":1}`), []string{"Content-Encoding", "gzip"}, 201, []string{`x {"date":7.0,"a":1}`}},
		{"another method", "/x", "", []string{"method", "GET"}, 400, nil},
		{"no content type", "/x", `{}`, []string{"Content-Type", ""}, 400, nil},
		{"another content type", "/x", `{}`, []string{"Content-Type", "text/plain"}, 400, nil},
		{"nothing", "/x", " ", nil, 400, nil},
		{"no JSON", "/x", `{"a":1}{`, nil, 400, nil},
		{"no object", "/x", `{"a":1} 7`, nil, 400, nil},
		{"no objects", "/x", `[{"a":1},7]`, nil, 400, nil},
		{"deep", "/x", strings.Repeat(`[`, 20_000), nil, 400, nil},
		{"a broken form", "/x", "a=%zz", []string{"Content-Type", formType}, 400, nil},
		{"no gzip", "/x", `{}`, []string{"Content-Encoding", "gzip"}, 400, nil},
		{"half of gzip", "/x", zip(`{"a":1}`)[:20], []string{"Content-Encoding", "gzip"}, 400, nil},
		{"another encoding", "/x", `{}`, []string{"Content-Encoding", "br"}, 415, nil},
		{"too long", "/x", `{"a":"` + strings.Repeat("x", 200_000) + `"}`, nil, 413, nil},
		{"too long inflated", "/x", zip(`{"a":"` + strings.Repeat("x", 190_000) + `"}`), []string{"Content-Encoding", "gzip"}, 413, nil},
		{"a name that is not ours", "/x", `{}`, []string{"Host", "evil.example"}, 403, nil},
		{"a page of others", "/x", `{}`, []string{"Origin", "http://evil.example"}, 403, nil},
		{"a page of others that says so", "/x", `{}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, nil},
		{"our name", "/x", `{"a":1}`, []string{"Host", "localhost:99"}, 201, []string{`x {"date":7.0,"a":1}`}},
	} {
		resp := send(t, url+test.path, test.body, test.header...)
		if resp.status != test.status {
			t.Errorf("%s: answered %d %s, want %d", test.name, resp.status, resp.text, test.status)
		}
		if got := in.take(); !slices.Equal(got, test.want) {
			t.Errorf("%s: took %q, want %q", test.name, got, test.want)
		}
	}
}

func TestAnswersAreThoseThatWereAskedFor(t *testing.T) {
	in := newIntake()
	url := startHTTP(t, in, func(o *HTTPOptions) {
		o.SuccessfulResponseCode, o.SuccessHeader, o.AddRemoteAddr, o.EnableHealthEndpoint = 204, []string{"X-Custom yes", "x-more a b"}, true, true
		o.AllowHosts = []string{"logs.example"}
	})
	resp := send(t, url, `{"a":1}`, "Host", "logs.example", "Origin", "https://logs.example")
	if resp.status != 204 || resp.header.Get("X-Custom") != "yes" || resp.header.Get("X-More") != "a b" {
		t.Errorf("answered %d %v", resp.status, resp.header)
	}
	in.want(t, `http.0 {"date":7.0,"a":1,"REMOTE_ADDR":"127.0.0.1"}`)
	send(t, url, `{"a":1}`, "X-Forwarded-For", "10.0.0.1, 10.0.0.2")
	in.want(t, `http.0 {"date":7.0,"a":1,"REMOTE_ADDR":"10.0.0.1"}`)
	if resp = send(t, url+"/health", "", "method", "GET"); resp.status != 200 {
		t.Errorf("the health is %d", resp.status)
	}
}

func TestNothingIsAnsweredBeforeItWasTaken(t *testing.T) {
	in := newIntake()
	in.gate = make(chan struct{})
	url := startHTTP(t, in, func(o *HTTPOptions) { o.AnswerWithin = time.Millisecond })
	resp := send(t, url, `{"a":1}`)
	if resp.status != 503 || resp.header.Get("Retry-After") != "1" || len(in.take()) > 0 {
		t.Fatalf("answered %d %v", resp.status, resp.header)
	}
	close(in.gate)
	in.mu.Lock()
	in.fail = errors.New("the disk is full")
	in.mu.Unlock()
	if resp := send(t, url, `{"a":1}`); resp.status != 503 || strings.Contains(resp.text, "disk") {
		t.Fatalf("answered %d %s", resp.status, resp.text)
	}
	in.mu.Lock()
	in.fail = nil
	in.mu.Unlock()
	if resp := send(t, url, `{"a":1}`); resp.status != 201 || len(in.take()) != 1 {
		t.Fatalf("answered %d", resp.status)
	}
}

func TestAllBodiesTogetherHaveABound(t *testing.T) {
	in := newIntake()
	in.gate = make(chan struct{})
	h, err := NewHTTP(HTTPOptions{Address: Address{Now: at7}, QueueByteLimit: 100})
	if err != nil {
		t.Fatal(err)
	}
	h.waiting.Store(99)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/", strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if err := h.take(nil, r, in); !errors.Is(err, errBusy) || h.waiting.Load() != 99 {
		t.Fatalf("%v, %d bytes wait", err, h.waiting.Load())
	}
}

func TestFaultsOfAnHTTPInput(t *testing.T) {
	_, err := NewHTTP(HTTPOptions{
		Address: Address{Listen: "a b", Port: 70000}, SuccessfulResponseCode: 202, SuccessHeader: []string{"x"}, BufferMaxSize: -1,
		MaxConnections: -1, QueueByteLimit: -1, IdleTimeout: -1,
	})
	wantFaults(t, err, "listen", "port", "successful_response_code", "success_header", "buffer_max_size", "http_server.max_connections", "http_server.ingress_queue_byte_limit", "http_server.idle_timeout")
}

func wantFaults(t *testing.T, err error, names ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("they were taken")
	}
	for _, name := range names {
		if !strings.Contains("\n"+err.Error(), "\n"+name+": ") {
			t.Errorf("%q does not speak of %s", err, name)
		}
	}
}

func TestAPortThatIsTakenEndsTheRun(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	h, err := NewHTTP(HTTPOptions{Address: Address{Port: l.Addr().(*net.TCPAddr).Port, Now: at7}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Run(t.Context(), newIntake()); err == nil || !strings.HasPrefix(err.Error(), "listen: ") {
		t.Fatal(err)
	}
}

func FuzzHTTPBody(f *testing.F) {
	f.Add([]byte(`[{"key":"a"},{"b":[1,{}]}] {}`), false)
	f.Add([]byte(`a=b&c=%20`), true)
	f.Fuzz(func(t *testing.T, body []byte, form bool) {
		c := &collector{tag: "t", key: "key", extra: field("r", "1"), now: record.Time{Sec: 7}}
		var err error
		if form {
			err = c.form(body)
		} else {
			err = c.json(body)
		}
		if err == nil {
			if err := newIntake().Take(t.Context(), c.list...); err != nil {
				t.Fatal(err)
			}
		}
	})
}
