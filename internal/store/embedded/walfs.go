package embedded

import (
	"encoding/binary"
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS is between Pebble and its log files. Pebble hands what it logs to the
// operating system only when a block of 32 KiB is full or somebody asks for a sync,
// so every commit asks for one (tx.go), and this decides whether the disk is asked
// as well:
//
//   - sync always: while a commit that must survive a power cut is under way. What
//     others wrote reaches the disk with it, or within Options.Interval.
//   - sync interval: when the interval has passed; sync os: never.
//   - in every mode before a log is closed: Pebble reads a log only if the one before
//     it is whole.
//
// A log file never tells Pebble of an error: while it changes its log files Pebble
// would end the process (its rotateWAL panics without the lock that its caller then
// unlocks). The handle is given up instead, and commit.Wait says so.
type logFS struct {
	vfs.FS          // the fence
	log    *logSync // of the handle
}

// logSync is what the log files of a handle have in common.
type logSync struct {
	need     atomic.Int32 // how many want everything that is written now to reach the disk
	unsynced atomic.Int64 // bytes that the operating system has and the disk may not have
	giveUp   func(error)  // returns after the handle is poisoned
	failed   atomic.Pointer[error]
}

// isLog reports whether a file is a log that is written. Pebble exports no name for it.
func isLog(c vfs.DiskWriteCategory) bool { return c == "pebble-wal" }

func (l *logFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.Create(name, c)
	if !isLog(c) {
		return f, err
	}
	return l.log.open(f, err), nil
}

func (l *logFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.ReuseForWrite(oldname, newname, c)
	if !isLog(c) {
		return f, err
	}
	return l.log.open(f, err), nil
}

// Unwrap implements vfs.FS.
func (l *logFS) Unwrap() vfs.FS { return l.FS }

func (l *logSync) open(f vfs.File, err error) vfs.File {
	w := &logFile{File: f, log: l}
	if err != nil {
		w.lose(err)
	}
	return w
}

// logFile is a log that is written. Only one goroutine uses it at a time: Pebble's
// flush loop, and when that has ended whoever closes the log.
type logFile struct {
	vfs.File
	log    *logSync
	buf    []byte
	offset int64 // written so far
	synced int64 // on disk
}

// lose gives the handle up; what Pebble does with the file from here on goes nowhere.
func (f *logFile) lose(err error) {
	f.log.failed.CompareAndSwap(nil, &err)
	f.log.giveUp(err)
	if f.File != nil {
		_ = f.File.Close()
	}
	f.File, _ = vfs.NewMem().Create("lost", vfs.WriteCategoryUnspecified)
}

func (f *logFile) Write(p []byte) (int, error) {
	if _, err := f.File.Write(f.stamp(p)); err != nil {
		f.lose(err)
	}
	f.offset += int64(len(p))
	f.log.unsynced.Add(int64(len(p)))
	return len(p), nil
}

// stamp returns a copy of whole chunks that say up to where the log is on disk. What
// Pebble wrote there is wrong: it takes every sync for one that reached the disk, and
// does not count full blocks.
func (f *logFile) stamp(p []byte) []byte {
	f.buf = append(f.buf[:0], p...)
	for b := f.buf; len(b) >= chunkHeader && b[6] >= chunkTypeFirst && b[6] <= chunkTypeLast; {
		size := chunkHeader + int(binary.LittleEndian.Uint16(b[4:]))
		if size > len(b) {
			break
		}
		binary.LittleEndian.PutUint64(b[11:], uint64(f.synced)) //nolint:gosec // an offset in a file
		binary.LittleEndian.PutUint32(b, chunkSum(b[:size]))
		b = b[size:]
	}
	return f.buf
}

// Sync implements vfs.File.
func (f *logFile) Sync() error { return f.SyncData() }

// SyncData implements vfs.File.
func (f *logFile) SyncData() error {
	if f.log.need.Load() > 0 {
		f.toDisk()
	}
	return nil
}

func (f *logFile) toDisk() {
	err := f.File.SyncData()
	if err == nil {
		err = f.named()
	}
	if err != nil {
		f.lose(err)
	}
	f.log.unsynced.Add(f.synced - f.offset)
	f.synced = f.offset
}

// named refuses to take for safe what stands in a file that was deleted.
func (f *logFile) named() error {
	info, err := f.File.Stat()
	if err == nil && deleted(info) {
		return errors.New("the log was deleted under the server; put the data directory back, or stop the server and restore a backup")
	}
	return err
}

// Close implements vfs.File.
func (f *logFile) Close() error {
	if f.synced < f.offset {
		f.toDisk()
	}
	if err := f.File.Close(); err != nil {
		f.lose(err)
	}
	return nil
}

// Stat implements vfs.File.
func (f *logFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err == nil {
		return info, nil
	}
	f.lose(err)
	return f.File.Stat()
}
