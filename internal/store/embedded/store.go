// Package embedded keeps jobs in Pebble, with ordered indexes in memory, so
// that dispatch does not depend on the disk. One process owns a directory.
//
// What is on disk: one value per job, payloads and failures apart, rows
// (keys.go, codec.go, layouts.go). Everything else is an index in memory, computed from
// the jobs at load (index.go). Writes of one transaction are one Pebble batch;
// the next transaction is applied while the last one is being synced
// (DESIGN section 3, docs/adr/0001).
package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Sync says when a durable transaction is on the disk.
type Sync uint8

// The sync modes. What was answered has left the process in all of them, so that its
// end loses nothing. With Interval and OS a power cut may, up to the interval or what
// the operating system holds back.
const (
	Always   Sync = iota // before Commit.Wait returns
	Interval             // every Options.Interval
	OS                   // when the operating system likes
)

func (s Sync) String() string { return [...]string{"always", "interval", "os"}[s] }

// ParseSync reads a sync mode.
func ParseSync(s string) (Sync, error) {
	for _, m := range []Sync{Always, Interval, OS} {
		if m.String() == s {
			return m, nil
		}
	}
	return 0, fmt.Errorf("sync %q is not one of always, interval, os", s)
}

// Options configure a store.
type Options struct {
	Dir  string
	FS   vfs.FS // nil = the operating system's
	Now  func() job.Millis
	Sync Sync
	// Interval is how long what need not be on the disk at once may be missing there:
	// with Interval everything (0 = 100 ms), with Always what did not ask to be durable
	// (0 = 1 s).
	Interval time.Duration
	Cache    int64 // bytes of disk blocks kept in memory; 0 = 64 MiB
	// Logf receives what Pebble has to say that an operator should know.
	Logf func(format string, args ...any)
}

const (
	memTableBytes  = 32 << 20
	hotJobsMax     = 8 << 10
	hotBodiesMax   = 4 * hotJobsMax
	hotPayloadsMax = 8 << 20
)

// Store implements store.Store.
type Store struct {
	opts    Options
	claim   *claim
	names   *names
	witness *witness
	damage  damage

	mu    sync.RWMutex // guards everything below but poison
	index *index
	rows  *rows
	hot   *hot
	known *known     // receipts
	last  job.Millis // time of the latest transaction
	tx    tx         // reused by the one writer

	unreadable []store.Unreadable // since the load

	db      atomic.Pointer[handle]
	tickers []*ticker

	format            int         // in FORMAT
	aside, compacting atomic.Bool // is a snapshot, a compaction under way
}

// handle is one opening of the database; it ends with the first failed commit.
type handle struct {
	db     *pebble.DB
	fence  *fence
	log    logSync
	poison atomic.Pointer[job.Error]
	failed chan struct{} // closed with the first reason
	opened atomic.Bool   // Pebble's Open is over

	compactions *compactions // set before it
	busy        sync.RWMutex // held by long work; a healthy handle is closed after it
}

var _ store.Store = (*Store)(nil)

// Open opens or creates the store in a directory and loads it. A directory
// that another process has open is refused.
func Open(opts Options) (*Store, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	if opts.Interval == 0 {
		opts.Interval = map[Sync]time.Duration{Always: time.Second, Interval: 100 * time.Millisecond}[opts.Sync]
	}
	if opts.Cache == 0 {
		opts.Cache = 64 << 20
	}
	if opts.Logf == nil {
		opts.Logf = func(string, ...any) {}
	}
	if err := makeDir(opts.FS, opts.Dir); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	claim, err := claimDir(opts.FS, opts.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, claim: claim, names: newNames()}
	_ = opts.FS.Remove(s.probePath()) // of a process that was killed; its space is needed, its absence usual
	_ = opts.FS.RemoveAll(s.asidePath())
	if exists(opts.FS, opts.FS.PathJoin(opts.Dir, "FORMAT")) {
		_ = opts.FS.RemoveAll(opts.FS.PathJoin(opts.Dir, Unfinished)) // it was finished
	}
	if s.witness, err = openWitness(opts.FS, opts.Dir, opts.Logf); err == nil {
		if err = s.checkFormat(); err == nil {
			err = s.load()
		}
		switch {
		case err != nil:
		case s.format < Format:
			err = s.writeFormat()
		case s.witness.blind:
			opts.Logf("%s is gone or damaged, so nobody can tell whether the disk lost jobs; compare with a backup, or with what others know was accepted. It is made anew", s.witness.path())
		}
		if err != nil {
			err = errors.Join(err, s.closeHandle(), s.witness.close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, claim.Close())
	}
	claim.keep(dataName)
	if len(claim.ids) > 0 { // it is not in memory
		s.tickers = append(s.tickers, startTicker(time.Second, s.watch))
	}
	if opts.Sync != OS {
		s.tickers = append(s.tickers, startTicker(opts.Interval, s.syncNow))
	}
	return s, nil
}

// watch stops the work when the directory is not there any more: what would be answered
// goes nowhere, or another server works where it was.
func (s *Store) watch() {
	if err := s.claim.check(); err != nil {
		s.db.Load().giveUp(err, s.opts.Logf)
	}
}

// checkFormat reads the FORMAT file, or writes it into a new directory, behind the
// file of the witness: a directory without that is of an earlier version.
func (s *Store) checkFormat() error {
	fs, path := s.opts.FS, s.opts.FS.PathJoin(s.opts.Dir, "FORMAT")
	n, err := ReadFormat(fs, path)
	if err == nil {
		if n > Format {
			return job.Errorf(job.Invalid, "the data directory has format %d, this version knows up to %d; start a newer version, or restore a backup made with this one", n, Format)
		}
		s.format = n
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	names, err := fs.List(fs.PathJoin(s.opts.Dir, "data"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", s.opts.Dir, err)
	}
	if len(names) > 0 {
		return corrupt("%s has data but no FORMAT file", s.opts.Dir)
	}
	if err := s.witness.begin(); err != nil {
		return err
	}
	s.witness.blind = false // there was nothing yet
	return s.writeFormat()
}

// writeFormat says that from now on there may be what earlier versions do not know.
func (s *Store) writeFormat() error {
	fs, path := s.opts.FS, s.opts.FS.PathJoin(s.opts.Dir, "FORMAT")
	f, err := fs.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte(strconv.Itoa(Format) + "\n"))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = fs.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	s.format = Format
	return syncDir(fs, s.opts.Dir)
}

// Unfinished is a directory below one that a restore fills. What is in it moves up at
// the end, FORMAT last.
const Unfinished = "restore.tmp"

// ReadFormat reads the number in a FORMAT file.
func ReadFormat(fs vfs.FS, path string) (n int, err error) {
	f, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		if dir := fs.PathDir(path); exists(fs, fs.PathJoin(dir, Unfinished)) {
			return 0, job.Errorf(job.Invalid, "%s holds a restore that did not come to its end (%s, and no FORMAT); delete it, and restore again", dir, Unfinished)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	if n, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || n < 1 {
		return 0, corrupt("%s holds no format number, as it does in a data directory of Reprise", path)
	}
	return n, nil
}

func exists(fs vfs.FS, path string) bool {
	_, err := fs.Stat(path)
	return err == nil
}

// makeDir makes a directory so that a power cut does not take it away: every
// directory that got a new entry is synced.
func makeDir(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	parent := fs.PathDir(dir)
	if parent != dir {
		if err := makeDir(fs, parent); err != nil {
			return err
		}
	}
	return errors.Join(fs.MkdirAll(dir, 0o700), syncDir(fs, parent))
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// load opens a handle and computes the indexes.
func (s *Store) load() error {
	if err := s.witness.check(); err != nil {
		return err
	}
	if err := s.witness.begin(); err != nil {
		return err
	}
	files := &watchFS{FS: s.opts.FS, w: s.witness}
	h := &handle{fence: &fence{FS: files, aside: s.asidePath()}, failed: make(chan struct{})}
	h.fence.giveUp = func(err error) { h.giveUp(err, s.opts.Logf) }
	h.log.giveUp = h.abandon
	if err := s.openData(h); err != nil {
		if err = h.reason(err); job.KindOf(err) == job.Corrupt {
			return err
		}
		return unopened(files.w.data, err)
	}
	s.db.Store(h)
	s.index, s.rows, s.hot, s.known = newIndex(s.names), newRows(), newHot(), &known{}
	if err := s.loadRows(h); err != nil {
		return h.reason(err)
	}
	if err := s.loadJobs(h); err != nil {
		return h.reason(err)
	}
	if err := s.witness.opened(int64(s.index.listing.len() + len(s.unreadable))); err != nil {
		return err
	}
	files.accept()
	return nil
}

// loadRows takes the rows of all tables in. One that cannot be understood is left
// where it is, unless the store would be unsafe without it.
func (s *Store) loadRows(h *handle) error {
	err := h.scan([]byte{keyRow}, []byte{keyRow + 1}, func(key, value []byte) error {
		if len(key) < 2 || key[1] >= byte(job.Tables) {
			s.opts.Logf("a row has the key %x, which cannot be; it is left where it is", key)
			return nil
		}
		t := job.Table(key[1])
		if t == job.Receipts {
			return nil // on disk only
		}
		row, err := decodeRow(t, string(key[2:]), value)
		switch {
		case err == nil:
		case t == job.Reserves || t == job.Credentials: // numbers would come twice; a server would be open
			return err
		case t == job.Queues:
			s.opts.Logf("the settings of queue %q cannot be read: it is paused, with those of a new queue: %v", key[2:], err)
			q := job.NewQueue(string(key[2:]))
			q.Paused = true
			row = q
		default:
			s.opts.Logf("row %q of table %d cannot be read and is left where it is: %v", key[2:], t, err)
			return nil
		}
		s.rows.put(row)
		s.applyRow(row)
		return nil
	})
	if err != nil {
		return err
	}
	return s.loadReceipts(h)
}

func (s *Store) loadJobs(h *handle) error {
	s.unreadable = nil
	gaps, err := h.scanAround([]byte{keyJob}, []byte{keyJob + 1}, func(key, value []byte) error {
		var id job.ID
		if len(key) != 1+len(id) {
			s.opts.Logf("a job has the key %x, which cannot be; it is left where it is", key)
			return nil
		}
		copy(id[:], key[1:])
		return s.loadJob(id, value)
	})
	if err != nil {
		return err
	}
	return s.lost(h, gaps)
}

// loadJob takes a row in. One that cannot be understood is set aside, with the payload
// that has its id.
func (s *Store) loadJob(id job.ID, value []byte) error {
	j, err := decodeJob(id, value, s.names)
	if err != nil {
		ref := id
		body, bad := s.db.Load().get(payloadKey(nil, id))
		if bad != nil || body == nil {
			ref = job.ID{}
		}
		s.setAside(id, ref, len(body), err)
		return nil //nolint:nilerr // it is told by whoever sets it aside
	}
	s.index.refs.move(nil, j, nil)
	s.index.move(nil, j)
	if j.State == job.Leased {
		s.hot.keep(j, nil)
	}
	return nil
}

// applyRow lets the index know of settings that move lines and gates.
func (s *Store) applyRow(row job.Row) {
	switch r := row.(type) {
	case *job.Queue:
		s.index.set(r)
	case *job.Gate:
		s.index.setGate(r.Queue, r.Group, r)
	case *job.Throttle:
		s.index.setThrottle(r.Queue, r.Group, r)
	}
}

// scan calls f for every key in [from, to).
func (h *handle) scan(from, to []byte, f func(key, value []byte) error) error {
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return readError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return readError(errors.Join(it.Error(), it.Close()))
}

func readError(err error) error {
	switch {
	case err == nil:
		return nil
	case pebble.IsCorruptionError(err):
		return corrupt("reading the store: %s", firstLine(err.Error()))
	}
	return &job.Error{Kind: job.Unavailable, Text: "reading the store", Cause: err}
}

// Reopen implements store.Store. It also heals a store whose commit failed:
// what was acknowledged is on disk, the outcome of what was not is decided
// here.
func (s *Store) Reopen(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.closeHandle(); err != nil {
		s.opts.Logf("closing the old store handle: %v", err)
	}
	err := s.claim.check()
	if err == nil {
		err = s.probe()
	}
	if err == nil {
		err = s.load()
	}
	if err != nil {
		if h := s.db.Load(); h != nil {
			_ = h.fail(err)
		}
	}
	return err
}

// closeHandle closes a healthy handle, and abandons a poisoned one behind its
// fence: it may hang in locks that a failed commit left behind.
func (s *Store) closeHandle() error {
	h := s.db.Load()
	if h == nil {
		return nil
	}
	if h.poison.Load() == nil {
		_ = h.fail(job.Errorf(job.Unavailable, "the store is closed"))
		h.busy.Lock()
		defer h.busy.Unlock()
		err := h.db.Close()
		if lost := h.log.failed.Load(); lost != nil { // nobody else was told
			err = errors.Join(err, *lost)
		}
		return err
	}
	h.fence.down.Store(true)
	go func() {
		defer func() { _ = recover() }() // a broken pipeline may panic; it is behind the fence
		_ = h.db.Close()
	}()
	return nil
}

// fail poisons the handle: the first reason stays.
func (h *handle) fail(why error) *job.Error {
	if h.poison.CompareAndSwap(nil, &job.Error{
		Kind: job.Unavailable, Cause: why,
		Text: "the store cannot commit; whether the latest requests took effect is unknown until it is open again",
	}) {
		close(h.failed)
	}
	return h.poison.Load()
}

// abandon poisons the handle, and then cuts it off from its files: whoever finds them
// cut off finds the reason as well.
func (h *handle) abandon(why error) {
	_ = h.fail(why)
	h.fence.down.Store(true)
}

// Close implements store.Store.
func (s *Store) Close() error {
	for _, t := range s.tickers {
		t.stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.db.Load()
	healthy := h.poison.Load() == nil
	err := s.closeHandle()
	if healthy && err == nil { // all of it is on disk
		jobs := int64(s.index.listing.len())
		if len((&access{s: s}).Unreadable()) > 0 {
			jobs = -1 // those are on disk as well, if nobody deleted them
		}
		s.witness.closed(jobs)
	}
	return errors.Join(err, s.witness.close(), s.claim.Close())
}

// Free implements store.Store.
func (s *Store) Free() (free, total int64, err error) {
	u, err := s.opts.FS.GetDiskUsage(s.opts.Dir)
	if err != nil {
		return 0, 0, err
	}
	return int64(u.AvailBytes), int64(u.TotalBytes), nil
}

// Payloads implements store.Store. Several are read in one pass over the disk, and
// one by one where something there is damaged.
func (s *Store) Payloads(refs ...job.ID) ([][]byte, error) {
	h := s.db.Load()
	if e := h.poison.Load(); e != nil {
		return nil, e
	}
	out := make([][]byte, len(refs))
	if len(refs) >= coldMany {
		err := h.seekEach(keyPayload, refs, func(i int, value []byte) error {
			if value != nil {
				out[i] = append([]byte{}, value...)
			}
			return nil
		})
		if !h.unreadable(err) {
			return out, err
		}
	}
	var bad error
	for i, ref := range refs {
		var err error
		if out[i], err = h.get(payloadKey(nil, ref)); h.unreadable(err) {
			bad = err
		} else if err != nil {
			return nil, err
		}
	}
	return out, bad
}

// seekEach looks up many ids of one kind in key order, so that neighbours
// share their block. f sees nil for an id that is not there.
func (h *handle) seekEach(kind byte, ids []job.ID, f func(i int, value []byte) error) error {
	order := make([]int, len(ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return ids[x].Compare(ids[y]) })
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		return readError(err)
	}
	key := []byte{kind}
	at := false // the iterator stands on a key
	for _, i := range order {
		key = append(key[:1], ids[i][:]...)
		if !at || string(it.Key()) != string(key) {
			at = it.SeekGE(key)
		}
		var value []byte
		if at && string(it.Key()) == string(key) {
			value = it.Value()
		} else if !at && pebble.IsCorruptionError(it.Error()) { // perhaps of what is older than it
			if value, err = h.get(key); err != nil {
				return errors.Join(err, it.Close())
			}
		}
		if err := f(i, value); err != nil {
			return errors.Join(err, it.Close())
		}
		if at && value != nil {
			at = it.Next() // the next id is often the next key
		}
	}
	if err = errors.Join(it.Error(), it.Close()); pebble.IsCorruptionError(err) {
		return nil // nothing that was asked for
	}
	return readError(err)
}

// get returns a copy of a value, nil if there is none.
func (h *handle) get(key []byte) ([]byte, error) {
	value, closer, err := h.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if pebble.IsCorruptionError(err) { // perhaps of what only makes it faster
		return h.seek(key)
	}
	if err != nil {
		return nil, readError(err)
	}
	return append([]byte{}, value...), closer.Close()
}

// seek is get without filters.
func (h *handle) seek(key []byte) (found []byte, err error) {
	err = h.scan(key, append(bytes.Clone(key), 0), func(_, value []byte) error {
		found = append([]byte{}, value...)
		return nil
	})
	return found, err
}
