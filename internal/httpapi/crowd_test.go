package httpapi_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// hall is a server behind a crowd of limited size.
type hall struct {
	t     *testing.T
	crowd *httpapi.Crowd
	addr  net.Addr
	log   *lockedLog
}

type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func openHall(t *testing.T, l net.Listener, total, each int, plain bool) *hall {
	t.Helper()
	h := &hall{t: t, log: &lockedLog{}, addr: l.Addr()}
	h.crowd = &httpapi.Crowd{Total: total, PerAddress: each, Log: slog.New(slog.NewTextHandler(h.log, nil))}
	srv := httpapi.NewServer(httpapi.New(httpapi.Options{Null: true}))
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(h.crowd.Limit(l, plain)) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return h
}

// enters opens a connection and asks for something; it returns the answer's
// status, 0 if there was none.
func (h *hall) enters(dial *net.Dialer) (conn net.Conn, status int, body string) {
	h.t.Helper()
	conn, err := dial.Dial(h.addr.Network(), h.addr.String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprint(conn, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return conn, 0, err.Error()
	}
	text, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return conn, res.StatusCode, string(text)
}

func tcp(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func from(addr string) *net.Dialer {
	return &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 0))}
}

func TestOneConnectionTooManyIsToldSo(t *testing.T) {
	h := openHall(t, tcp(t), 3, 3, true)
	var in []net.Conn
	for range 3 {
		conn, status, _ := h.enters(&net.Dialer{})
		if status != 200 {
			t.Fatalf("got %d", status)
		}
		in = append(in, conn)
	}
	for range 5 {
		if _, status, body := h.enters(&net.Dialer{}); status != 503 || object(t, body)["code"] != "unavailable" || !strings.Contains(body, "max-connections)") {
			t.Fatalf("got %d %s", status, body)
		}
	}
	if h.crowd.Open() != 3 || h.crowd.Refused() != 5 {
		t.Errorf("%d are open and %d were refused", h.crowd.Open(), h.crowd.Refused())
	}
	if n := strings.Count(h.log.String(), "connections refused"); n != 1 || !strings.Contains(h.log.String(), "limit=max-connections latest_from=127.0.0.1") {
		t.Errorf("the log says so %d times: %s", n, h.log)
	}
	_ = in[1].Close()
	eventually(t, "there is room again", func() bool { return h.crowd.Open() == 2 })
	if _, status, body := h.enters(&net.Dialer{}); status != 200 {
		t.Errorf("got %d %s", status, body)
	}
}

// eventually waits for what a goroutine of the server does about a connection.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, again := time.After(2*time.Minute), time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("it never came to pass that %s", what)
		case <-again.C:
		}
	}
}

// However many come at once, each is told, also while others that were told ask
// for nothing and stay.
func TestEachOfManyConnectionsTooManyIsToldSo(t *testing.T) {
	h := openHall(t, tcp(t), 1, 1, true)
	h.enters(&net.Dialer{})
	var idle []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", h.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
		idle = append(idle, conn)
	}
	for i, conn := range idle {
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "HTTP/1.1 503 Service Unavailable\r\n" {
			t.Fatalf("connection %d: %q, %v", i, line, err)
		}
	}
}

func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	h := openHall(t, tcp(t), 100, 2, true)
	first, second := from("127.0.0.1"), from("127.0.0.2")
	for range 2 {
		if _, status, body := h.enters(first); status != 200 {
			t.Fatalf("got %d %s", status, body)
		}
	}
	if _, status, body := h.enters(first); status != 503 || !strings.Contains(body, "max-connections-per-address") {
		t.Errorf("got %d %s", status, body)
	}
	conn, status, body := h.enters(second)
	if status != 200 {
		t.Errorf("another address: got %d %s", status, body)
	}
	_ = conn.Close()
}

func TestWhereTLSIsSpokenARefusalIsSilent(t *testing.T) {
	h := openHall(t, tcp(t), 1, 1, false)
	h.enters(&net.Dialer{})
	if _, status, _ := h.enters(&net.Dialer{}); status != 0 {
		t.Errorf("got %d", status)
	}
}

func TestAUnixSocketHasNoAddressToCount(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	h := openHall(t, l, 3, 1, true)
	for range 3 {
		if _, status, body := h.enters(&net.Dialer{}); status != 200 {
			t.Errorf("got %d %s", status, body)
		}
	}
	if _, status, _ := h.enters(&net.Dialer{}); status != 503 {
		t.Errorf("one too many: got %d", status)
	}
}

func TestTooLongAHeaderIsRefused(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(200, "*", "GET", "/health", "", "X-Long", strings.Repeat("x", 200<<10))
		r := a.request("GET", "/health", "", "X-Long", strings.Repeat("x", 300<<10))
		resp, err := a.client.Do(r)
		if err != nil {
			return // h2: the client itself holds to the limit, or the stream is reset
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got %d", resp.StatusCode)
		}
	})
}

func TestOnlySoManyStreamsAreOpen(t *testing.T) {
	bothProtocols(t, httpapi.Options{StreamsMax: 2}, func(t *testing.T, a *api) {
		one := a.take("?queue=a")
		a.take("?queue=b")
		for _, c := range []struct{ method, path, sent string }{{"GET", "/jobs/take?queue=c", ""}, {"POST", "/jobs/lease", `{}`}} {
			got := a.call(c.method, c.path, c.sent)
			if got.status != 503 || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "max-streams") {
				t.Errorf("%s: got %d %s", c.path, got.status, got.body)
			}
		}
		a.put("") // others are not meant
		one.close()
		a.eventually("there is room again", func() bool { return a.call("POST", "/jobs/lease", `{"queues":["x"]}`).status == 200 })
	})
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestACompressedBodyIsTakenWithinBounds(t *testing.T) {
	bothProtocols(t, httpapi.Options{BodyMax: 100_000}, func(t *testing.T, a *api) {
		one := func(pad string) string { return `{"type":"t","queue":"q","payload":"` + pad + `"}` }
		random := strings.Repeat("q8Zt0", 10) + strings.Repeat("4jX2ms", 9)
		var varied strings.Builder // compresses, but not a hundred times
		for i := range 30_000 {
			fmt.Fprint(&varied, i*i%9973)
		}
		for _, c := range []struct {
			name, sent, encoding string
			status               int
			says                 string
		}{
			{"gzip", zipped(t, one(random)), "gzip", 201, ""},
			{"in capitals", zipped(t, one(random)), "GZIP", 201, ""},
			{"two parts", zipped(t, one(random)[:20]) + zipped(t, one(random)[20:]), "x-gzip", 201, ""},
			{"as it is", one(random), "identity", 201, ""},
			{"larger than body-max once inflated", zipped(t, one(varied.String())), "gzip", 413, "larger than 100000 bytes"},
			{"a bomb", zipped(t, one(strings.Repeat("x", 90_000))), "gzip", 413, "more than 100 times"},
			{"another encoding", "x", "br", 415, "content encoding"},
			{"two encodings", zipped(t, one(random)), "gzip, gzip", 415, "content encoding"},
			{"no gzip", one(random), "gzip", 400, "not gzip"},
			{"a broken one", zipped(t, one(random))[:60], "gzip", 400, "not gzip"},
			{"a wrong sum", zipped(t, one(random))[:len(zipped(t, one(random)))-5] + "xxxxx", "gzip", 400, "not gzip"},
			{"nothing", "", "gzip", 400, "not gzip"},
			{"gzip that says it is not", zipped(t, one(random)), "", 400, "invalid JSON"},
		} {
			header := []string{}
			if c.encoding != "" {
				header = []string{"Content-Encoding", c.encoding}
			}
			got := a.call("POST", "/jobs", c.sent, header...)
			if got.status != c.status || !strings.Contains(got.body, c.says) {
				t.Errorf("%s: got %d %s, want %d %s", c.name, got.status, got.body, c.status, c.says)
			}
		}
		a.want(200, `{"count":4}`, "GET", "/jobs/count", "")
	})
}
