package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

const mib = 1 << 20

// smallDisk is a file system of its own with so many bytes.
func smallDisk(t *testing.T, bytes int64) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.FormatInt(bytes, 10))
	switch {
	case err == nil:
	case os.Getenv("CI") == "true" && os.Geteuid() == 0:
		t.Fatalf("in CI, as root, a tmpfs must be mountable: %v", err)
	default:
		t.Skipf("a small disk needs the right to mount a tmpfs (root): %v", err)
	}
	t.Cleanup(func() { // after the servers, whose clean-ups are registered later
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

func free(t *testing.T, dir string) int64 {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Bavail) * fs.Bsize
}

// fillUp makes a file that leaves so many bytes free.
func fillUp(t *testing.T, dir string, leave int64) (filler string) {
	t.Helper()
	filler = filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err == nil {
		_, err = io.CopyN(f, zeros{}, max(free(t, dir)-leave, 0))
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return filler
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// enqueueUntilRefused enqueues jobs of so many bytes, and returns the ids of
// those that were accepted and the refusal.
func enqueueUntilRefused(t *testing.T, c *client, queue string, bytes int) (ids []string, refusal reply) {
	t.Helper()
	body := map[string]any{"type": "test", "queue": queue, "payload": strings.Repeat("x", bytes)}
	for {
		r, err := c.do(t.Context(), "POST", "/jobs", body)
		if err != nil {
			t.Fatalf("after %d jobs: %v", len(ids), err)
		}
		if r.status != http.StatusCreated {
			return ids, r
		}
		var answer wire.Enqueued
		if err := r.into(&answer); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, answer.ID)
	}
}

// refusedForNow checks a 503 that tells a client to come again.
func refusedForNow(t *testing.T, r reply, parts ...string) {
	t.Helper()
	var body wire.Error
	if err := r.into(&body); err != nil || r.status != 503 || body.Code != wire.CodeUnavailable {
		t.Errorf("refused with %s, want 503 and code %q", r, wire.CodeUnavailable)
	}
	if after, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || after < 1 {
		t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
	}
	says(t, body.Error, parts...)
}

// allThere checks that every one of these jobs can still be found.
func allThere(t *testing.T, c *client, query string, ids []string) map[string]wire.Job {
	t.Helper()
	there := map[string]wire.Job{}
	for _, j := range c.list(t, query) {
		there[j.ID] = j
	}
	lost := 0
	for _, id := range ids {
		if _, ok := there[id]; !ok {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged jobs are lost", lost, len(ids))
	}
	return there
}

// resumes waits until enqueues are accepted again.
func resumes(t *testing.T, c *client) {
	t.Helper()
	until(t, "enqueues are accepted again", func() (bool, string) {
		r, err := c.do(t.Context(), "POST", "/jobs", map[string]any{"type": "test", "queue": "after", "payload": nil})
		if err != nil {
			return false, err.Error()
		}
		return r.status == 201, r.String()
	})
	until(t, "the server is ready", func() (bool, string) {
		r, err := c.do(t.Context(), "GET", "/ready", nil)
		return err == nil && r.status == 200, r.String()
	})
}

// TestBelowTheDiskReserveOnlyEnqueuesAreRefused: what frees space must go on.
func TestBelowTheDiskReserveOnlyEnqueuesAreRefused(t *testing.T) {
	// The default. It has to last for what comes in between two looks at the
	// disk, a second apart, and for the 36 MiB that each new log sets aside.
	const reserve = 256 * mib
	disk := smallDisk(t, 512*mib)
	s := start(t, filepath.Join(disk, "root"), "--disk-reserve", strconv.Itoa(reserve))
	c := dial(s.url)
	early := c.enqueueMany(t, "early", 20)
	stream := c.take(t, "", 10, "early")
	held := stream.read(t, 10)
	filler := fillUp(t, disk, reserve+20*mib)
	ids, refusal := enqueueUntilRefused(t, c, "fill", 4<<10)
	t.Logf("%d jobs were accepted, %d MiB are left: %s", len(ids), free(t, disk)/mib, refusal)
	refusedForNow(t, refusal, "reserve", "disk_reserve")
	if left := free(t, disk); left < reserve/8 {
		t.Errorf("%d MiB are left of a reserve of %d MiB", left/mib, reserve/mib)
	}

	refusedForNow(t, c.must(t, 503, nil, "GET", "/ready", nil), "reserve")
	c.must(t, 200, nil, "GET", "/health", nil)
	c.must(t, 503, nil, "POST", "/jobs/bulk", `{"jobs":[{"type":"t","queue":"q","payload":1}]}`)
	c.must(t, 204, nil, "POST", "/jobs/"+held[0].ID+"/success", nil)
	c.must(t, 204, nil, "POST", "/jobs/success", map[string]any{"ids": []string{held[1].ID, held[2].ID}})
	c.must(t, 200, nil, "POST", "/jobs/"+held[3].ID+"/failure", `{"message":"m"}`)
	if more := stream.read(t, 4); more[0].ID != early[10].ID { // the take goes on, in order
		t.Errorf("after four settles came %s, want %s", more[0].ID, early[10].ID)
	}
	c.must(t, 204, nil, "DELETE", "/jobs/"+early[19].ID, nil)
	var leased wire.Page
	c.must(t, 200, &leased, "POST", "/jobs/lease", `{"queues":["fill"],"max":1}`)
	if v := c.settle(t, wire.Settle{ID: leased.Jobs[0].ID, Lease: leased.Jobs[0].Lease, Outcome: "ok"}); v.Code != "" {
		t.Errorf("settling by token: %+v", v)
	}
	ids = ids[1:]

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	resumes(t, c)
	allThere(t, c, "queue=fill", ids)
	if n := c.count(t, "queue=early"); n != 16 { // 20 less three successes and one deletion
		t.Errorf("%d early jobs are left, want 16", n)
	}
}

// TestAFullDiskLosesNothingAndTheServerHeals fills the disk until commits
// fail (I5), and goes on without a restart when there is space again.
func TestAFullDiskLosesNothingAndTheServerHeals(t *testing.T) {
	disk := smallDisk(t, 96*mib)
	s := start(t, filepath.Join(disk, "root"), "--disk-reserve", "0.01%")
	c := dial(s.url)
	c.enqueueMany(t, "early", 3)
	anonymous, named := c.take(t, "", 1, "early"), c.take(t, "holder", 1, "early")
	lost, kept := anonymous.read(t, 1)[0], named.read(t, 1)[0]
	filler := fillUp(t, disk, 20*mib)
	ids, refusal := enqueueUntilRefused(t, c, "fill", 64<<10)
	t.Logf("%d jobs were accepted, %d KiB are left: %s", len(ids), free(t, disk)/1024, refusal)
	refusedForNow(t, refusal, "the store cannot commit", "unknown")
	refusedForNow(t, c.must(t, 503, nil, "GET", "/ready", nil))
	c.must(t, 200, nil, "GET", "/health", nil)
	// Not a 4xx: the worker must not take it as final.
	c.must(t, 503, nil, "POST", "/jobs/"+lost.ID+"/success", nil)
	c.must(t, 503, nil, "POST", "/jobs/settle", []wire.Settle{{ID: kept.ID, Lease: kept.Lease, Outcome: "ok"}})
	for name, stream := range map[string]*takeStream{"anonymous": anonymous, "named": named} {
		if _, err := stream.next(); err == nil {
			t.Errorf("the %s stream went on over a failed commit", name)
		}
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	resumes(t, c)
	there := allThere(t, c, "queue=fill", ids)
	if extra := len(there) - len(ids); extra > 1 { // the one whose outcome was unknown
		t.Errorf("%d jobs are there that were refused", extra)
	}
	if j := c.get(t, lost.ID); j.Status != wire.Ready || j.Attempts != 0 {
		t.Errorf("the job of the anonymous stream is %+v", j)
	}
	again := c.take(t, "holder", 1, "early").read(t, 1)[0]
	if again.ID != kept.ID || again.Lease != kept.Lease || !again.Held {
		t.Errorf("the named holder got back %+v, it had %+v", again, kept)
	}
	if v := c.settle(t, wire.Settle{ID: kept.ID, Lease: kept.Lease, Outcome: "ok"}); v.Code != "" || v.Status != wire.Completed {
		t.Errorf("settling what it kept: %+v", v)
	}
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	c2 := dial(start(t, filepath.Join(disk, "root"), "--disk-reserve", "0.01%").url)
	allThere(t, c2, "queue=fill", ids) // and on disk
}

// TestAFullDiskDoesNotKeepTheServerFromStopping while it tries to open its
// store again. Started on such a disk, it refuses and says why; with space it
// has everything.
func TestAFullDiskDoesNotKeepTheServerFromStopping(t *testing.T) {
	disk := smallDisk(t, 96*mib)
	args := []string{"--disk-reserve", "0", "--shutdown-timeout", "2s"}
	s := start(t, filepath.Join(disk, "root"), args...)
	filler := fillUp(t, disk, 20*mib)
	ids, _ := enqueueUntilRefused(t, dial(s.url), "fill", 64<<10)
	if len(ids) == 0 {
		t.Fatal("nothing was accepted")
	}
	s.terminate()

	says(t, refusesToStart(t, filepath.Join(disk, "root"), args...), "no space left")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c := dial(start(t, filepath.Join(disk, "root"), args...).url)
	allThere(t, c, "queue=fill", ids)
}
