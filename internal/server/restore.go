package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
// was, or what is left in it is named by the error.
func Restore(ctx context.Context, from io.Reader, dir string) (out Restored, err error) {
	out.Jobs, err = settleIn(ctx, dir, "the backup", func() error {
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
// one that is missing or empty, in the same way.
func Salvage(ctx context.Context, from, dir string) (out Salvaged, err error) {
	out.Jobs, err = settleIn(ctx, dir, "what could be read", func() error {
		if err := empty(dir); err != nil {
			return err
		}
		out.Salvaged, err = embedded.Salvage(vfs.Default, from, dir)
		return err
	})
	return out, err
}

// settleIn fills a directory, opens it, makes it ready for its first start, and counts
// what is there.
func settleIn(ctx context.Context, dir, what string, fill func() error) (map[string]int64, error) {
	name := filepath.Join(dir, "LOCK")
	_, wasThere := os.Lstat(dir)
	_, wasLocked := os.Lstat(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	lock, err := vfs.Default.Lock(name)
	if err != nil {
		return nil, fmt.Errorf("%s is in use by another process (%w); stop that one, or choose another directory with --root-dir", dir, err)
	}
	if err := fill(); err != nil {
		if wasLocked != nil {
			err = errors.Join(err, os.Remove(name))
		}
		err = errors.Join(err, lock.Close())
		if wasThere != nil {
			_ = os.Remove(dir) // unless what it holds is told already
		}
		return nil, err
	}
	if err := lock.Close(); err != nil {
		return nil, err
	}
	counts, err := firstOpen(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("%s is in %s and does not open: %w", what, dir, err)
	}
	return counts, nil
}

// empty refuses a directory that holds anything but its lock.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != "LOCK" && name != "lost+found" {
			return fmt.Errorf("%s is not empty (it holds %s); restore into a new directory with --root-dir", dir, name)
		}
	}
	return nil
}

// extract writes the files into an empty directory that is locked.
func extract(from io.Reader, dir string) (backup.Manifest, error) {
	if err := empty(dir); err != nil {
		return backup.Manifest{}, err
	}
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
