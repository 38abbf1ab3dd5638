package inside

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// TestABodyThatNeverEndsIsCutOff shortens the limit of a whole request, 5
// minutes, and sends half a body. It is cut off, and nothing of it is taken in.
// A take and a long poll, which last longer, go on.
func TestABodyThatNeverEndsIsCutOff(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	s := start(t, options{edit: func(server *http.Server) {
		if server.ReadTimeout <= 0 || server.ReadTimeout > 5*time.Minute || server.ReadHeaderTimeout > 10*time.Second || server.MaxHeaderBytes == 0 {
			t.Errorf("the limits of the server are %+v", server)
		}
		server.ReadTimeout = limit
	}})
	take, lines := s.raw("GET /jobs/take?queue=taken HTTP/1.1\r\nHost: localhost\r\n\r\n")
	poll, answer := s.raw("POST /jobs/lease HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 37\r\n\r\n" +
		`{"queues":["polled"],"wait_ms":20000}`)
	defer func() { _, _ = take.Close(), poll.Close() }()
	for _, half := range []string{"Content-Length: 1000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n40\r\n"} {
		conn, r := s.raw("POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + half + `{"type":"t","queue":"cut","payload":0}`)
		text, err := io.ReadAll(r) // ends when the server closes
		if errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(string(text), "HTTP/1.1 408") {
			t.Errorf("half a body was answered with %q, %v", text, err)
		}
		_ = conn.Close()
	}
	s.enqueue("taken", "")
	until(t, "the take delivers, though it is older than the limit", func() (bool, string) {
		line, err := lines.ReadString('\n')
		return strings.HasPrefix(line, "{"), fmt.Sprint(line, err)
	})
	s.enqueue("polled", "")
	if status, err := answer.ReadString('\n'); err != nil || status != "HTTP/1.1 200 OK\r\n" {
		t.Errorf("the long poll got %q, %v", status, err)
	}
	var n wire.Count
	if s.must(http.StatusOK, &n, "GET", "/jobs/count?queue=cut", ""); n.Count != 0 {
		t.Errorf("%d jobs came out of half a body", n.Count)
	}
}
