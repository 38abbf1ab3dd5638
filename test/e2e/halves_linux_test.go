package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// bulkOf is a whole request for a bulk of n jobs into a queue, in one piece or
// in chunks, and how long its header is.
func bulkOf(queue string, n int, chunked bool) (request string, headerBytes int) {
	var jobs []string
	for i := range n {
		jobs = append(jobs, fmt.Sprintf(`{"type":"t","queue":%q,"payload":{"n":%d}}`, queue, i))
	}
	body := `{"jobs":[` + strings.Join(jobs, ",") + `]}`
	header := "POST /jobs/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	if !chunked {
		header += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
		return header + body, len(header)
	}
	header += "Transfer-Encoding: chunked\r\n\r\n"
	text := header
	for len(body) > 0 {
		piece := body[:min(len(body), 1000)]
		text += fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
		body = body[len(piece):]
	}
	return text + "0\r\n\r\n", len(header)
}

// TestABulkThatIsCutOffIsTakenWholeOrNotAtAll cuts the connection at many
// places of a bulk. Half of it is nothing; of a whole one that nobody waited
// for either all jobs are there or none.
func TestABulkThatIsCutOffIsTakenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const jobs, cuts = 60, 40
	s := start(t, t.TempDir(), "--pprof")
	serves(t, s)
	before := s.vitals(t)
	type sent struct {
		whole    bool
		answered int // 0 = not at all
	}
	queues := map[string]sent{}
	for _, chunked := range []bool{false, true} {
		for cut := range cuts + 3 {
			for _, polite := range []bool{false, true} {
				queue := fmt.Sprintf("cut-%v-%d-%v", chunked, cut, polite)
				text, header := bulkOf(queue, jobs, chunked)
				at := header + (len(text)-header)*cut/cuts
				switch cut { // and where it matters most
				case cuts + 1:
					at = header
				case cuts + 2:
					at = len(text) - 1
				}
				queues[queue] = sent{at == len(text), cutOff(t, s, text[:at], polite)}
			}
		}
	}
	serves(t, s)
	s.calm(t, before) // no handler is at work any more
	c := dial(s.url)
	for queue, what := range queues {
		n := c.count(t, "queue="+queue)
		switch whole := what.whole; {
		case n != 0 && n != jobs, n != 0 && !whole, n == 0 && what.answered == http.StatusCreated:
			t.Errorf("queue %s: %d of %d jobs came out of a request that was cut off: %+v", queue, n, jobs, what)
		case !whole && what.answered != 0 && what.answered != http.StatusBadRequest:
			t.Errorf("queue %s: half a request was answered with %d", queue, what.answered)
		case whole && what.answered != 0 && what.answered != http.StatusCreated && what.answered != http.StatusServiceUnavailable:
			t.Errorf("queue %s: a request whose sender had left was answered with %d", queue, what.answered)
		}
	}
}

// cutOff sends the beginning of a request and leaves: as a machine that died,
// or politely, and then hears the status that the server answers, if any.
func cutOff(t *testing.T, s *server, text string, polite bool) int {
	t.Helper()
	conn := raw(t, s.addr)
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if !polite {
		_ = conn.SetLinger(0)
		return 0
	}
	_ = conn.CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// TestAnAnswerThatNobodyReadsIsStillTrue leaves while the answer comes. What
// was answered in part has happened in whole, once; to say it again with its
// key adds nothing (I5).
func TestAnAnswerThatNobodyReadsIsStillTrue(t *testing.T) {
	t.Parallel()
	const jobs = 500
	s := start(t, t.TempDir(), "--pprof")
	c := dial(s.url)
	serves(t, s)
	before := s.vitals(t)
	for i := range 20 {
		queue := fmt.Sprintf("unread-%d", i)
		text, _ := bulkOf(queue, jobs, false)
		if got := readsOnly(t, s, text, 9+i); !strings.HasPrefix(got, "HTTP/1.1 ") {
			t.Fatalf("the answer begins with %q", got)
		}
		if n := c.count(t, "queue="+queue); n != jobs {
			t.Errorf("an answer had begun, and %d of %d jobs are there", n, jobs)
		}
	}

	keyed := map[string]any{"type": "t", "queue": "keyed", "payload": 1, "idempotency_key": "once"}
	text := "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 68\r\n\r\n" +
		`{"type":"t","queue":"keyed","payload":1,"idempotency_key":"once"}   `
	readsOnly(t, s, text, 1)
	var again wire.Enqueued
	if c.must(t, 200, &again, "POST", "/jobs", keyed); !again.Duplicate || c.count(t, "queue=keyed") != 1 {
		t.Errorf("said again after an answer that was not read: %+v", again)
	}

	list := c.list(t, "queue=unread-0")
	ids := make([]string, 0, jobs)
	stream := c.take(t, "", jobs, "unread-0")
	for _, j := range stream.read(t, len(list)) {
		ids = append(ids, fmt.Sprintf("%q", j.ID))
	}
	body := `{"ids":[` + strings.Join(ids, ",") + `]}`
	readsOnly(t, s, fmt.Sprintf("POST /jobs/success HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body), 1)
	if n := c.count(t, "queue=unread-0"); n != 0 {
		t.Errorf("an answer had begun, and %d of %d jobs are not settled", n, jobs)
	}
	_ = stream.Close()

	for range 20 { // and long lists, of which the beginning is enough
		readsOnly(t, s, "GET /jobs?limit=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n", 100)
	}
	serves(t, s)
	c.close()
	s.calm(t, before)
}

// readsOnly sends a request, reads so many bytes of the answer, and is gone.
func readsOnly(t *testing.T, s *server, text string, n int) string {
	t.Helper()
	conn := raw(t, s.addr)
	defer func(conn net.Conn) { _ = conn.Close() }(conn)
	_ = conn.SetReadBuffer(4 << 10)
	_ = conn.SetLinger(0)
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Fatalf("the beginning of the answer: %v", err)
	}
	return string(b)
}
