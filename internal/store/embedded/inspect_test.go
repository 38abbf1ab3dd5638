package embedded_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// filled is a directory with three jobs, closed.
func filled(t *testing.T) (vfs.FS, []job.ID) {
	t.Helper()
	fs := vfs.NewMem()
	s := openDir(t, fs, "root")
	list := []job.ID{put(t, s, 10), put(t, s, 20), put(t, s, 30)}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs, list
}

// edit changes the database behind the store's back.
func edit(t *testing.T, fs vfs.FS, change func(*pebble.Batch)) {
	t.Helper()
	db, err := pebble.Open("root/data", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatWALSyncChunks})
	if err != nil {
		t.Fatal(err)
	}
	b := db.NewBatch()
	change(b)
	if err := b.Commit(pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func inspect(t *testing.T, fs vfs.FS) embedded.Inspection {
	t.Helper()
	in, err := embedded.Inspect(fs, "root")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestAnInspectionReadsEverythingAndChangesNothing(t *testing.T) {
	fs, list := filled(t)
	before, err := fs.List("root/data")
	if err != nil {
		t.Fatal(err)
	}
	in := inspect(t, fs)
	if in.Jobs[job.Ready] != 3 || in.Payloads != 3 || in.PayloadBytes != 60 || in.Orphans != 0 || in.Damaged != 0 {
		t.Errorf("got %+v", in)
	}
	after, err := fs.List("root/data")
	slices.Sort(before)
	slices.Sort(after)
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("before %v, after %v, %v", before, after, err)
	}
	s := openDir(t, fs, "root")
	has(t, s, list...)
	if _, err := embedded.Inspect(fs, "root"); job.KindOf(err) != job.Exists {
		t.Errorf("beside a server: %v", err)
	}
}

func TestAnInspectionFindsWhatIsDamaged(t *testing.T) {
	for what, c := range map[string]struct {
		change  func(b *pebble.Batch, id job.ID)
		says    string
		orphans int64
	}{
		"a job that cannot be read":  {func(b *pebble.Batch, id job.ID) { _ = b.Set(key('j', id), []byte{250, 1}, nil) }, "job ", 0},
		"a payload that is missing":  {func(b *pebble.Batch, id job.ID) { _ = b.Delete(key('p', id), nil) }, "payload is missing", 0},
		"a job that is missing":      {func(b *pebble.Batch, id job.ID) { _ = b.Delete(key('j', id), nil) }, "", 1},
		"a key that is none":         {func(b *pebble.Batch, _ job.ID) { _ = b.Set([]byte("jx"), nil, nil) }, "job key", 0},
		"a failure of nonsense":      {func(b *pebble.Batch, id job.ID) { _ = b.Set(append(key('f', id), 0, 0, 0, 1), []byte{250}, nil) }, "failure", 0},
		"a row of an unknown table":  {func(b *pebble.Batch, _ job.ID) { _ = b.Set([]byte{'r', 200, 'a'}, nil, nil) }, "row key", 0},
		"a row that cannot be read":  {func(b *pebble.Batch, _ job.ID) { _ = b.Set([]byte{'r', 0, 'a'}, []byte{250}, nil) }, `row "a"`, 0},
		"a row without any contents": {func(b *pebble.Batch, _ job.ID) { _ = b.Set([]byte{'r', 0, 'a'}, nil, nil) }, `row "a"`, 0},
	} {
		t.Run(what, func(t *testing.T) {
			fs, list := filled(t)
			edit(t, fs, func(b *pebble.Batch) { c.change(b, list[1]) })
			in := inspect(t, fs)
			if c.says == "" && (in.Damaged != 0 || in.Orphans != c.orphans) {
				t.Errorf("got %+v", in)
			}
			if c.says != "" && (in.Damaged != 1 || !strings.Contains(in.Examples[0], c.says)) {
				t.Errorf("got %+v, want one that says %q", in, c.says)
			}
		})
	}
}

// A bad block of a table does not end the inspection.
func TestAnInspectionCountsWhatADamagedTableCosts(t *testing.T) {
	fs, o := flippable(t, "closed")
	for name, content := range contents(t, fs) {
		if kindOf(name) == "table" {
			b := []byte(content)
			b[len(b)/2] ^= 1
			overwrite(t, fs, name, b)
		}
	}
	in := inspect(t, fs)
	if in.Damaged == 0 || in.Jobs[job.Ready] == 0 || in.Jobs[job.Ready] > int64(len(o.open)) {
		t.Errorf("got %+v", in)
	}
}

func key(kind byte, id job.ID) []byte { return append([]byte{kind}, id[:]...) }

func TestAnInspectionKnowsResults(t *testing.T) {
	fs := vfs.NewMem()
	s := openDir(t, fs, "root")
	ref := job.ID{1: 7}
	settled(t, s, put(t, s, 10), &job.Result{Ref: ref, Size: 3}, ref)
	settled(t, s, put(t, s, 10), job.InlineResult([]byte("12345")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if in := inspect(t, fs); in.Payloads != 3 || in.PayloadBytes != 28 || in.Orphans != 0 || in.Damaged != 0 {
		t.Errorf("got %+v", in)
	}
	edit(t, fs, func(b *pebble.Batch) { _ = b.Delete(key('p', ref), nil) })
	if in := inspect(t, fs); in.Damaged != 1 || !strings.Contains(in.Examples[0], "result is missing") {
		t.Errorf("got %+v", in)
	}
}

// settled makes a job done with a result, kept under refs.
func settled(t *testing.T, s store.Store, id job.ID, made *job.Result, refs ...job.ID) {
	t.Helper()
	commit, err := s.Update(t.Context(), func(tx store.Tx) error {
		old, err := tx.Get(id)
		if err != nil {
			return err
		}
		done := old.Clone()
		done.State, done.Extras = job.Done, old.WithOutcome(made, old.History())
		err = tx.Write(old, done)
		for _, ref := range refs {
			err = errors.Join(err, tx.PutPayload(ref, []byte("123")))
		}
		return err
	})
	if err == nil {
		err = commit.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}
