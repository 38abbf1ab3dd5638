package embedded_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

const (
	tailRows    = 6
	tailKeyForm = "queue-%d"
)

// loggedRows returns a file system after a power cut: a store wrote rows, each
// synced before the next, none of them flushed to a table. It also says how
// long the log was before each row. The last row promises that all before it
// were synced.
func loggedRows(t *testing.T) (fs *vfs.MemFS, before []int) {
	t.Helper()
	live := vfs.NewCrashableMem()
	s := openOn(t, live)
	for i := range tailRows {
		clone := live.CrashClone(vfs.CrashCloneCfg{})
		before = append(before, len(contentOf(t, clone)))
		c, err := s.Update(t.Context(), func(tx store.Tx) error {
			tx.Durable()
			return tx.Set(&job.Queue{Name: fmt.Sprintf(tailKeyForm, i)})
		})
		if err == nil {
			err = c.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return live.CrashClone(vfs.CrashCloneCfg{}), before
}

func openOn(t *testing.T, fs vfs.FS) *embedded.Store {
	t.Helper()
	s, err := tryOpen(fs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func tryOpen(fs vfs.FS) (*embedded.Store, error) {
	return embedded.Open(embedded.Options{Dir: "data", FS: fs, Now: func() job.Millis { return 1_700_000_000_000 }, Cache: 1 << 20})
}

func newestLog(t *testing.T, fs vfs.FS) string {
	t.Helper()
	names, err := fs.List("data/data")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") })
	return "data/data/" + slices.Max(names) // the numbers have a fixed width
}

// contentOf is the newest log without the zeros set aside behind it.
func contentOf(t *testing.T, fs vfs.FS) []byte {
	t.Helper()
	f, err := fs.Open(newestLog(t, fs))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	return []byte(strings.TrimRight(string(b), "\x00"))
}

// TestEveryDamagedByteOfTheLastBlock turns each byte of a short log over, one
// at a time. A later chunk promises that what stood before it was synced, so
// all but the last row are behind a promise: damage there is refused (I5). The
// last row is what a torn end looks like, and the store opens without it.
func TestEveryDamagedByteOfTheLastBlock(t *testing.T) {
	fs, before := loggedRows(t)
	whole := contentOf(t, fs)
	last := before[tailRows-1]
	if last == 0 || len(whole) <= last {
		t.Fatalf("the log has %d bytes, %d of them before the last row", len(whole), last)
	}
	for at := range whole {
		hurt := fs.CrashClone(vfs.CrashCloneCfg{})
		f, err := hurt.OpenReadWrite(newestLog(t, hurt), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.WriteAt([]byte{whole[at] ^ 0xff}, int64(at)); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		s, err := tryOpen(hurt)
		switch {
		case at < last && job.KindOf(err) != job.Corrupt:
			t.Errorf("byte %d of %d: opening said %v, want it refused as corrupt", at, last, err)
		case at >= last && err != nil:
			t.Errorf("byte %d, in the last row: opening said %v", at, err)
		}
		if err == nil {
			_ = s.View(t.Context(), func(r store.Reader) error {
				for i := range tailRows - 1 {
					if row, err := r.Row(job.Queues, fmt.Sprintf(tailKeyForm, i)); row == nil || err != nil {
						t.Errorf("byte %d: row %d is gone (%v)", at, i, err)
					}
				}
				return nil
			})
			_ = s.Close()
		}
	}
}
