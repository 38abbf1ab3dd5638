package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// heap is how much memory of a server is in use, without what only waits to be
// collected. The server runs with --pprof.
func (s *server) heap(t testing.TB) (bytes int64) {
	t.Helper()
	c := dial(s.url)
	defer c.close()
	profile := string(c.must(t, 200, nil, "GET", "/debug/pprof/heap?gc=1&debug=1", nil, "Accept", "*/*").body)
	_, rest, _ := strings.Cut(profile, "\n# HeapAlloc = ")
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		t.Fatalf("%v in %.100q", err, rest)
	}
	return bytes
}

// TestStalledReadersCostLittleMemory lets a crowd of streams ask for all there
// is and read nothing of it. Payloads that are on their way to them are bounded
// by bytes, not only by jobs, and others are served.
func TestStalledReadersCostLittleMemory(t *testing.T) {
	t.Parallel()
	const readers, jobs, payloadBytes = 20, 2000, 256 << 10
	s := start(t, t.TempDir(), "--pprof")
	c := dial(s.url)
	defer c.close()
	for range readers {
		conn := raw(t, s.addr)
		defer func(conn net.Conn) { _ = conn.Close() }(conn)
		_ = conn.SetReadBuffer(4 << 10)
		takeRaw(t, conn, "queue=stall&prefetch=0")
	}
	before := s.heap(t)
	bulk := make([]any, 50)
	for i := range bulk {
		bulk[i] = map[string]any{"type": "t", "queue": "stall", "payload": strings.Repeat("x", payloadBytes)}
	}
	for range jobs / len(bulk) {
		c.must(t, 201, nil, "POST", "/jobs/bulk", map[string]any{"jobs": bulk})
	}
	until(t, "all jobs are out", func() (bool, string) {
		n := c.count(t, "queue=stall&status="+wire.InFlight)
		return n == jobs, fmt.Sprint(n)
	})
	serves(t, s)
	// Beside what waits for readers: what each handler is writing, the kernel
	// does not take, and the store's own buffers.
	const most = readers*4*mib + 64*mib
	now := s.heap(t)
	t.Logf("%d readers with %d MiB on their way: %d MiB in use, before: %d MiB", readers, jobs*payloadBytes/mib, now/mib, before/mib)
	if now-before > most {
		t.Errorf("%d stalled readers cost %d MiB, want at most %d", readers, (now-before)/mib, most/mib)
	}
}
