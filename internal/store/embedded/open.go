package embedded

import (
	"errors"
	"path"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
)

// openData opens the database. A new one is opened twice: its first log is
// begun in an older layout, in which damage in the middle looks like a torn
// end and what stands behind it would be lost in silence.
func (s *Store) openData(h *handle) error {
	dir := s.opts.FS.PathJoin(s.opts.Dir, "data")
	cache := pebble.NewCache(s.opts.Cache)
	defer cache.Unref()
	if err := s.opts.FS.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	desc, err := pebble.Peek(dir, s.opts.FS)
	if err != nil {
		return err
	}
	if !desc.Exists {
		fresh, err := s.openPebble(h, dir, cache)
		if err != nil {
			return err
		}
		if err := fresh.Close(); err != nil {
			return err
		}
	}
	h.opened.Store(false)
	h.db, err = s.openPebble(h, dir, cache)
	return err
}

// openPebble opens the database, or gives it up with the first background
// error: on a full disk Pebble would try to flush its log for ever. What it
// does then waits for ever instead, and keeps its memory (backgroundError).
func (s *Store) openPebble(h *handle, dir string, cache *pebble.Cache) (*pebble.DB, error) {
	type opened struct {
		db  *pebble.DB
		err error
	}
	done := make(chan opened, 1)
	go func() {
		held, o := newCompactions(), pebbleOptions(h, cache, s)
		h.compactions = held
		o.Experimental.CompactionScheduler = held
		db, err := pebble.Open(dir, o)
		h.opened.Store(true)
		if err == nil {
			held.release()
		}
		done <- opened{db, err}
	}()
	select {
	case o := <-done:
		if e := h.poison.Load(); e != nil && o.err == nil {
			go func() { _ = o.db.Close() }() // behind the fence
			return nil, e.Cause
		}
		return o.db, o.err
	case <-h.failed:
		go func() { // behind the fence; should it come to an end, let go of it
			if o := <-done; o.err == nil {
				_ = o.db.Close()
			}
		}()
		return nil, h.poison.Load().Cause
	}
}

// backgroundError gives a handle up: a table that cannot be written (disk full)
// would in the end block every commit without an answer.
//
// While the database opens, Pebble would repeat a flush at once and for ever,
// and nobody could close it: the goroutine of the flush ends here. Later,
// closing the handle ends its background work.
func (s *Store) backgroundError(h *handle, err error) {
	if errors.Is(err, pebble.ErrClosed) {
		return
	}
	if pebble.IsCorruptionError(err) && h.opened.Load() { // a compaction met a table that is damaged, and leaves it
		h.compactions.rest()
		return
	}
	h.giveUp(err, s.opts.Logf)
	if !h.opened.Load() {
		runtime.Goexit()
	}
}

// probe finds out whether the disk takes about what opening the database would
// write: its logs as tables. An opening that fails half way costs memory until
// the process ends, and a full disk may stay full for hours.
func (s *Store) probe() (err error) {
	fs, dir := s.opts.FS, s.opts.FS.PathJoin(s.opts.Dir, "data")
	names, err := fs.List(dir)
	if err != nil {
		return job.Errorf(job.Unavailable, "reading the data directory %s: %v", s.opts.Dir, err)
	}
	size := int64(1 << 20)
	for _, name := range names {
		if path.Ext(name) != ".log" {
			continue
		}
		if info, err := fs.Stat(fs.PathJoin(dir, name)); err == nil {
			size += info.Size()
		}
	}
	file := s.probePath()
	f, err := fs.Create(file, vfs.WriteCategoryUnspecified)
	if err == nil {
		piece := make([]byte, 1<<20)
		for ; size > 0 && err == nil; size -= int64(len(piece)) {
			_, err = f.Write(piece)
		}
		err = errors.Join(err, f.Sync(), f.Close(), fs.Remove(file))
	}
	if err != nil {
		return job.Errorf(job.Unavailable, "the disk of the data directory %s takes no data: %v", s.opts.Dir, err)
	}
	return nil
}

func (s *Store) probePath() string { return s.opts.FS.PathJoin(s.opts.Dir, "PROBE") }
