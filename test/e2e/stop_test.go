package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// leased is what the three kinds of holder have in a server.
type leased struct {
	c                        *client
	open, named              *takeStream
	byOpen, byNamed, byUnary []wire.Job
}

// lend gives three jobs to each kind of holder; three more wait.
func lend(t *testing.T, s *server, leaseMS int) *leased {
	t.Helper()
	l := &leased{c: dial(s.url)}
	l.c.enqueueMany(t, "work", 12)
	l.open = l.c.take(t, "", 3, "work")
	l.byOpen = l.open.read(t, 3)
	l.named = l.c.take(t, "holder", 3, "work")
	l.byNamed = l.named.read(t, 3)
	var page wire.Page
	l.c.must(t, 200, &page, "POST", "/jobs/lease",
		map[string]any{"queues": []string{"work"}, "max": 3, "lease_ms": leaseMS, "worker": "caller"})
	if l.byUnary = page.Jobs; len(l.byUnary) != 3 {
		t.Fatalf("%d jobs were leased, want 3", len(l.byUnary))
	}
	return l
}

// begin sends a POST up to its body, and returns once the server waits for
// that: it says "100 Continue".
func begin(t *testing.T, s *server, path string, length int) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := raw(t, s.addr)
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, length)
	r := bufio.NewReader(conn)
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
		if line, err := r.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%q, %v", line, err)
		}
	}
	return conn, r
}

// TestAGracefulStopGivesBackWhatHasNoNameAndKeepsTheRest: core.md section 4,
// three kinds of holder. A stop charges nobody (I4).
func TestAGracefulStopGivesBackWhatHasNoNameAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	l := lend(t, s, 60_000)
	// Somebody waits for work in another queue. That must not hold up the stop.
	body := `{"queues":["empty"],"wait_ms":60000}`
	poll, answer := begin(t, s, "/jobs/lease", len(body))
	fmt.Fprint(poll, body)
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for name, stream := range map[string]*takeStream{"anonymous": l.open, "named": l.named} {
		if _, err := stream.next(); !errors.Is(err, io.EOF) {
			t.Errorf("the %s stream ended with %v, want a clean end", name, err)
		}
	}
	if res, err := http.ReadResponse(answer, nil); err != nil {
		t.Errorf("the waiting lease got no answer: %v", err)
	} else if _ = res.Body.Close(); res.StatusCode != 200 && res.StatusCode != 503 {
		t.Errorf("the waiting lease was answered with %s; want 503, or 200 without jobs", res.Status)
	}
	says(t, s.output(), `"message":"stopping"`, `"message":"stopped"`)

	c := dial(start(t, dir).url)
	for _, j := range l.byOpen {
		if now := c.get(t, j.ID); now.Status != wire.Ready || now.Attempts != 0 || now.Losses != 0 {
			t.Errorf("a job of the anonymous stream is %+v", now)
		}
	}
	held := c.take(t, "holder", 3, "work").read(t, 3)
	for i, j := range held {
		if was := l.byNamed[i]; j.ID != was.ID || j.Lease != was.Lease || !j.Held || j.Attempts != 0 {
			t.Errorf("the named holder got back %+v, it had %+v", j, was)
		}
	}
	for _, j := range append(l.byNamed, l.byUnary...) {
		if now := c.get(t, j.ID); now.Status != wire.InFlight {
			t.Errorf("a job under a token is %+v", now)
		}
		if v := c.settle(t, wire.Settle{ID: j.ID, Lease: j.Lease, Outcome: "ok"}); v.Code != "" || v.Status != wire.Completed {
			t.Errorf("settling a lease of the run before: %+v", v)
		}
		c.must(t, 404, nil, "GET", "/jobs/"+j.ID, nil)
	}
	if n := c.count(t, ""); n != 6 {
		t.Errorf("%d jobs are left, want 6", n)
	}
}

// TestAStopDoesNotWaitForARequestThatNeverEnds: half a request is cut off
// after the shutdown timeout, and the stop is still a good one.
func TestAStopDoesNotWaitForARequestThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), "--shutdown-timeout", "1s")
	begin(t, s, "/jobs", 100)
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestASecondSignalEndsTheProcessAtOnce for those who do not want to wait.
func TestASecondSignalEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), "--shutdown-timeout", "1h")
	begin(t, s, "/jobs", 100)
	s.signal(syscall.SIGTERM)
	until(t, "the stop has begun", func() (bool, string) {
		_, err := dial(s.url).do(t.Context(), "GET", "/health", nil)
		return err != nil, fmt.Sprint(err)
	})
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != -1 {
		t.Errorf("exit code %d, want the end by a signal", code)
	}
}

// TestASleepingServerTakesNoJobsAwayFromLivingHolders stops the process for
// longer than anybody may be away: that was the server's absence, not theirs
// (core.md section 8).
func TestASleepingServerTakesNoJobsAwayFromLivingHolders(t *testing.T) {
	t.Parallel()
	const window = 1500 * time.Millisecond
	s := start(t, t.TempDir(), "--reattach-window", window.String())
	l := lend(t, s, int(window.Milliseconds()))
	c := l.c
	// One more named holder is away when the server falls asleep. An anonymous
	// stream that goes with it shows when the server has noticed.
	left := c.take(t, "traveller", 1, "work")
	away := left.read(t, 1)[0]
	last := c.take(t, "", 1, "work")
	sign := last.read(t, 1)[0]
	_ = left.Close()
	_ = last.Close()
	until(t, "the server notices that two streams left", func() (bool, string) {
		j := c.get(t, sign.ID)
		return j.Status == wire.Ready, j.Status
	})

	s.signal(syscall.SIGSTOP)
	<-time.After(window + 6*time.Second) // more than 5 s late is what counts as a sleep
	s.signal(syscall.SIGCONT)

	for _, j := range append(append(l.byNamed, l.byUnary...), away) {
		if now := c.get(t, j.ID); now.Status != wire.InFlight || now.Losses != 0 || now.Attempts != 0 {
			t.Errorf("after the sleep a job under a token is %+v", now)
		}
	}
	again := c.take(t, "traveller", 1, "work").read(t, 1)[0]
	if again.ID != away.ID || again.Lease != away.Lease || !again.Held {
		t.Errorf("the traveller got back %+v, it had %+v", again, away)
	}
	extend := map[string]any{"leases": []any{map[string]any{"id": l.byUnary[0].ID, "lease": l.byUnary[0].Lease, "ms": 60_000}}}
	var verdicts wire.Verdicts
	c.must(t, 200, &verdicts, "POST", "/jobs/extend", extend)
	if v := verdicts.Verdicts[0]; v.Status != wire.InFlight {
		t.Errorf("the first heartbeat after the sleep: %+v", v)
	}
	for _, j := range append(append(l.byNamed, l.byUnary...), away) {
		if v := c.settle(t, wire.Settle{ID: j.ID, Lease: j.Lease, Outcome: "ok"}); v.Code != "" {
			t.Errorf("settling after the sleep: %+v", v)
		}
	}
	c.must(t, http.StatusNoContent, nil, "POST", "/jobs/"+l.byOpen[0].ID+"/success", nil)
}
