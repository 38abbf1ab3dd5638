package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// command runs the binary and returns what it printed and its exit code.
func command(t testing.TB, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "REPRISE_") && !strings.HasPrefix(v, "ZIZQ_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("%v: %v", args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// succeeds runs the binary, which must exit with 0 and say all parts.
func succeeds(t testing.TB, args []string, parts ...string) string {
	t.Helper()
	out, code := command(t, args...)
	if code != 0 {
		t.Fatalf("reprise %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("reprise %s does not say %q:\n%s", strings.Join(args, " "), part, out)
		}
	}
	return out
}

// fails runs the binary, which must exit with 1 and say all parts.
func fails(t *testing.T, args []string, parts ...string) {
	t.Helper()
	out, code := command(t, args...)
	if code != 1 {
		t.Errorf("reprise %s: exit code %d, want 1", strings.Join(args, " "), code)
	}
	says(t, out, parts...)
}

const keptConfig = "queues: {kept: {retention: {completed: 1h}}}\n"

// Producers and workers go on while a backup is made. What was accepted before
// it began is in it, each job whole, and a server works on it (I5).
func TestABackupUnderLoadHoldsWhatWasAccepted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "reprise.yaml"), keptConfig)
	s := start(t, filepath.Join(dir, "root"), "-c", config)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		mu       sync.Mutex
		accepted = map[string]int{} // id -> payload
		load     sync.WaitGroup
		enough   = make(chan struct{})
	)
	c := dial(s.url)
	for p := range 4 {
		load.Go(func() {
			for n := p; ctx.Err() == nil; n += 4 {
				var out wire.Enqueued
				r, err := c.do(ctx, "POST", "/jobs", map[string]any{"type": "test", "queue": "kept", "payload": n})
				if err != nil || r.status != 201 || r.into(&out) != nil {
					if ctx.Err() == nil {
						t.Errorf("enqueue: %v %v", r, err)
					}
					return
				}
				mu.Lock()
				accepted[out.ID] = n
				if len(accepted) == 500 {
					close(enough)
				}
				mu.Unlock()
			}
		})
		load.Go(func() {
			for ctx.Err() == nil {
				var page wire.Page
				r, err := c.do(ctx, "POST", "/jobs/lease", map[string]any{"queues": []string{"kept"}, "max": 5, "wait_ms": 100})
				if err != nil || r.into(&page) != nil {
					return
				}
				for _, j := range page.Jobs {
					_, _ = c.do(ctx, "POST", "/jobs/settle", []map[string]any{{"id": j.ID, "lease": j.Lease, "outcome": "ok"}})
				}
			}
		})
	}
	select {
	case <-enough:
	case <-s.exited:
		t.Fatal("the server ended")
	}
	mu.Lock()
	before := make(map[string]int, len(accepted))
	for id, n := range accepted {
		before[id] = n
	}
	mu.Unlock()
	file := filepath.Join(dir, "b.tar.gz")
	succeeds(t, []string{"backup", "--url", s.url, "--out", file}, "format ")
	cancel()
	load.Wait()
	fails(t, []string{"backup", "--url", s.url, "--out", file}, "exists already")
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	restored := filepath.Join(dir, "restored")
	succeeds(t, []string{"restore", file, "--root-dir", restored}, "restored into", "jobs: ")
	fails(t, []string{"restore", file, "--root-dir", restored}, "is not empty")
	fails(t, []string{"restore", config, "--root-dir", filepath.Join(dir, "other")}, "not a whole backup")
	s = start(t, restored, "-c", config)
	fails(t, []string{"restore", file, "--root-dir", restored}, "in use by another process")
	c = dial(s.url)
	for id, n := range before {
		if j := c.get(t, id); string(j.Payload) != fmt.Sprint(n) {
			t.Errorf("job %s has payload %s, want %d", id, j.Payload, n)
		}
	}
	c.enqueue(t, "new", 1)
	var page wire.Page
	c.must(t, 200, &page, "POST", "/jobs/lease", map[string]any{"queues": []string{"new"}, "max": 1, "wait_ms": 1000})
	if len(page.Jobs) != 1 {
		t.Error("the restored server gives out no work")
	}
}

// While one backup is read a second one is refused, and a body that breaks off
// is no backup. What a crash leaves is removed at the next start.
func TestABackupThatBreaksOffIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	s := start(t, root)
	c := dial(s.url)
	noise := make([]byte, 1<<20)
	for i := range 24 { // more than sockets hold
		rnd := dice(uint64(i))
		for k := range noise {
			noise[k] = byte(rnd.Uint32())
		}
		c.enqueue(t, "q", hex.EncodeToString(noise))
	}
	req, err := c.request(t.Context(), "POST", "/backup", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/gzip" ||
		resp.Header.Get("Content-Disposition") != `attachment; filename="backup.tar.gz"` {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	r := c.must(t, 503, nil, "POST", "/backup", nil)
	says(t, string(r.body), "is being made already")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	fails(t, []string{"backup", "--url", s.url, "--out", filepath.Join(dir, "second")}, "is being made already")
	if _, err := os.Stat(filepath.Join(root, "backup.tmp")); err != nil {
		t.Error(err)
	}
	c.enqueue(t, "q", "while it is read") // nobody waits for the reader
	s.kill()
	half, err := io.ReadAll(resp.Body)
	if err == nil {
		t.Error("a body that broke off ended well")
	}
	path := write(t, filepath.Join(dir, "half.tar.gz"), string(half))
	to := filepath.Join(dir, "restored")
	fails(t, []string{"restore", path, "--root-dir", to}, "not a whole backup", "ends early")
	if left, err := os.ReadDir(to); !os.IsNotExist(err) {
		t.Errorf("a failed restore left %v, %v", left, err)
	}
	other := t.TempDir()
	write(t, filepath.Join(other, "mine"), "")
	fails(t, []string{"restore", path, "--root-dir", other}, "is not empty (it holds mine)")
	if left, err := os.ReadDir(other); err != nil || len(left) != 1 {
		t.Errorf("a refused restore left %v, %v", left, err)
	}
	s = start(t, root)
	if _, err := os.Stat(filepath.Join(root, "backup.tmp")); !os.IsNotExist(err) {
		t.Errorf("what the crash left: %v", err)
	}
	succeeds(t, []string{"backup", "--url", s.url, "--out", path + ".2"})
	succeeds(t, []string{"compact", "--url", s.url}, "compacted")
	c = dial(s.url)
	c.must(t, 204, nil, "POST", "/compact", nil)
}
