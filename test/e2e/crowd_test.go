package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// serves checks that others are served while something bad goes on: a job goes
// through its whole life.
func serves(t *testing.T, s *server) {
	t.Helper()
	c := dial(s.url)
	defer c.close()
	c.must(t, 200, nil, "GET", "/health", nil)
	stream := c.take(t, "", 1, "others")
	defer func() { _ = stream.Close() }()
	id := c.enqueue(t, "others", "hello").ID
	if j := stream.read(t, 1)[0]; j.ID != id {
		t.Errorf("another worker got %s, want %s", j.ID, id)
	}
	c.must(t, 204, nil, "POST", "/jobs/"+id+"/success", nil)
}

// takeRaw writes the request of a take and reads the header of the answer.
func takeRaw(t *testing.T, conn net.Conn, query string) *bufio.Reader {
	t.Helper()
	fmt.Fprintf(conn, "GET /jobs/take?%s HTTP/1.1\r\nHost: localhost\r\n\r\n", query)
	r := bufio.NewReaderSize(conn, 256)
	for {
		line, err := r.ReadString('\n')
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.HasPrefix(line, "HTTP/") && !strings.HasPrefix(line, "HTTP/1.1 200 "):
			t.Fatalf("the take was answered with %q", line)
		case line == "\r\n":
			return r
		}
	}
}

// TestAThousandConnectionsThatDropGiveEverythingBack opens a thousand streams
// that each take a job, and drops them: half politely, half not.
func TestAThousandConnectionsThatDropGiveEverythingBack(t *testing.T) {
	t.Parallel()
	const crowd = 1000
	s := start(t, t.TempDir())
	c := dial(s.url)
	var ids []string
	for _, j := range c.enqueueMany(t, "crowd", crowd) {
		ids = append(ids, j.ID)
	}
	for round := range 2 {
		conns := make([]*net.TCPConn, crowd)
		for i := range conns {
			conns[i] = raw(t, s.addr)
			takeRaw(t, conns[i], "queue=crowd&prefetch=1")
		}
		until(t, "everybody has a job", func() (bool, string) {
			n := c.count(t, "queue=crowd&status=in_flight")
			return n == crowd, fmt.Sprint(n)
		})
		serves(t, s)
		for i, conn := range conns {
			if i%2 == 0 {
				_ = conn.SetLinger(0) // a reset, as from a machine that died
			}
		}
		closeAll(conns)
		serves(t, s)
		until(t, "all jobs are ready again", func() (bool, string) {
			n := c.count(t, "queue=crowd&status=ready")
			return n == crowd, fmt.Sprint(n)
		})
		var there []string
		for _, j := range c.list(t, "queue=crowd") {
			there = append(there, j.ID)
			if j.Attempts != 0 || int(j.Losses) != round+1 { // charged to nobody, and counted
				t.Fatalf("after %d losses a job is %+v", round+1, j)
			}
		}
		if !slices.Equal(there, ids) {
			t.Fatalf("%d jobs are there, want the same %d", len(there), crowd)
		}
	}
	conns := make([]*net.TCPConn, crowd)
	for i := range conns { // and those who say nothing, or nothing that makes sense
		conns[i] = raw(t, s.addr)
		if i%2 == 0 {
			fmt.Fprint(conns[i], "\x16\x03\x01hello?\r\n\r\n")
		}
	}
	serves(t, s)
	closeAll(conns)
	serves(t, s)
}

// TestHalfARequestChangesNothing holds many requests open that never become
// whole.
func TestHalfARequestChangesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	c := dial(s.url)
	const each = 100
	body := `{"type":"t","queue":"half","payload":"` + strings.Repeat("x", 1000) + `"}`
	header := "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	var headless, bodyless []*net.TCPConn
	for range each {
		conn := raw(t, s.addr)
		fmt.Fprint(conn, header)
		headless = append(headless, conn)
		conn = raw(t, s.addr)
		fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", header, len(body), body[:len(body)-1])
		bodyless = append(bodyless, conn)
		conn = raw(t, s.addr)
		fmt.Fprintf(conn, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", header, len(body), body) // without the last chunk
		bodyless = append(bodyless, conn)
	}
	serves(t, s)
	closeAll(bodyless)
	serves(t, s)
	for _, conn := range headless { // the server does not wait for ever for the rest of a header
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Fatalf("half a header is waited for: %v", err)
		}
	}
	closeAll(headless)
	if n := c.count(t, "queue=half"); n != 0 {
		t.Errorf("%d jobs came out of requests that were not whole", n)
	}
}

// TestAReaderThatStallsHoldsUpNobody opens a take and does not read what
// comes. Its jobs come back when the server gives it up, after 30 s.
func TestAReaderThatStallsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	const jobs = 400
	s := start(t, t.TempDir())
	c := dial(s.url)
	payload := strings.Repeat("x", 64<<10)
	bulk := make([]any, jobs)
	for i := range bulk {
		bulk[i] = map[string]any{"type": "t", "queue": "stall", "payload": payload}
	}
	c.must(t, 201, nil, "POST", "/jobs/bulk", map[string]any{"jobs": bulk})
	conn := raw(t, s.addr)
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadBuffer(4 << 10)
	takeRaw(t, conn, "queue=stall&prefetch=0")
	until(t, "the stalled reader has jobs", func() (bool, string) {
		n := c.count(t, "queue=stall&status=in_flight")
		return n > 0, fmt.Sprint(n)
	})
	serves(t, s)
	stalled := c.count(t, "queue=stall&status=in_flight")
	// It set no limit of its own, so the server's bound it: the rest is for others.
	c.enqueueMany(t, "stall", 10*jobs)
	other := c.take(t, "", 10, "stall")
	other.read(t, 10)
	untilWithin(t, 90*time.Second, "the jobs of the stalled reader are ready again", func() (bool, string) {
		n := c.count(t, "queue=stall&status=in_flight")
		return n == 10, fmt.Sprintf("%d are out, of which it had %d", n, stalled)
	})
	for _, j := range c.list(t, "queue=stall") {
		if j.Attempts != 0 || j.Status != wire.Ready && j.Status != wire.InFlight {
			t.Fatalf("a job is %s with %d attempts", j.Status, j.Attempts)
		}
	}
	serves(t, s)
}

// TestABodyBeyondTheLimitIsRefusedAndNotKept bounds what one request may cost.
func TestABodyBeyondTheLimitIsRefusedAndNotKept(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), "--body-max", "64KiB")
	c := dial(s.url)
	body := `{"type":"t","queue":"big","payload":"` + strings.Repeat("x", 64<<10) + `"}`
	c.must(t, http.StatusRequestEntityTooLarge, nil, "POST", "/jobs", body)
	req, err := c.request(t.Context(), "POST", "/jobs", body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = -1 // it does not say how long it is
	res, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a chunked body beyond the limit: %d", res.StatusCode)
	}
	serves(t, s)
	if n := c.count(t, "queue=big"); n != 0 {
		t.Errorf("%d jobs are there", n)
	}
}
