package embedded_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

var syncModes = []embedded.Sync{embedded.Always, embedded.Interval, embedded.OS}

// openMode opens a store whose timer does not tick.
func openMode(t *testing.T, fs vfs.FS, mode embedded.Sync) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(embedded.Options{
		Dir: "data", FS: fs, Now: noonNow, Cache: 1 << 20, Logf: t.Logf, Sync: mode, Interval: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// note sets a row whose value takes so many bytes, and waits.
func note(t *testing.T, s store.Store, name string, size int, durable bool) {
	t.Helper()
	c, err := s.Update(t.Context(), func(tx store.Tx) error {
		if durable {
			tx.Durable()
		}
		return tx.Set(&job.Reserve{Name: name + strings.Repeat("x", size), Next: 1})
	})
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// noted counts the rows that note set.
func noted(t *testing.T, s store.Store) (n int) {
	t.Helper()
	err := s.View(t.Context(), func(r store.Reader) error {
		rows, err := r.Rows(job.Reserves, "", 1<<20)
		n = len(rows)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// killed is the disk as the end of the process alone leaves it: all that the
// operating system was given is there.
func killed(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// TestWhatWasAnsweredHasLeftTheProcess: in every sync mode a commit, durable or not, is
// there after the process was killed, though nothing came after it (I5).
func TestWhatWasAnsweredHasLeftTheProcess(t *testing.T) {
	for _, mode := range syncModes {
		for _, durable := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, durable %t", mode, durable), func(t *testing.T) {
				fs := vfs.NewCrashableMem()
				s := openMode(t, fs, mode)
				for i := range 5 {
					note(t, s, fmt.Sprint(i), 10, durable)
					if n := noted(t, openMode(t, killed(fs), mode)); n != i+1 {
						t.Fatalf("%d commits of %d are there after a kill", n, i+1)
					}
				}
			})
		}
	}
}

// TestWhatAPowerCutTakes: in sync always nothing that is durable, in interval what came
// after the last interval; what did not ask to be durable is so soon.
func TestWhatAPowerCutTakes(t *testing.T) {
	for _, c := range []struct {
		mode       embedded.Sync
		durable    bool
		before, on int // of one commit, before the timer ticks and afterwards
	}{
		{embedded.Always, true, 1, 1},
		{embedded.Always, false, 0, 1},
		{embedded.Interval, true, 0, 1},
		{embedded.Interval, false, 0, 1},
		{embedded.OS, true, 0, 0},
	} {
		t.Run(fmt.Sprintf("%s, durable %t", c.mode, c.durable), func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			s := openMode(t, fs, c.mode)
			after := func() int { return noted(t, openMode(t, fs.CrashClone(vfs.CrashCloneCfg{}), c.mode)) }
			note(t, s, "a", 10, c.durable)
			if n := after(); n != c.before {
				t.Errorf("%d commits are there, want %d", n, c.before)
			}
			if c.mode != embedded.OS {
				s.SyncNow()
			}
			if n := after(); n != c.on {
				t.Errorf("after the timer %d commits are there, want %d", n, c.on)
			}
		})
	}
}

// TestAPowerCutNeverLooksLikeDamage: what was not synced may be on the disk in any order
// of its blocks, and Pebble takes a hole before what it believes to be synced for damage.
func TestAPowerCutNeverLooksLikeDamage(t *testing.T) {
	const synced, rest = 20, 100
	for _, mode := range syncModes {
		fs := vfs.NewCrashableMem()
		s := openMode(t, fs, mode)
		for i := range synced + rest {
			note(t, s, fmt.Sprintf("%03d", i), 900, false)
			if i == synced-1 && mode != embedded.OS {
				s.SyncNow()
			}
		}
		for seed := range uint64(40) {
			rng := rand.New(rand.NewPCG(seed, 2))
			after := openMode(t, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 + rng.IntN(50), RNG: rng}), mode)
			if n := noted(t, after); mode != embedded.OS && n < synced {
				t.Errorf("sync %s, seed %d: %d rows are there, %d were synced", mode, seed, n, synced)
			}
			_ = after.Close()
		}
	}
}

// TestALogSaysUpToWhereItIsOnDisk: so that any damage before that is told from a torn end,
// also behind the first block.
func TestALogSaysUpToWhereItIsOnDisk(t *testing.T) {
	const rows = 100
	fs := vfs.NewCrashableMem()
	s := openMode(t, fs, embedded.Always)
	for i := range rows - 1 {
		note(t, s, fmt.Sprintf("%03d", i), 900, true)
	}
	promised := len(contentOf(t, fs.CrashClone(vfs.CrashCloneCfg{})))
	note(t, s, "last", 900, true)
	for at := 100; at < promised; at += 997 {
		hurt := fs.CrashClone(vfs.CrashCloneCfg{})
		path := newestLog(t, hurt)
		text := readFile(t, hurt, path)
		text[at] ^= 1
		writeFile(t, hurt, path, text)
		if _, err := tryOpen(hurt); job.KindOf(err) != job.Corrupt {
			t.Errorf("a flipped bit in byte %d of %d: %v; want it refused as corrupt", at, promised, err)
		}
	}
}

// logTrouble fails one kind of operation on log files while it is on.
type logTrouble struct {
	on   atomic.Bool
	kind errorfs.OpKind
	err  error
}

func (*logTrouble) String() string { return "trouble with log files" }

func (d *logTrouble) MaybeError(op errorfs.Op) error {
	if d.on.Load() && op.Kind == d.kind && (op.Path == "" || strings.HasSuffix(op.Path, ".log")) {
		return d.err
	}
	return nil
}

// troubledFS lets trouble come to logs that are written over old ones as well.
type troubledFS struct {
	*errorfs.FS
	d *logTrouble
}

func (f troubledFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, c)
	if err != nil {
		return nil, err
	}
	return errorfs.WrapFile(file, f.d), nil
}

// TestALogThatCannotBeChangedIsAFailedCommit: not the end of the process, whatever the
// disk refuses while Pebble begins the next log file.
func TestALogThatCannotBeChangedIsAFailedCommit(t *testing.T) {
	const (
		size  = 3 << 20
		turns = 10 // within so many commits a new log begins
	)
	for name, c := range map[string]struct {
		kind errorfs.OpKind
		err  error
		old  int // commits before; with some, the next log is written over an old one
	}{
		"no inode for the next log":       {errorfs.OpCreate, syscall.ENOSPC, 1},
		"an old log cannot be renamed":    {errorfs.OpReuseForWrite, syscall.EIO, 3 * turns},
		"nor looked at":                   {errorfs.OpFileStat, syscall.EIO, 3 * turns},
		"the last log cannot be synced":   {errorfs.OpFileSyncData, syscall.EIO, 1},
		"the last log cannot be written":  {errorfs.OpFileWrite, syscall.EDQUOT, 1},
		"nor one that is written over it": {errorfs.OpFileWrite, syscall.EDQUOT, 3 * turns},
	} {
		t.Run(name, func(t *testing.T) {
			d := &logTrouble{kind: c.kind, err: c.err}
			s := openMode(t, troubledFS{errorfs.Wrap(vfs.NewMem(), d), d}, embedded.OS)
			var all []job.ID
			try := func() error {
				id, commit, err := begin(s, size)
				if err == nil {
					err = commit.Wait()
				}
				if err == nil {
					all = append(all, id)
				}
				return err
			}
			for range c.old {
				if err := try(); err != nil {
					t.Fatal(err)
				}
			}
			d.on.Store(true)
			var err error
			for n := 0; n < turns && err == nil; n++ {
				err = try()
			}
			if job.KindOf(err) != job.Unavailable || !errors.Is(err, c.err) {
				t.Errorf("the commit ended with %v", err)
			}
			d.on.Store(false)
			if err := s.Reopen(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := try(); err != nil {
				t.Error(err)
			}
			err = s.View(t.Context(), func(r store.Reader) error {
				for _, id := range all {
					if j, err := r.Get(id); j == nil || err != nil {
						return fmt.Errorf("an acknowledged job is gone: %w", err)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
