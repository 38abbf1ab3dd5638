package embedded

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// witness knows, apart from Pebble, what of its files is on disk. Pebble takes a
// damaged list of tables for a shorter one and deletes what that does not name, a
// damaged end of the newest log for one that a crash tore, and a directory without
// its files for a new one. What is known here is therefore compared before Pebble
// opens (check).
//
// Only what a sync has confirmed is written down, and afterwards: whatever a power
// cut leaves of it is true. What cannot be written is left out, and what cannot be
// read says nothing.
type witness struct {
	fs    vfs.FS
	dir   string
	data  string // the directory of the database, below
	logf  func(string, ...any)
	fresh bool // there is no file yet
	blind bool // no claims could be read: what is missing cannot be told

	mu    sync.Mutex
	file  vfs.File // set and cleared under both locks
	known claims
	inUse list // that the database had when it was checked
	told  bool // that it cannot be written

	logMu sync.Mutex
	logs  logEnds
}

// witnessName is the file, beside FORMAT. Its first two blocks hold claims, written
// and synced in turn; the third the ends of logs, written after each of their syncs
// and synced with the next claims.
const (
	witnessName  = "SYNCED"
	witnessBlock = 4 << 10
)

// claims are what is known for good.
type claims struct {
	Turn  uint64 `json:"turn"`  // of several blocks the highest counts
	Made  bool   `json:"made"`  // the database is there
	Jobs  int64  `json:"jobs"`  // in it when it was closed; -1 = it was not closed since
	Lists []list `json:"lists"` // the latest listsKnown
}

// list is a MANIFEST: Pebble's list of its tables.
type list struct {
	Number uint64 `json:"number"`
	Size   int64  `json:"size"` // that was synced
	Sum    uint32 `json:"sum"`  // of so many bytes
}

const listsKnown = 8

// logEnds are the latest logs and how far they were synced.
type logEnds [8]struct{ number, end uint64 }

// openWitness reads what is known of a directory.
func openWitness(fs vfs.FS, dir string, logf func(string, ...any)) (*witness, error) {
	w := &witness{fs: fs, dir: dir, data: fs.PathJoin(dir, "data"), logf: logf}
	return w, w.read()
}

// begin makes the file, if there is none, and lets it be written.
func (w *witness) begin() (err error) {
	if w.file != nil {
		return nil
	}
	if w.file, err = w.fs.OpenReadWrite(w.path(), vfs.WriteCategoryUnspecified); err == nil && w.fresh {
		err = syncDir(w.fs, w.dir)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", w.path(), err)
	}
	w.fresh = false
	if w.inUse.Size > 0 && !slices.ContainsFunc(w.known.Lists, func(l list) bool { return l.Number == w.inUse.Number }) {
		w.listSynced(w.inUse) // Pebble begins another one, which is known before it is in use
	}
	return nil
}

func (w *witness) path() string { return w.fs.PathJoin(w.dir, witnessName) }

func (w *witness) read() error {
	w.known = claims{Jobs: -1}
	content, err := readAll(w.fs, w.path())
	if w.fresh = errors.Is(err, os.ErrNotExist); w.fresh {
		w.blind = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", w.path(), err)
	}
	read := 0
	for slot := range 2 {
		var c claims
		if text := unseal(content, slot); text == nil || json.Unmarshal(text, &c) != nil {
			continue
		}
		if read++; c.Turn >= w.known.Turn {
			w.known = c
		}
	}
	if w.blind = read == 0; read < 2 {
		w.known.Jobs = -1 // the other block may know of a later close
	}
	if b := unseal(content, 2); len(b) == 16*len(w.logs) {
		for i := range w.logs {
			w.logs[i].number = binary.LittleEndian.Uint64(b[16*i:])
			w.logs[i].end = binary.LittleEndian.Uint64(b[16*i+8:])
		}
	}
	return nil
}

// seal puts a checksum and the length before what a block holds.
func seal(content []byte) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 4, 8+len(content)), uint32(len(content))) //nolint:gosec // below a block
	b = append(b, content...)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// unseal is the content of a block of the file, nil if it is not intact.
func unseal(file []byte, block int) []byte {
	b := file[min(block*witnessBlock, len(file)):min((block+1)*witnessBlock, len(file))]
	if len(b) < 8 {
		return nil
	}
	end := 8 + int64(binary.LittleEndian.Uint32(b[4:]))
	if end > int64(len(b)) || crc32.Checksum(b[4:end], castagnoli) != binary.LittleEndian.Uint32(b) {
		return nil
	}
	return b[8:end]
}

// state changes what is known for good and syncs it, with the ends of the logs.
func (w *witness) state(change func(*claims)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return
	}
	change(&w.known)
	w.known.Turn++
	text, err := json.Marshal(&w.known)
	if err == nil {
		_, err = w.file.WriteAt(seal(text), int64(w.known.Turn%2)*witnessBlock)
	}
	if err == nil {
		err = w.file.Sync()
	}
	w.tell(err)
}

// tell reports the first failure to write. What is on disk stays true.
func (w *witness) tell(err error) {
	if err != nil && !w.told {
		w.told = true
		w.logf("writing %s, which guards against damaged files: %v", witnessName, err)
	}
}

// listSynced notes that so much of a list of tables is on disk.
func (w *witness) listSynced(l list) {
	w.state(func(c *claims) {
		c.Lists = append(slices.DeleteFunc(c.Lists, func(o list) bool { return o.Number == l.Number }), l)
		for i := 0; len(c.Lists) > listsKnown; i++ {
			if c.Lists[i].Number != w.inUse.Number { // which stays so until Pebble has noted that another one is
				c.Lists, i = slices.Delete(c.Lists, i, i+1), -1
			}
		}
	})
}

// logSynced notes that a log is on disk up to end. The operating system has it
// when this returns, so that it outlives the process; the disk soon after.
func (w *witness) logSynced(number, end uint64) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	if w.file == nil {
		return
	}
	at := 0
	for i := range w.logs {
		if w.logs[i].number == number {
			at = i
			break
		}
		if w.logs[i].number < w.logs[at].number {
			at = i // the oldest gives way
		}
	}
	if w.logs[at].number > number || w.logs[at].number == number && w.logs[at].end >= end {
		return
	}
	w.logs[at].number, w.logs[at].end = number, end
	var b [16 * len(w.logs)]byte
	for i := range w.logs {
		binary.LittleEndian.PutUint64(b[16*i:], w.logs[i].number)
		binary.LittleEndian.PutUint64(b[16*i+8:], w.logs[i].end)
	}
	_, _ = w.file.WriteAt(seal(b[:]), 2*witnessBlock) // an older end is true as well
}

// opened compares the number of jobs with that at the last close, and forgets it.
func (w *witness) opened(jobs int64) error {
	if was := w.known.Jobs; was >= 0 && was != jobs {
		return corrupt("%s has %d jobs, and had %d when it was closed", w.data, jobs, was)
	}
	w.state(func(c *claims) { c.Made, c.Jobs = true, -1 })
	return nil
}

// closed notes how many jobs are on disk.
func (w *witness) closed(jobs int64) {
	w.state(func(c *claims) { c.Jobs = jobs })
}

// close ends it; a handle that was abandoned may still ask for more.
func (w *witness) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logMu.Lock()
	defer w.logMu.Unlock()
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// watchFS tells the witness what Pebble's syncs confirm. It is below whatever may
// leave a sync out.
type watchFS struct {
	vfs.FS
	w *witness

	mu     sync.Mutex
	loaded bool
	late   []string // to be deleted when it is
}

// Remove keeps files of the database until the load has come to its end: a start that is
// refused then has deleted nothing.
func (f *watchFS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	base := f.PathBase(name)
	if _, isLog := logNumber(base); !f.loaded && f.PathDir(name) == f.w.data &&
		(isLog || strings.HasSuffix(base, ".sst") || strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "OPTIONS-")) {
		f.late = append(f.late, name)
		return nil
	}
	return f.remove(name)
}

// remove removes a list of tables with its copy.
func (f *watchFS) remove(name string) error {
	if base := f.PathBase(name); f.PathDir(name) == f.w.data && strings.HasPrefix(base, "MANIFEST-") {
		_ = f.FS.Remove(f.PathJoin(f.w.dir, base)) // before the list, so that none stays behind
	}
	return f.FS.Remove(name)
}

// accept deletes what the load kept.
func (f *watchFS) accept() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range f.late {
		_ = f.remove(name) // else the next start does
	}
	f.loaded, f.late = true, nil
}

// Unwrap implements vfs.FS.
func (f *watchFS) Unwrap() vfs.FS { return f.FS }

func (f *watchFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return f.watch(name, file, err)
}

func (f *watchFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, c)
	return f.watch(newname, file, err)
}

func (f *watchFS) watch(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil || f.PathDir(name) != f.w.data {
		return file, err // a backup's files, for one
	}
	if number, ok := logNumber(f.PathBase(name)); ok {
		return &watchedLog{File: file, w: f.w, number: number}, nil
	}
	if number, ok := listNumber(f.PathBase(name)); ok {
		second, _ := f.w.fs.Create(f.PathJoin(f.w.dir, f.PathBase(name)), vfs.WriteCategoryUnspecified) // a salvage does without it
		return &watchedList{File: file, w: f.w, list: list{Number: number}, second: second}, nil
	}
	return file, nil
}

func logNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".log")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

func listNumber(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, "MANIFEST-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// watchedLog is a log that is written from its beginning.
type watchedLog struct {
	vfs.File
	w       *witness
	number  uint64
	written atomic.Uint64
}

func (f *watchedLog) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written.Add(uint64(max(n, 0)))
	return n, err
}

func (f *watchedLog) Sync() error     { return f.synced(f.File.Sync) }
func (f *watchedLog) SyncData() error { return f.synced(f.File.SyncData) }

func (f *watchedLog) synced(sync func() error) error {
	end := f.written.Load()
	err := sync()
	if err == nil {
		f.w.logSynced(f.number, end)
	}
	return err
}

// watchedList is a list of tables, which one goroutine at a time writes and syncs.
type watchedList struct {
	vfs.File
	w      *witness
	list   list
	second vfs.File // a copy beside SYNCED, for a salvage; nil = it could not be written
}

func (f *watchedList) Write(p []byte) (int, error) {
	sum := crc32.Update(f.list.Sum, castagnoli, p) // beforehand: whoever is given p may change it
	if f.second != nil {
		_, _ = f.second.Write(bytes.Clone(p)) // its sum is compared before it is used
	}
	n, err := f.File.Write(p)
	if err == nil {
		f.list.Size, f.list.Sum = f.list.Size+int64(n), sum
	}
	return n, err
}

func (f *watchedList) Close() error {
	if f.second != nil {
		_ = f.second.Close()
	}
	return f.File.Close()
}

func (f *watchedList) Sync() error {
	err := f.File.Sync()
	if err == nil {
		f.w.listSynced(f.list)
	}
	return err
}
