package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// What the refusal of a damaged directory must tell a person.
var adviceCorrupt = []string{"the data directory was changed", "copy the directory aside", "restore a backup", "delete nothing yet", "reprise restore DIRECTORY --root-dir NEW"}

func TestASecondServerOnTheSameDirectoryRefusesToStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	c := dial(s.url)
	id := c.enqueue(t, "q", 1).ID
	said := refusesToStart(t, dir)
	says(t, said, dir, "in use by another process", "stop that one", "--root-dir")
	c.get(t, id) // the first one goes on
	s.kill()
	c = dial(start(t, dir).url) // a lock does not outlive its process
	c.get(t, id)
}

// enqueued runs a server that takes in n jobs, one by one, and dies.
func enqueued(t *testing.T, dir string, n int) (ids []string) {
	t.Helper()
	s := start(t, dir)
	c := dial(s.url)
	for i := range n {
		ids = append(ids, c.enqueue(t, "q", fmt.Sprintf("%0100d", i)).ID)
	}
	s.kill()
	return ids
}

// latest returns the file of the store with the highest number.
func latest(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "data", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return slices.Max(files) // the numbers have a fixed width
}

// TestATornLastRecordIsHandled cuts bytes off the end of the log, as a power
// cut does. Records that are whole stay; numbers are not given out again.
func TestATornLastRecordIsHandled(t *testing.T) {
	t.Parallel()
	const jobs, recordLeast = 50, 100 // bytes
	damages := map[string]struct {
		do   func(f *os.File, size int64) error
		lost int // at most
	}{
		"one byte is missing":     {func(f *os.File, size int64) error { return f.Truncate(size - 1) }, 1},
		"a header is left":        {func(f *os.File, size int64) error { return f.Truncate(size - recordLeast) }, 1},
		"several records are cut": {func(f *os.File, size int64) error { return f.Truncate(size - 10*recordLeast) }, 10},
		"zeros follow": {func(f *os.File, size int64) error {
			_, err := f.WriteAt(make([]byte, 5000), size)
			return err
		}, 0},
		"rubbish follows": {func(f *os.File, size int64) error {
			_, err := f.WriteAt([]byte("half of a sector that was never written"), size)
			return err
		}, 0},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ids := enqueued(t, dir, jobs)
			if damage.lost > 0 { // a power cut takes what is known of it, too
				if err := os.Remove(filepath.Join(dir, "SYNCED")); err != nil {
					t.Fatal(err)
				}
			}
			change(t, latest(t, dir, "*.log"), damage.do)
			s := start(t, dir)
			c := dial(s.url)
			var there []string
			for _, j := range c.list(t, "") {
				there = append(there, j.ID)
			}
			if !slices.Equal(there, ids[:len(there)]) || len(there) < jobs-damage.lost {
				t.Errorf("%d of %d jobs are there; at most %d may be missing, at the end", len(there), jobs, damage.lost)
			}
			next := c.enqueue(t, "q", "next").ID
			if next <= ids[jobs-1] {
				t.Errorf("the id %s was given out after %s", next, ids[jobs-1])
			}
			s.kill()
			c = dial(start(t, dir).url)
			if n := c.count(t, ""); n != int64(len(there)+1) {
				t.Errorf("after another crash %d jobs are there, want %d", n, len(there)+1)
			}
		})
	}
}

func change(t *testing.T, path string, do func(f *os.File, size int64) error) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err == nil {
		err = do(f, info.Size())
	}
	if e := f.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
}

// flip turns 16 bytes over.
func flip(f *os.File, at int64) error {
	b := make([]byte, 16)
	_, err := f.ReadAt(b, at)
	for i := range b {
		b[i] ^= 0xff
	}
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	return err
}

// TestACorruptMiddleIsRefused: what was acknowledged stands behind the damage,
// so to start without it would lose it in silence (I5).
func TestACorruptMiddleIsRefused(t *testing.T) {
	t.Parallel()
	const jobs = 400 // two blocks of the log and more
	middle := func(f *os.File, size int64) error { return flip(f, size/2) }
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		file    string
		do      func(f *os.File, size int64) error
	}{
		"of the first log": {
			func(t *testing.T, dir string) { enqueued(t, dir, jobs) }, "*.log", middle,
		},
		"of a later log": {
			func(t *testing.T, dir string) { enqueued(t, dir, 1); enqueued(t, dir, jobs) }, "*.log", middle,
		},
		"of the last block of a log": {
			func(t *testing.T, dir string) { enqueued(t, dir, 1); enqueued(t, dir, jobs/4) }, "*.log", middle,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			test.prepare(t, dir)
			file := latest(t, dir, test.file)
			change(t, file, test.do)
			says(t, refusesToStart(t, dir), adviceCorrupt...)
		})
	}
}

// Who has no backup saves what can be read of a damaged directory: of a log all that
// the damage does not touch. The exit code says that something is lost.
func TestADamagedDirectoryIsSaved(t *testing.T) {
	t.Parallel()
	dir, saved := t.TempDir(), filepath.Join(t.TempDir(), "saved")
	ids := enqueued(t, dir, 400)
	change(t, latest(t, dir, "*.log"), func(f *os.File, size int64) error { return flip(f, size/2) })
	fails(t, []string{"doctor", "--root-dir", dir, "--port", "0"}, "is damaged at byte", "saves what can be read")
	fails(t, []string{"restore", dir, "--root-dir", saved}, "holds no tokens", "log is damaged from byte", "--accept-loss")
	if left, err := os.ReadDir(saved); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused restore left %v", left)
	}
	succeeds(t, []string{"restore", dir, "--root-dir", saved, "--accept-loss"},
		"jobs: 399 came over; how many there were is not known", "399 can be used (399 ready), and 0 will be dead", "log is damaged from byte", "tokens or settings may be missing")
	fails(t, []string{"restore", dir, "--root-dir", saved, "--accept-loss"}, "is not empty")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(dir, "data"), link); err != nil {
		t.Fatal(err)
	}
	for _, inside := range []string{filepath.Join(dir, "new"), filepath.Join(dir, "data", "new"), filepath.Join(link, "far", "new")} {
		fails(t, []string{"restore", dir, "--root-dir", inside, "--accept-loss"}, "is in the damaged directory")
	}
	fails(t, []string{"restore", saved, "--root-dir", filepath.Join(saved, "data")}, "is in the damaged directory")
	fails(t, []string{"restore", t.TempDir(), "--root-dir", filepath.Join(saved, "other")}, "it is not a data directory")
	says(t, refusesToStart(t, dir), adviceCorrupt...) // it is as it was
	s := start(t, saved)
	c := dial(s.url)
	missing := 0
	for _, id := range ids {
		if r, err := c.do(t.Context(), "GET", "/jobs/"+id, nil); err != nil || r.status != 200 {
			missing++
		}
	}
	if missing != 1 {
		t.Errorf("%d jobs are missing", missing)
	}
	fails(t, []string{"restore", saved, "--root-dir", filepath.Join(dir, "third")}, "in use by another process")
	s.kill()
	succeeds(t, []string{"restore", dir, "--root-dir", filepath.Join(t.TempDir(), "again"), "--accept-loss"}, "399 came over")
}

// A job that cannot be read is dead in queue "damaged" of the new directory, whose server
// starts again and again; what was cut off is told.
func TestASavedDirectoryServes(t *testing.T) {
	t.Parallel()
	dir, saved := t.TempDir(), filepath.Join(t.TempDir(), "saved")
	s := start(t, dir)
	c := dial(s.url)
	for range 30 {
		body := make([]byte, 10000) // a block of a table holds one
		_, _ = rand.Read(body)
		c.enqueue(t, "q", hex.EncodeToString(body))
	}
	if _, err := c.do(t.Context(), "POST", "/compact", nil); err != nil {
		t.Fatal(err)
	}
	s.terminate()
	change(t, latest(t, dir, "*.sst"), func(f *os.File, size int64) error { return flip(f, size/2) })
	fails(t, []string{"restore", dir, "--root-dir", saved}, "jobs: 30 came over; there were 30", "1 will be dead in queue \"damaged\"")
	for range 3 {
		s := start(t, saved)
		if got := dial(s.url).count(t, "queue=damaged"); got != 1 {
			t.Errorf("%d jobs are in queue damaged", got)
		}
		s.terminate()
	}
	succeeds(t, []string{"doctor", "--root-dir", saved, "--port", "0"}, "30 jobs")
	change(t, latest(t, saved, "*.log"), func(f *os.File, _ int64) error { return f.Truncate(0) })
	fails(t, []string{"restore", saved, "--root-dir", filepath.Join(t.TempDir(), "cut")}, "log is damaged from byte 0 to")
}

// A restore that is killed leaves a directory that is whole, or on which no server starts,
// and which the next restore takes.
func TestAKilledRestoreIsNoServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	enqueued(t, dir, 200)
	whole := false
	for wait := time.Millisecond; !whole; wait += wait/4 + 2*time.Millisecond {
		saved := filepath.Join(t.TempDir(), "saved")
		cmd := exec.CommandContext(t.Context(), binary, "restore", dir, "--root-dir", saved)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
		whole = cmd.Wait() == nil
		timer.Stop()
		if left, err := os.ReadDir(saved); err != nil || len(left) == 0 {
			continue // nothing was begun
		}
		if _, err := os.Stat(filepath.Join(saved, "FORMAT")); err != nil {
			says(t, refusesToStart(t, saved), "a restore that did not come to its end")
			if _, err := os.Stat(filepath.Join(saved, "data")); err != nil {
				succeeds(t, []string{"restore", dir, "--root-dir", saved}, "jobs: 200 came over")
			}
		}
		if _, err := os.Stat(filepath.Join(saved, "FORMAT")); err == nil {
			s := start(t, saved)
			if got := dial(s.url).count(t, "queue=q"); got != 200 {
				t.Errorf("%d of 200 jobs are there", got)
			}
			s.kill()
		}
	}
}
