package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// flood opens n connections from an address of their own, so that their ports
// are not those of other tests, and does something on each.
func flood(t *testing.T, s *server, from string, n int, each func(net.Conn) error) []*net.TCPConn {
	t.Helper()
	dialer := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conns := make([]*net.TCPConn, n)
	const dialers = 32
	var all sync.WaitGroup
	failed := make(chan error, dialers)
	for d := range dialers {
		all.Go(func() {
			for i := d; i < n; i += dialers {
				conn, err := dialer.DialContext(t.Context(), "tcp", s.addr)
				if err == nil {
					conns[i] = conn.(*net.TCPConn)
					err = each(conn)
				}
				if err != nil {
					failed <- fmt.Errorf("connection %d: %w", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if t.Failed() {
		closeAll(conns)
		t.FailNow()
	}
	return conns
}

// drop ends connections: half politely, half as from machines that died.
func drop(conns []*net.TCPConn) {
	for i, conn := range conns {
		if i%2 == 0 {
			_ = conn.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// takesOne asks for one job and reads on until it has it.
func takesOne(conn net.Conn) error {
	if _, err := fmt.Fprint(conn, "GET /jobs/take?queue=flood&prefetch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	for r := bufio.NewReaderSize(conn, 512); ; {
		switch line, err := r.ReadString('\n'); {
		case err != nil:
			return err
		case strings.HasPrefix(line, "HTTP/") && !strings.Contains(line, " 200 "):
			return fmt.Errorf("the take was answered with %q", line)
		case strings.HasPrefix(line, "{"):
			return nil
		}
	}
}

// TestTenThousandConnectionsAreGivenBack opens 10,000 connections that say
// nothing, and then 10,000 streams that each take a job, and drops them. The
// server serves others all the time, and has everything back afterwards: its
// files, its goroutines and the jobs (I1, I4).
func TestTenThousandConnectionsAreGivenBack(t *testing.T) {
	t.Parallel()
	crowd := 10_000
	if most := filesMax(t) - 4000; most < crowd { // the rest is for other tests
		if crowd = most; crowd < 500 {
			t.Fatalf("only %d files may be open here", filesMax(t))
		}
		t.Logf("no more than %d connections are allowed here (RLIMIT_NOFILE)", crowd)
	}
	s := start(t, t.TempDir(), "--pprof")
	serves(t, s)
	before := s.vitals(t)

	silent := flood(t, s, "127.0.0.2", crowd, func(net.Conn) error { return nil })
	until(t, "the server has accepted everybody", func() (bool, string) {
		n := s.files(t)
		return n >= crowd, fmt.Sprintf("%d files", n)
	})
	serves(t, s)
	t.Logf("with %d silent connections: %s; before: %s", crowd, s.vitals(t), before)
	drop(silent)
	serves(t, s)
	s.calm(t, before)

	c := dial(s.url)
	defer c.close()
	ids := map[string]bool{}
	for _, j := range c.enqueueMany(t, "flood", crowd) {
		ids[j.ID] = true
	}
	takers := flood(t, s, "127.0.0.3", crowd, takesOne)
	if n := c.count(t, "queue=flood&status=in_flight"); n != int64(crowd) {
		t.Errorf("%d of %d jobs are out", n, crowd)
	}
	serves(t, s)
	t.Logf("with %d streams: %s", crowd, s.vitals(t))
	drop(takers)
	serves(t, s)
	until(t, "all jobs are ready again", func() (bool, string) {
		n := c.count(t, "queue=flood&status=ready")
		return n == int64(crowd), fmt.Sprint(n)
	})
	for _, j := range c.list(t, "queue=flood") {
		if !ids[j.ID] || j.Attempts != 0 || j.Losses != 1 {
			t.Fatalf("a job is %+v", j)
		}
		delete(ids, j.ID)
	}
	if len(ids) > 0 {
		t.Errorf("%d jobs are lost", len(ids))
	}
	worksOff(t, c, "flood", crowd)
	c.close()
	s.calm(t, before)
}

// worksOff finishes so many jobs of a queue, which must be all.
func worksOff(t *testing.T, c *client, queue string, jobs int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := c.openTake(ctx, "", 1000, queue)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	for done := 0; done < jobs; {
		var ids []string
		for len(ids) == 0 || stream.more() && len(ids) < 500 {
			j, err := stream.next()
			if err != nil {
				t.Fatalf("after %d of %d jobs: %v", done, jobs, err)
			}
			ids = append(ids, j.ID)
		}
		c.must(t, 204, nil, "POST", "/jobs/success", map[string]any{"ids": ids})
		done += len(ids)
	}
	if n := c.count(t, "queue="+queue+"&status="+wire.Ready+","+wire.InFlight); n != 0 {
		t.Errorf("%d jobs of queue %s are left", n, queue)
	}
}
