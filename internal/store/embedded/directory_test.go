package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

const noon job.Millis = 1_700_000_000_000

func noonNow() job.Millis { return noon }

// openDir opens the store in a directory of a file system.
func openDir(t *testing.T, fs vfs.FS, dir string) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(embedded.Options{Dir: dir, FS: fs, Now: noonNow, Cache: 1 << 20, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// refuses opens a directory that must be refused, by an error of a kind.
func refuses(t *testing.T, fs vfs.FS, dir string, kind job.Kind, says string) {
	t.Helper()
	s, err := embedded.Open(embedded.Options{Dir: dir, FS: fs, Now: noonNow, Cache: 1 << 20, Logf: t.Logf})
	if err == nil {
		_ = s.Close()
	}
	if err == nil || job.KindOf(err) != kind || !strings.Contains(err.Error(), says) {
		t.Fatalf("opening %s: %v; want an error of kind %d that says %q", dir, err, kind, says)
	}
}

var ids = job.NewIDs(job.ID{}, func() uint64 { return 1 })

// begin applies a durable transaction with one new job and does not wait.
func begin(s store.Store, size int) (job.ID, store.Commit, error) {
	id := ids.Next(noon)
	commit, err := s.Update(context.Background(), func(tx store.Tx) error {
		tx.Durable()
		return errors.Join(tx.PutPayload(id, make([]byte, size)), tx.Write(nil, &job.Job{
			ID: id, Payload: id, PayloadSize: uint32(size), Queue: "q", Type: "t", State: job.Ready, ReadyAt: noon,
			RetainDone: job.Unset, RetainDead: job.Unset, Copies: 1, CopiesWanted: 1,
		}))
	})
	return id, commit, err
}

// put is begin that waits until the job is durable.
func put(t *testing.T, s store.Store, size int) job.ID {
	t.Helper()
	id, commit, err := begin(s, size)
	if err == nil {
		err = commit.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// has wants exactly these jobs to be ready.
func has(t *testing.T, s store.Store, want ...job.ID) {
	t.Helper()
	err := s.View(t.Context(), func(r store.Reader) error {
		list, err := r.Ready(nil, rule.Seeker{Holder: "h"}, len(want)+1)
		if got := idsOf(list); !slices.Equal(got, want) {
			t.Errorf("the store has %v, want %v", got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func idsOf(list []*job.Job) (out []job.ID) {
	for _, j := range list {
		out = append(out, j.ID)
	}
	return out
}

func TestADirectoryThatIsInUseIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	s := openDir(t, fs, "data")
	id := put(t, s, 10)
	refuses(t, fs, "data", job.Exists, "in use by another process")
	has(t, s, id)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	has(t, openDir(t, fs, "data"), id)
}

func TestADirectoryThatIsNotOursOrOfANewerVersionIsRefused(t *testing.T) { // ADR 0001
	for _, c := range []struct {
		format string
		kind   job.Kind
		says   string
	}{
		{fmt.Sprint(embedded.Format + 1), job.Invalid, "start a newer version"},
		{"0", job.Corrupt, "holds no format number"},
		{"", job.Corrupt, "holds no format number"},
		{"one\n", job.Corrupt, "holds no format number"},
	} {
		fs := vfs.NewMem()
		writeFile(t, fs, "FORMAT", []byte(c.format))
		refuses(t, fs, "", c.kind, c.says)
	}
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, "data/CURRENT", nil)
	refuses(t, fs, "", job.Corrupt, "has data but no FORMAT file")
}

// What this version writes an earlier one would take for damaged.
func TestADirectoryOfAnEarlierFormatIsRaised(t *testing.T) {
	fs := vfs.NewMem()
	s := openDir(t, fs, "root")
	id := put(t, s, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, "root/FORMAT", []byte("1\n"))
	s = openDir(t, fs, "root")
	has(t, s, id)
	if n, err := embedded.ReadFormat(fs, "root/FORMAT"); n != embedded.Format || err != nil {
		t.Errorf("FORMAT is %d, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whatever file of a directory is damaged, the refusal says what to do.
func TestARefusalSaysWhatToDo(t *testing.T) {
	const toDo = "stop, copy the directory aside (delete nothing yet), and restore a backup; without one, `reprise restore DIRECTORY"
	for _, c := range []struct{ file, becomes, says string }{ // becomes: another name, or another content
		{"FORMAT", "=x", "holds no format number"},
		{"data/OPTIONS-*", "=garbage", "invalid key=value syntax"},
		{"data/marker.manifest.*", "data/marker.manifest.xx.MANIFEST-000099", "invalid marker filename"},
		{"data/marker.format-version.*", "data/marker.format-version.x.020", "invalid marker filename"},
		{"data/marker.format-version.*", "data/marker.format-version.000007.099", "unknown format major version 99"},
		{"data/marker.format-version.*", "lost", "lacks the file marker.format-version"},
	} {
		fs, _ := filled(t)
		at, name := path.Split("root/" + c.file)
		names, err := fs.List(at)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(names, func(n string) bool { ok, _ := path.Match(name, n); return ok })
		if content, ok := strings.CutPrefix(c.becomes, "="); ok {
			writeFile(t, fs, at+names[i], []byte(content))
		} else if err := fs.Rename(at+names[i], "root/"+c.becomes); err != nil {
			t.Fatal(err)
		}
		refuses(t, fs, "root", job.Corrupt, c.says)
		refuses(t, fs, "root", job.Corrupt, toDo)
		if _, err := embedded.Inspect(fs, "root"); c.file != "FORMAT" && (err == nil || !strings.Contains(err.Error(), toDo)) {
			t.Errorf("%s: the inspection says %v", c.file, err)
		}
	}
}

// TestANewDirectorySurvivesAPowerCutAtOnce: the first job that is durable is
// found again, though the power goes right after it; so every directory on
// the way to it must be on the disk as well (I5).
func TestANewDirectorySurvivesAPowerCutAtOnce(t *testing.T) {
	for _, dir := range []string{"data", "var/lib/queue"} {
		fs := vfs.NewCrashableMem()
		id := put(t, openDir(t, fs, dir), 10)
		dark := fs.CrashClone(vfs.CrashCloneCfg{})
		for _, file := range []string{"FORMAT", "data"} {
			if _, err := dark.Stat(dark.PathJoin(dir, file)); err != nil {
				t.Errorf("after the power cut: %v", err)
			}
		}
		has(t, openDir(t, dark, dir), id)
	}
}

// TestACommitIsDurableWhenItsWaitEnds lets the power go right after each of
// some commits (I5).
func TestACommitIsDurableWhenItsWaitEnds(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := openDir(t, fs, "data")
	var all []job.ID
	for range 10 {
		all = append(all, put(t, s, 10))
		has(t, openDir(t, fs.CrashClone(vfs.CrashCloneCfg{}), "data"), all...)
	}
}

// refusal is a disk that refuses some operations while it is on.
type refusal struct {
	on    atomic.Bool
	kinds []errorfs.OpKind
}

func (r *refusal) String() string { return "refusal" }

func (r *refusal) MaybeError(op errorfs.Op) error {
	if r.on.Load() && slices.Contains(r.kinds, op.Kind) {
		return syscall.EIO
	}
	return nil
}

// TestACommitThatTheDiskRefusedIsAnError, at once or when it is waited for, and
// so is all that comes after it, until the store is opened again (I5).
func TestACommitThatTheDiskRefusedIsAnError(t *testing.T) {
	for _, kinds := range [][]errorfs.OpKind{
		{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}, {errorfs.OpFileWrite},
	} {
		disk := &refusal{kinds: kinds}
		mem := vfs.NewCrashableMem()
		s := openDir(t, errorfs.Wrap(mem, disk), "data")
		kept := put(t, s, 10)
		disk.on.Store(true)
		_, commit, err := begin(s, 10)
		if err == nil {
			err = commit.Wait()
		}
		if job.KindOf(err) != job.Unavailable {
			t.Errorf("a commit that the disk refused ended with %v", err)
		}
		disk.on.Store(false)
		if _, _, err := begin(s, 10); job.KindOf(err) != job.Unavailable {
			t.Errorf("the store takes more before it was opened again: %v", err)
		}
		if err := s.Reopen(t.Context()); err != nil {
			t.Fatal(err)
		}
		err = s.View(t.Context(), func(r store.Reader) error {
			if j, err := r.Get(kept); err != nil || j == nil {
				t.Errorf("what was acknowledged is gone: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestDamageInTheMiddleOfTheLogIsNotItsTornEnd: behind the damage stands what
// was acknowledged, so to open without it would lose it in silence (I5).
func TestDamageInTheMiddleOfTheLogIsNotItsTornEnd(t *testing.T) {
	const (
		jobs = 40
		size = 4 << 10 // some blocks of the log together
	)
	for name, lives := range map[string]int{"the first log": 1, "a later log": 2} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			for range lives - 1 {
				s := openDir(t, fs, "data")
				put(t, s, 1)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s := openDir(t, fs, "data")
			for range jobs {
				put(t, s, size)
			}
			for _, c := range []struct {
				what    string
				change  func(log []byte) []byte
				corrupt bool
			}{
				{"nothing", func(log []byte) []byte { return log }, false},
				{"a torn end", func(log []byte) []byte { return log[:len(log)-size/2] }, false},
				{"a damaged middle", func(log []byte) []byte { log[len(log)/2] ^= 0xff; return log }, true},
			} {
				dark := fs.CrashClone(vfs.CrashCloneCfg{})
				path := latestLog(t, dark)
				writeFile(t, dark, path, c.change(readFile(t, dark, path)))
				after, err := embedded.Open(embedded.Options{Dir: "data", FS: dark, Now: noonNow, Cache: 1 << 20, Logf: t.Logf})
				if (err != nil) != c.corrupt || c.corrupt && job.KindOf(err) != job.Corrupt {
					t.Errorf("opened after %s: %v", c.what, err)
				}
				if err == nil {
					_ = after.Close()
				}
			}
		})
	}
}

func latestLog(t *testing.T, fs vfs.FS) string {
	t.Helper()
	names, err := fs.List("data/data")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".log") })
	slices.Sort(names)
	if len(names) == 0 {
		t.Fatal("there is no log")
	}
	return "data/data/" + names[len(names)-1]
}

func readFile(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, fs vfs.FS, path string, text []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestTimeStandsStillWhileTheClockGoesBack(t *testing.T) { // core.md section 8
	wall := noon
	s, err := embedded.Open(embedded.Options{Dir: "data", FS: vfs.NewMem(), Now: func() job.Millis { return wall }, Cache: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, c := range []struct{ wall, want job.Millis }{
		{noon, noon}, {noon + 5, noon + 5}, {noon - job.Hour, noon + 5}, {noon + 4, noon + 5}, {noon + 6, noon + 6},
	} {
		wall = c.wall
		_, err := s.Update(t.Context(), func(tx store.Tx) error {
			if got := tx.Now(); got != c.want {
				t.Errorf("at %d a transaction has the time %d, want %d", c.wall, got, c.want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.View(t.Context(), func(r store.Reader) error {
			if got := r.Now(); got != c.want {
				t.Errorf("at %d a reader has the time %d, want %d", c.wall, got, c.want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
