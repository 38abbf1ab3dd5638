package embedded

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/reprisehq/reprise/internal/job"
)

// asideDir is where a snapshot is put together, below the root directory: hard
// links do not reach farther. What a crash leaves there goes at the next start.
const asideDir = "backup.tmp"

// asideSlack is free space that a snapshot needs beside the copies of the logs.
const asideSlack = 16 << 20

// Snapshot is the store as it was at one moment, as files. It costs no space
// for what the store keeps as well; what the store drops meanwhile stays until
// Close.
type Snapshot struct {
	s      *Store
	Format int            // of the files
	Files  []SnapshotFile // FORMAT first
}

// SnapshotFile is one file, with its path below a root directory.
type SnapshotFile struct {
	Name string
	Size int64
}

// Snapshot makes one. Everything that was durable when it was asked for is in
// it. Commits wait while the links are made, and only one snapshot may exist
// (OverLimit). It is refused with Unavailable if it would leave less than keep
// bytes of the disk free, or where the file system has no hard links. The
// caller closes it.
func (s *Store) Snapshot(keep int64) (_ *Snapshot, err error) {
	if !s.aside.CompareAndSwap(false, true) {
		return nil, job.Errorf(job.OverLimit, "a backup is being made already; wait until it is done")
	}
	x := &Snapshot{s: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	fs := s.opts.FS
	if err := fs.RemoveAll(s.asidePath()); err != nil {
		return nil, aside(err)
	}
	if err := fs.MkdirAll(s.asidePath(), 0o700); err != nil {
		return nil, aside(err)
	}
	if err := fs.Link(fs.PathJoin(s.opts.Dir, "FORMAT"), fs.PathJoin(s.asidePath(), "FORMAT")); err != nil {
		return nil, job.Errorf(job.Unavailable,
			"this file system makes no hard links (%v), so a running server cannot be copied; stop it and copy its directory", err)
	}
	h := s.db.Load()
	if e := h.poison.Load(); e != nil {
		return nil, e
	}
	if err := h.guarded(func(db *pebble.DB) error { return db.Flush() }); err != nil { // so that there is little log to copy
		return nil, aside(err)
	}
	if err := s.roomAside(keep); err != nil {
		return nil, err
	}
	if err := s.checkpoint(); err != nil {
		return nil, err
	}
	return x, x.list()
}

func aside(err error) error {
	if job.KindOf(err) == job.Unavailable {
		return err
	}
	return &job.Error{Kind: job.Unavailable, Text: "the backup could not be put together; the server's log says why", Cause: err}
}

func (s *Store) asidePath() string { return s.opts.FS.PathJoin(s.opts.Dir, asideDir) }

// guarded runs f, and lets go of it when the handle fails meanwhile: f may then
// hang in its locks for ever.
func (h *handle) guarded(f func(*pebble.DB) error) error {
	done := make(chan error, 1)
	go func() {
		h.busy.RLock() // a healthy handle is not closed meanwhile
		defer h.busy.RUnlock()
		if e := h.poison.Load(); e != nil {
			done <- e
			return
		}
		done <- f(h.db)
	}()
	select {
	case err := <-done:
		return err
	case <-h.failed:
		return h.poison.Load()
	}
}

// roomAside refuses a snapshot that the disk has no room for: logs and the list
// of tables are copied.
func (s *Store) roomAside(keep int64) error {
	fs, dir := s.opts.FS, s.opts.FS.PathJoin(s.opts.Dir, "data")
	names, err := fs.List(dir)
	if err != nil {
		return aside(err)
	}
	need := int64(asideSlack)
	for _, name := range names {
		if path.Ext(name) == ".sst" {
			continue
		}
		if info, err := fs.Stat(fs.PathJoin(dir, name)); err == nil {
			need += info.Size()
		}
	}
	free, _, err := s.Free()
	if err == nil && free-need < keep {
		return job.Errorf(job.Unavailable,
			"a backup needs %d MiB of free disk space beside the reserve of %d MiB, and %d MiB are free; make room first",
			need>>20, keep>>20, free>>20)
	}
	return nil
}

// checkpoint makes links to the tables and copies the logs. No commit may run
// meanwhile: a log is written anew over an old one, and a copy of one that is
// being written could hold the old between two new pieces.
func (s *Store) checkpoint() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.db.Load()
	if e := h.poison.Load(); e != nil {
		return e
	}
	to := s.opts.FS.PathJoin(s.asidePath(), "data")
	h.fence.asideFailed.Store(nil)
	if err := h.guarded(func(db *pebble.DB) error { return db.Checkpoint(to, pebble.WithFlushedWAL()) }); err != nil {
		return aside(err)
	}
	if err := h.fence.asideFailed.Load(); err != nil {
		return aside(*err)
	}
	return nil
}

// list finds the files of the snapshot.
func (x *Snapshot) list() error {
	fs := x.s.opts.FS
	n, err := ReadFormat(fs, fs.PathJoin(x.s.asidePath(), "FORMAT"))
	if err != nil {
		return aside(err)
	}
	x.Format = n
	names, err := fs.List(fs.PathJoin(x.s.asidePath(), "data"))
	if err != nil {
		return aside(err)
	}
	slices.Sort(names)
	x.Files = []SnapshotFile{{Name: "FORMAT"}}
	for _, name := range names {
		x.Files = append(x.Files, SnapshotFile{Name: "data/" + name})
	}
	for i := range x.Files {
		info, err := fs.Stat(fs.PathJoin(x.s.asidePath(), x.Files[i].Name))
		if err != nil {
			return aside(err)
		}
		x.Files[i].Size = info.Size()
	}
	return nil
}

// Bytes is the size of all files.
func (x *Snapshot) Bytes() (n int64) {
	for _, f := range x.Files {
		n += f.Size
	}
	return n
}

// Open reads one of the files.
func (x *Snapshot) Open(name string) (io.ReadCloser, error) {
	fs := x.s.opts.FS
	return fs.Open(fs.PathJoin(x.s.asidePath(), name))
}

// Close removes the snapshot. Its readers must be closed.
func (x *Snapshot) Close() error {
	defer x.s.aside.Store(false)
	return x.s.opts.FS.RemoveAll(x.s.asidePath())
}

// Compact rewrites the whole database, so that the space of what was deleted
// comes back now. Work goes on meanwhile, slower. It needs free space for its
// largest tables, and ends early with ctx.
func (s *Store) Compact(ctx context.Context) error {
	if !s.compacting.CompareAndSwap(false, true) {
		return job.Errorf(job.OverLimit, "a compaction runs already; wait until it is done")
	}
	defer s.compacting.Store(false)
	h := s.db.Load()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-h.failed: // or closed
			cancel()
		case <-ctx.Done():
		}
	}()
	return h.guarded(func(db *pebble.DB) error {
		err := db.Compact(ctx, []byte{0}, []byte{0xff}, false)
		if err != nil {
			return &job.Error{Kind: job.Unavailable, Text: "the compaction did not come to its end", Cause: err}
		}
		return nil
	})
}
