package embedded

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errFenced is what a Pebble handle sees after it was given up.
var errFenced = errors.New("this store handle was closed after a failed commit")

// fence stands between one Pebble handle and the file system. When a commit
// fails, the handle is given up and may hang in its own locks for ever; the
// fence makes sure that it cannot touch a file any more, so that a new handle
// may open the same directory beside it.
type fence struct {
	vfs.FS
	down   atomic.Bool
	giveUp func(error) // called when a directory cannot be synced
	aside  string      // directories from here on do not belong to the handle; "" = none

	asideFailed atomic.Pointer[error] // why one of them could not be synced
}

// let does something with the files, unless the handle was given up.
func (f *fence) let(do func() error) error {
	if f.down.Load() {
		return errFenced
	}
	return do()
}

// open is let of what opens a file to write it.
func (f *fence) open(do func() (vfs.File, error)) (file vfs.File, err error) {
	err = f.let(func() (err error) { file, err = do(); return err })
	if err != nil {
		return nil, err
	}
	return &fencedFile{File: file, fence: f}, nil
}

// Lock does nothing: the directory is locked by Store for its whole life.
func (f *fence) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (f *fence) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.open(func() (vfs.File, error) { return f.FS.Create(name, c) })
	if err != nil || !background(c) {
		return file, err
	}
	return &breathingFile{File: file, began: time.Now()}, nil
}

func (f *fence) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

func (f *fence) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open(func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

func (f *fence) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	if f.aside != "" && strings.HasPrefix(name, f.aside) {
		return &asideFolder{File: dir, fence: f}, nil
	}
	return &fencedDir{File: dir, fence: f}, nil
}

func (f *fence) Link(oldname, newname string) error {
	return f.let(func() error { return f.FS.Link(oldname, newname) })
}

func (f *fence) Remove(name string) error {
	return f.let(func() error { return f.FS.Remove(name) })
}

func (f *fence) RemoveAll(name string) error {
	return f.let(func() error { return f.FS.RemoveAll(name) })
}

func (f *fence) Rename(oldname, newname string) error {
	return f.let(func() error { return f.FS.Rename(oldname, newname) })
}

// Unwrap implements vfs.FS.
func (f *fence) Unwrap() vfs.FS { return f.FS }

type fencedFile struct {
	vfs.File
	fence *fence
}

func (f *fencedFile) Write(p []byte) (n int, err error) {
	err = f.fence.let(func() (err error) { n, err = f.File.Write(p); return err })
	return n, err
}

func (f *fencedFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fence.let(func() (err error) { n, err = f.File.WriteAt(p, off); return err })
	return n, err
}

func (f *fencedFile) Sync() error { return f.fence.let(f.File.Sync) }

func (f *fencedFile) SyncData() error { return f.fence.let(f.File.SyncData) }

func (f *fencedFile) SyncTo(length int64) (full bool, err error) {
	err = f.fence.let(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// background reports whether what is written is not waited for: flushes of memory
// tables and compactions. Pebble exports none of these names.
func background(c vfs.DiskWriteCategory) bool {
	return c == "pebble-memtable-flush" || c == "pebble-compaction"
}

// breatheEvery is how long background work keeps a processor to itself.
const breatheEvery = 200 * time.Microsecond

// breathingFile is written by background work, which lets others run between its
// writes, one block each. The scheduler of Go would let a goroutine that computes
// have its processor for 10 ms, and more often than not again: on a machine with
// two of them, whoever stood in that processor's line waited for up to 150 ms.
type breathingFile struct {
	vfs.File
	began time.Time // the present spell of work
}

func (f *breathingFile) Write(p []byte) (int, error) {
	if time.Since(f.began) >= breatheEvery {
		// Not runtime.Gosched: its processor would go on with this goroutine
		// before it looked into the line of another one.
		time.Sleep(time.Nanosecond) //nolint:forbidigo // it waits for nothing: whoever can run, runs
		f.began = time.Now()
	}
	return f.File.Write(p)
}

type fencedDir struct {
	vfs.File
	fence *fence
}

// Sync never fails: Pebble would end the process (atomicfs.Marker.Move). The
// handle is given up instead, and what it does in the belief that the directory
// is on disk does not get past the fence.
func (d *fencedDir) Sync() error {
	if d.fence.down.Load() {
		return nil
	}
	if err := d.File.Sync(); err != nil {
		d.fence.giveUp(err)
	}
	return nil
}

// asideFolder is a directory of a backup, which may fail by itself. It does not
// tell Pebble, for the same reason.
type asideFolder struct {
	vfs.File
	fence *fence
}

func (d *asideFolder) Sync() error {
	if err := d.File.Sync(); err != nil {
		d.fence.asideFailed.Store(&err)
	}
	return nil
}
