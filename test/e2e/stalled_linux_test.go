package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// TestAStalledReaderLosesItsJobs lets a worker take a job and read nothing of
// it, over a window that is closed while the kernel of the server has the rest.
// The server's writes succeed, the worker's kernel answers every probe: only
// the TCP user timeout finds out, and the job goes to somebody else.
func TestAStalledReaderLosesItsJobs(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), "--tcp-user-timeout", "2s")
	c := dial(s.url)
	defer c.close()
	conn := raw(t, s.addr)
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	takeRaw(t, conn, "queue=stalled&prefetch=1")
	c.must(t, 201, nil, "POST", "/jobs", map[string]any{"type": "t", "queue": "stalled", "payload": strings.Repeat("x", 128<<10)})
	until(t, "the job is with the worker", func() (bool, string) {
		n := c.count(t, "queue=stalled&status="+wire.InFlight)
		return n == 1, fmt.Sprint(n)
	})
	// Well before the 30 s after which a blocked write is given up.
	untilWithin(t, 20*time.Second, "the job is back", func() (bool, string) {
		n := c.count(t, "queue=stalled&status="+wire.Ready)
		return n == 1, fmt.Sprint(n)
	})
}
