package embedded

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// categoryFS remembers what files were made for.
type categoryFS struct {
	vfs.FS
	mu   sync.Mutex
	seen map[vfs.DiskWriteCategory]bool
}

func (f *categoryFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.mu.Lock()
	f.seen[c] = true
	f.mu.Unlock()
	return f.FS.Create(name, c)
}

// Pebble does not export how it calls its background work, so a new version of it
// may call it otherwise.
func TestFlushesAndCompactionsBreatheAndTheLogDoesNot(t *testing.T) {
	fs := &categoryFS{FS: vfs.NewMem(), seen: map[vfs.DiskWriteCategory]bool{}}
	s, err := Open(Options{Dir: "data", FS: fs, Now: func() job.Millis { return 1 }, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	for n := range byte(3) { // the tables of two transactions are merged
		_, err := s.Update(t.Context(), func(tx store.Tx) error {
			return tx.Set(&job.Reserve{Name: "seq", Next: int64(n)})
		})
		if err == nil {
			err = s.Compact(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for c := range fs.seen {
		t.Logf("%q breathes: %v", c, background(c))
	}
	for _, c := range []vfs.DiskWriteCategory{"pebble-memtable-flush", "pebble-compaction"} {
		if !fs.seen[c] || !background(c) {
			t.Errorf("%q: seen %v, breathes %v", c, fs.seen[c], background(c))
		}
	}
	for _, c := range []vfs.DiskWriteCategory{"pebble-wal", "pebble-manifest"} {
		if !fs.seen[c] || background(c) {
			t.Errorf("%q: seen %v, breathes %v", c, fs.seen[c], background(c))
		}
	}
}
