package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// must ends the test at an error of the operating system.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestADeletedLockLetsNobodyIn: neither a second server nor who only reads, and it is
// made again, while the first one goes on.
func TestADeletedLockLetsNobodyIn(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, vfs.Default, dir)
	lock := filepath.Join(dir, "LOCK")
	must(t, os.Remove(lock))
	refuses(t, vfs.Default, dir, job.Exists, "in use by another process")
	if _, err := embedded.Inspect(vfs.Default, dir); job.KindOf(err) != job.Exists {
		t.Errorf("it was inspected: %v", err)
	}
	s.Watch()
	if _, err := os.Stat(lock); err != nil {
		t.Error(err)
	}
	id := put(t, s, 10)
	must(t, s.Close())
	has(t, openDir(t, vfs.Default, dir), id)
}

// TestADirectoryThatGoesAwayEndsTheWork: until it is back.
func TestADirectoryThatGoesAwayEndsTheWork(t *testing.T) {
	for name, what := range map[string]string{"the whole": "", "its data": "data"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "root")
			s := openDir(t, vfs.Default, dir)
			kept := put(t, s, 10)
			moved := filepath.Join(dir, what)
			must(t, os.Rename(moved, moved+".away"))
			s.Watch()
			ended(t, s)
			if err := s.Reopen(t.Context()); job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "put it back") {
				t.Errorf("it opened again: %v", err)
			}
			if _, err := os.Stat(moved); !os.IsNotExist(err) {
				t.Errorf("it was made anew: %v", err)
			}
			must(t, os.Rename(moved+".away", moved))
			must(t, s.Reopen(t.Context()))
			has(t, s, kept, put(t, s, 10))
		})
	}
}

// ended wants a commit to fail.
func ended(t *testing.T, s *embedded.Store) {
	t.Helper()
	_, commit, err := begin(s, 10)
	if err == nil {
		err = commit.Wait()
	}
	if job.KindOf(err) != job.Unavailable {
		t.Errorf("a commit ended with %v", err)
	}
}

// TestADeletedLogTakesNothingIn: from the next commit on.
func TestADeletedLogTakesNothingIn(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, vfs.Default, dir)
	put(t, s, 10)
	must(t, os.RemoveAll(filepath.Join(dir, "data")))
	ended(t, s)
	if err := s.Reopen(t.Context()); job.KindOf(err) != job.Unavailable {
		t.Errorf("it opened again: %v", err)
	}
}

// TestADirectoryThatCannotBeLockedIsNotInUse.
func TestADirectoryThatCannotBeLockedIsNotInUse(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "LOCK"), 0o700)) // whoever runs the test, this is no file
	refuses(t, vfs.Default, dir, job.Invalid, "cannot be locked")
}
