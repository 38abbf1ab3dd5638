package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/backup"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// Restored is what a restore brought back.
type Restored struct {
	backup.Manifest
	Jobs map[string]int64 // by status; those that are not 0
}

// Restore unpacks a backup into a directory that is missing or empty, and opens
// it once to see that it can be read. After an error the directory is as it
// was, or what is left in it is named by the error; no server starts on it.
func Restore(ctx context.Context, from io.Reader, dir string) (out Restored, err error) {
	out.Jobs, err = settleIn(ctx, dir, func(dir string) error {
		out.Manifest, err = extract(from, dir)
		return err
	})
	return out, err
}

// Salvaged is what a salvage brought over.
type Salvaged struct {
	embedded.Salvaged
	Jobs map[string]int64 // by status; those that are not 0
}

// Salvage takes what can be read of a damaged data directory that no server uses into
// one that is missing or empty, in the same way. Where the tokens may be lost, it has to
// be told to accept that.
func Salvage(ctx context.Context, from, dir string, acceptLoss bool) (out Salvaged, err error) {
	if err := apart(from, dir); err != nil {
		return out, err
	}
	out.Jobs, err = settleIn(ctx, dir, func(dir string) error {
		if out.Salvaged, err = embedded.Salvage(vfs.Default, from, dir); err == nil && out.Rows && out.Tokens == 0 && !acceptLoss {
			err = fmt.Errorf("what could be read holds no tokens, and nobody knows whether there were any: without them the server is open to everybody. "+
				"If there were none, or after a look at what is lost, repeat it with --accept-loss; nothing was written. Not read: %s", strings.Join(out.Lost, "; "))
		}
		return err
	})
	return out, err
}

// apart refuses to write into the damaged directory.
func apart(from, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	rest := dir
	for { // its name without links, as far as it is there
		if whole, err := filepath.EvalSymlinks(rest); err == nil {
			rest = whole
			break
		}
		if rest == filepath.Dir(rest) {
			break
		}
		rest = filepath.Dir(rest)
	}
	for ; ; rest = filepath.Dir(rest) {
		at, err := os.Stat(rest)
		for _, source := range []string{from, filepath.Join(from, "data")} {
			if s, bad := os.Stat(source); err == nil && bad == nil && os.SameFile(at, s) {
				return fmt.Errorf("%s is in the damaged directory %s, which must not be changed; choose another with --root-dir", dir, from)
			}
		}
		if rest == filepath.Dir(rest) {
			return nil
		}
	}
}

// settleIn fills a directory below dir, opens it, makes it ready for its first start,
// counts what is there, and moves it to dir. If the process is killed meanwhile, no
// server starts on dir.
func settleIn(ctx context.Context, dir string, fill func(string) error) (counts map[string]int64, err error) {
	name, unfinished := filepath.Join(dir, "LOCK"), filepath.Join(dir, embedded.Unfinished)
	_, wasThere := os.Lstat(dir)
	_, wasLocked := os.Lstat(name)
	made := dir
	if err := empty(dir); err == nil || errors.Is(err, os.ErrNotExist) {
		made = unfinished
	}
	if err := os.MkdirAll(made, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	lock, err := vfs.Default.Lock(name)
	if err != nil {
		return nil, fmt.Errorf("%s is in use by another process (%w); stop that one, or choose another directory with --root-dir", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := empty(dir); err != nil {
		if wasLocked != nil {
			err = errors.Join(err, os.Remove(name))
		}
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, sweep(dir, wasLocked == nil))
		if wasThere != nil {
			_ = os.Remove(dir) // unless what it holds is told already
		}
	}()
	if err := errors.Join(os.MkdirAll(unfinished, 0o700), sweep(unfinished, false)); err != nil { // of one that was killed
		return nil, err
	}
	if err := fill(unfinished); err != nil {
		return nil, err
	}
	if counts, err = firstOpen(ctx, unfinished); err != nil {
		return nil, fmt.Errorf("what was restored does not open: %w", err)
	}
	return counts, moveUp(unfinished, dir)
}

// sweep empties a directory that was empty.
func sweep(dir string, keepLock bool) (err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); name != "lost+found" && (name != "LOCK" || !keepLock) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return err
}

// moveUp moves what a directory holds to its parent, FORMAT last: from then on a server
// starts there.
func moveUp(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	names := []string{}
	for _, e := range entries {
		if name := e.Name(); name != "LOCK" && name != "FORMAT" {
			names = append(names, name)
		}
	}
	for _, name := range append(names, "FORMAT") {
		if name == "FORMAT" {
			err = syncDir(to)
		}
		if err = errors.Join(err, os.Rename(filepath.Join(from, name), filepath.Join(to, name))); err != nil {
			return err
		}
	}
	err = syncDir(to)
	_ = os.RemoveAll(from) // or the first start does
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// empty refuses a directory that holds anything but its lock and a restore that was killed.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != "LOCK" && name != "lost+found" && name != embedded.Unfinished {
			return fmt.Errorf("%s is not empty (it holds %s); restore into a new directory with --root-dir", dir, name)
		}
	}
	return nil
}

// extract writes the files into an empty directory that is locked.
func extract(from io.Reader, dir string) (backup.Manifest, error) {
	return backup.Extract(from, dir, func(m backup.Manifest) error {
		if m.Format > embedded.Format {
			return fmt.Errorf("the backup has format %d and was made by version %s; this version knows up to %d: use that one or a newer",
				m.Format, m.Version, embedded.Format)
		}
		u, err := vfs.Default.GetDiskUsage(dir)
		if err == nil && int64(u.AvailBytes) < m.Bytes {
			return fmt.Errorf("the backup needs %d MiB and the disk of %s has %d MiB free", m.Bytes>>20+1, dir, u.AvailBytes>>20)
		}
		return nil
	})
}

// firstOpen opens a restored directory, makes it ready for its first start, and
// counts what is there.
func firstOpen(ctx context.Context, dir string) (counts map[string]int64, err error) {
	st, err := embedded.Open(embedded.Options{Dir: dir, Now: engine.SystemClock().Wall})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := engine.Restored(ctx, st); err != nil {
		return nil, err
	}
	err = st.View(ctx, func(v store.Reader) error {
		counts, err = countJobs(v)
		return err
	})
	return counts, err
}

// countJobs counts by status.
func countJobs(v store.Reader) (map[string]int64, error) {
	names, err := v.Names()
	counts := map[string]int64{}
	for _, name := range names {
		for state, n := range v.Depth(name).States {
			if n > 0 {
				counts[jobs.StatusOf(job.State(state))] += n
			}
		}
	}
	return counts, err
}
