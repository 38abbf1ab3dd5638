package embedded_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// copied writes the files of a snapshot into a directory of their own.
func copied(t *testing.T, x *embedded.Snapshot, fs vfs.FS, dir string) {
	t.Helper()
	if err := fs.MkdirAll(fs.PathJoin(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range x.Files {
		from, err := x.Open(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		to, err := fs.Create(fs.PathJoin(dir, f.Name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(to, from); err != nil || n != f.Size {
			t.Fatalf("%s: %d bytes, %v", f.Name, n, err)
		}
		_, _ = from.Close(), to.Close()
	}
}

// there returns the jobs of a store, and fails if one has no whole payload.
func there(t *testing.T, s store.Store, size int) map[job.ID]bool {
	t.Helper()
	out := map[job.ID]bool{}
	var list []*job.Job
	err := s.View(t.Context(), func(r store.Reader) (err error) {
		list, err = r.List(store.Filter{}, 1<<30)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range list {
		body, err := store.Payload(s, j.Payload)
		if err != nil || len(body) != size {
			t.Errorf("job %s has %d bytes of payload, %v", j.ID, len(body), err)
		}
		out[j.ID] = true
	}
	return out
}

// A snapshot that is made while four writers commit holds everything that was
// durable before it was asked for, and nothing half (I5).
func TestASnapshotUnderLoadIsWhole(t *testing.T) {
	const size, each, writers = 4 << 10, 400, 4
	fs := vfs.NewMem()
	s := openDir(t, fs, "root")
	var (
		mu    sync.Mutex
		acked []job.ID
		wg    sync.WaitGroup
	)
	for w := range writers {
		ids := job.NewIDs(job.ID{}, func() uint64 { return uint64(w + 100) })
		wg.Go(func() {
			for range each {
				id := ids.Next(noon + job.Millis(w))
				commit, err := putAs(s, id, size)
				if err == nil {
					err = commit.Wait()
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked = append(acked, id)
				mu.Unlock()
			}
		})
	}
	sofar := func() []job.ID {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(acked)
	}
	during := 0
	for before := sofar(); len(before) < each*writers; before = sofar() {
		x, err := s.Snapshot(0)
		if err != nil {
			t.Fatal(err)
		}
		other := vfs.NewMem()
		copied(t, x, other, "copy")
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		c := openDir(t, other, "copy")
		got := there(t, c, size)
		for _, id := range before {
			if !got[id] {
				t.Errorf("job %s was durable before and is not in the snapshot of %d of %d", id, len(got), len(before))
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if during++; t.Failed() {
			break
		}
	}
	wg.Wait()
	t.Logf("%d snapshots", during)
	if names, err := fs.List("root"); err != nil || slices.Contains(names, "backup.tmp") {
		t.Errorf("left behind: %v, %v", names, err)
	}
	if got := there(t, s, size); len(got) != each*writers {
		t.Errorf("the store has %d jobs, %d were put", len(got), each*writers)
	}
}

func putAs(s store.Store, id job.ID, size int) (store.Commit, error) {
	return s.Update(context.Background(), func(tx store.Tx) error {
		tx.Durable()
		if err := tx.PutPayload(id, make([]byte, size)); err != nil {
			return err
		}
		return tx.Write(nil, &job.Job{
			ID: id, Payload: id, PayloadSize: uint32(size), Queue: "q", Type: "t", State: job.Ready, ReadyAt: noon,
			RetainDone: job.Unset, RetainDead: job.Unset, Copies: 1, CopiesWanted: 1,
		})
	})
}

func TestOnlyOneSnapshotExists(t *testing.T) {
	s := openDir(t, vfs.NewMem(), "root")
	id := put(t, s, 10)
	x, err := s.Snapshot(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Snapshot(0); job.KindOf(err) != job.OverLimit || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second one: %v", err)
	}
	later := put(t, s, 10)
	other := vfs.NewMem()
	copied(t, x, other, "copy")
	has(t, openDir(t, other, "copy"), id) // not what came after it
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	y, err := s.Snapshot(0)
	if err != nil {
		t.Fatal("after the first:", err)
	}
	if y.Format != embedded.Format || y.Files[0].Name != "FORMAT" || y.Bytes() == 0 {
		t.Errorf("got %+v", y)
	}
	if err := y.Close(); err != nil {
		t.Fatal(err)
	}
	has(t, s, id, later)
}

func TestASnapshotOfACrashIsRemovedAtTheNextStart(t *testing.T) {
	fs := vfs.NewMem()
	s := openDir(t, fs, "root")
	id := put(t, s, 10)
	if _, err := s.Snapshot(0); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openDir(t, fs, "root")
	has(t, s, id)
	if _, err := fs.Stat("root/backup.tmp"); err == nil {
		t.Error("it is still there")
	}
}

// asideFails lets writes below backup.tmp fail with an error while it is on.
type asideFails struct {
	err   error
	after atomic.Int64 // so many succeed
	on    atomic.Bool
	seen  atomic.Int64
}

func (a *asideFails) String() string { return "aside fails" }

func (a *asideFails) MaybeError(op errorfs.Op) error {
	if a.on.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, "backup.tmp") &&
		op.Kind != errorfs.OpRemove && op.Kind != errorfs.OpRemoveAll && a.seen.Add(1) > a.after.Load() {
		return a.err
	}
	return nil
}

// Whatever fails while a snapshot is put together, the disk being full among
// it, it is refused, nothing stays, and the store works on.
func TestAFailedSnapshotHurtsNobody(t *testing.T) {
	for _, why := range []error{syscall.ENOSPC, syscall.EIO} {
		disk := &asideFails{err: why}
		mem := vfs.NewMem()
		s := openDir(t, errorfs.Wrap(mem, disk), "root")
		want := []job.ID{put(t, s, 10)}
		for n := int64(0); ; n++ {
			disk.after.Store(n)
			disk.seen.Store(0)
			disk.on.Store(true)
			x, err := s.Snapshot(0)
			disk.on.Store(false)
			if err == nil { // nothing failed any more
				if seen := disk.seen.Load(); seen > n {
					t.Errorf("write %d of %d failed, and the snapshot passed for one", n, seen)
				}
				if n < 8 {
					t.Errorf("only %d writes were needed", n)
				}
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
				break
			}
			if job.KindOf(err) != job.Unavailable {
				t.Errorf("write %d: %v", n, err)
			}
			want = append(want, put(t, s, 10))
			if _, err := mem.Stat("root/backup.tmp"); err == nil {
				t.Fatalf("write %d: something is left", n)
			}
		}
		has(t, s, want...)
	}
}

// smallDisk has so much space left.
type smallDisk struct {
	vfs.FS
	free uint64
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free, TotalBytes: 1 << 40, UsedBytes: 1<<40 - d.free}, nil
}

func (d *smallDisk) Unwrap() vfs.FS { return d.FS }

func TestASnapshotLeavesTheReserveAlone(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem(), free: 1 << 30}
	s := openDir(t, disk, "root")
	id := put(t, s, 10)
	if _, err := s.Snapshot(1<<30 - 1<<20); job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "make room") {
		t.Errorf("on a disk that is too small: %v", err)
	}
	if _, err := disk.Stat("root/backup.tmp"); err == nil {
		t.Error("something is left")
	}
	x, err := s.Snapshot(512 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	has(t, s, id)
}

func TestCompactingKeepsEverythingAndEndsWithTheStore(t *testing.T) {
	fs := vfs.NewMem()
	s := openDir(t, fs, "root")
	var want []job.ID
	for range 50 {
		want = append(want, put(t, s, 10_000))
	}
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, s, want...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	put(t, s, 10)
	if err := s.Compact(ctx); job.KindOf(err) != job.Unavailable {
		t.Errorf("a caller that left: %v", err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := s.Compact(t.Context()); err != nil && job.KindOf(err) != job.OverLimit && job.KindOf(err) != job.Unavailable {
				t.Errorf("beside the others: %v", err)
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := s.Compact(t.Context()); job.KindOf(err) != job.Unavailable {
		t.Errorf("of a closed store: %v", err)
	}
	if _, err := s.Snapshot(0); job.KindOf(err) != job.Unavailable {
		t.Errorf("of a closed store: %v", err)
	}
}
