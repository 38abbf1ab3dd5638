package embedded

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// directoryWith is a data directory that holds one foreign key and value
// beside the sample jobs and rows.
func directoryWith(t *testing.T, key, value []byte) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	s, err := Open(Options{Dir: "d", FS: fs, Now: func() job.Millis { return 1 << 40 }, Cache: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	db := s.db.Load().db
	set := func(key, value []byte) {
		if err := db.Set(key, value, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	for i, j := range sampleJobs() {
		id := job.ID{0: byte(i), 15: 1}
		set(jobKey(nil, id), appendJob(nil, j))
	}
	for _, row := range sampleRows() {
		text, err := appendRow(nil, row)
		if err != nil {
			t.Fatal(err)
		}
		set(rowKey(nil, row.Table(), row.Key()), text)
	}
	set(key, value)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// content is everything a store tells about its jobs: lists, counts, timers.
func content(t *testing.T, s *Store) (text string) {
	t.Helper()
	err := s.View(context.Background(), func(v store.Reader) error {
		names, err := v.Names()
		text = fmt.Sprint(names)
		if err != nil {
			return err
		}
		holders, err := store.Holders(v)
		slices.Sort(holders)
		for _, h := range holders {
			ids, _ := v.IDs(store.Held(h), store.All)
			text += fmt.Sprintf(" %q holds %v;", h, ids)
		}
		for _, q := range names {
			text += fmt.Sprintf(" %q %+v;", q, v.Depth(q))
		}
		return err
	})
	if err != nil {
		t.Fatalf("reading: %v", err)
	}
	return text
}

// FuzzLoad opens a directory that holds any one key and value. It loads, and
// then says the same after loading again, or it is refused as damaged; it
// never takes the process down.
func FuzzLoad(f *testing.F) {
	for _, j := range sampleJobs() {
		f.Add(jobKey(nil, j.ID), appendJob(nil, j))
	}
	for _, row := range sampleRows() {
		text, _ := appendRow(nil, row)
		f.Add(rowKey(nil, row.Table(), row.Key()), text)
	}
	f.Add(receiptAtKey(nil, 5, make([]byte, 16)), []byte{})
	f.Add(payloadKey(nil, job.ID{1}), []byte(`{"n":1}`))
	f.Add(failureKey(nil, job.ID{1}, 1), appendFailure(nil, &job.Failure{Message: "m"}))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		fs := directoryWith(t, key, value)
		s, err := Open(Options{Dir: "d", FS: fs, Now: func() job.Millis { return 1 << 40 }, Cache: 1 << 20})
		if err != nil {
			damaged(t, fmt.Sprintf("key %q", key), err)
			return
		}
		defer func() { _ = s.Close() }()
		first := content(t, s)
		if err := s.Reopen(t.Context()); err != nil {
			t.Fatalf("loaded once, but: %v", err)
		}
		if second := content(t, s); second != first {
			t.Fatalf("loaded as\n%s\nand again as\n%s", first, second)
		}
	})
}
