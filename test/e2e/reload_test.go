package e2e

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// logged waits for a line of the log.
func (s *server) logged(parts ...string) {
	s.t.Helper()
	until(s.t, "the log", func() (bool, string) {
		out := s.output()
		for line := range strings.Lines(out) {
			all := true
			for _, p := range parts {
				all = all && strings.Contains(line, p)
			}
			if all {
				return true, ""
			}
		}
		return false, out
	})
}

// SIGHUP reads the configuration again: what can change holds at once, what
// cannot is named, and a bad file changes nothing and says everything that is
// wrong with it.
func TestAHangupReloadsTheConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "reprise.yaml"), "server: {max_queues: 2}\nqueues: {a: {max_jobs: 1}, b: {paused: false}}\n")
	s := start(t, filepath.Join(dir, "root"), "-c", file)
	c := dial(s.url)
	c.enqueue(t, "a", 1)
	c.must(t, 429, nil, "POST", "/jobs", map[string]any{"type": "t", "queue": "a", "payload": 2})
	c.must(t, 429, nil, "POST", "/jobs", map[string]any{"type": "t", "queue": "new", "payload": 2})
	c.must(t, 403, nil, "GET", "/version", nil, "Origin", "http://queue.example")
	c.must(t, 200, nil, "PATCH", "/queues/b", map[string]any{"paused": true}) // an operator's, not the file's

	write(t, file, "server: {max_queues: x, log_level: loud}\nqueues: {a: {max_jobs: -1}}\n")
	s.signal(syscall.SIGHUP)
	s.logged("was not reloaded", "max_queues", "log_level", "max_jobs")
	c.must(t, 429, nil, "POST", "/jobs", map[string]any{"type": "t", "queue": "a", "payload": 2})

	write(t, file, "server: {max_queues: 9, allow_host: [queue.example], body_max: 1MiB, log_level: warn}\nqueues: {a: {max_jobs: 2}, b: {paused: false}}\n")
	s.signal(syscall.SIGHUP)
	s.logged("with the next start only", `"setting":"body-max"`, "64MiB", "1MiB")
	until(t, "the new limit of queue a", func() (bool, string) {
		r, err := c.do(t.Context(), "POST", "/jobs", map[string]any{"type": "t", "queue": "a", "payload": 2})
		return err == nil && r.status == 201, r.String()
	})
	c.must(t, 429, nil, "POST", "/jobs", map[string]any{"type": "t", "queue": "a", "payload": 3})
	c.enqueue(t, "new", 1)
	until(t, "the new host name", func() (bool, string) {
		r, err := c.do(t.Context(), "GET", "/version", nil, "Origin", "http://queue.example")
		return err == nil && r.status == 200, r.String()
	})
	var b struct{ Paused bool }
	if c.must(t, 200, &b, "GET", "/queues/b", nil); !b.Paused {
		t.Error("a reload undid what an operator had changed in a queue that is as it was in the file")
	}
	if strings.Contains(s.output(), "configuration was reloaded") {
		t.Error("log level warn still writes at info")
	}
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// The page of metrics and the stream of events, from the real binary.
func TestMetricsAndEventsOfARealServer(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "root"))
	c := dial(s.url)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := c.request(ctx, "GET", "/events?kind=enqueued", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	id := c.enqueue(t, "q", 1).ID
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: ") {
			if !strings.Contains(line, id) {
				t.Errorf("got %s", line)
			}
			break
		}
	}
	r := c.must(t, http.StatusOK, nil, "GET", "/metrics", nil, "Accept", "text/plain;version=0.0.4")
	says(t, string(r.body), `reprise_enqueued_total{queue="q"} 1`, "reprise_disk_free_bytes", "process_cpu_seconds_total", "go_memstats")
	if code := s.terminate(); code != 0 { // an open stream does not hold it up
		t.Errorf("exit code %d", code)
	}
}

func TestTheDoctorAndHealthOfARealServer(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	s := start(t, root)
	dial(s.url).enqueue(t, "q", 1)
	succeeds(t, []string{"health", "--url", s.url}, "alive")
	succeeds(t, []string{"health", "--ready", "--url", s.url}, "ready")
	succeeds(t, []string{"doctor", "--root-dir", root, "--url", s.url}, "in use by a running server", "is ready")
	s.kill()
	fails(t, []string{"health", "--url", s.url}, "does not answer")
	fails(t, []string{"doctor", "--root-dir", root, "--url", s.url}, "refused")
	succeeds(t, []string{"doctor", "--root-dir", root, "--port", s.port()}, "1 jobs (0 scheduled, 1 ready", "is free")
	if err := os.Remove(filepath.Join(root, "FORMAT")); err != nil {
		t.Fatal(err)
	}
	fails(t, []string{"doctor", "--root-dir", root, "--port", s.port()}, "no FORMAT file", "restore the backup")
}
