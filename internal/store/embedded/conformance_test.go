package embedded_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
	"github.com/reprisehq/reprise/internal/store/storetest"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

// open returns an empty store on a file system in memory.
func open(t *testing.T) store.Store {
	t.Helper()
	var now job.Millis = 1_700_000_000_000
	s, err := embedded.Open(embedded.Options{
		Dir: "data", FS: vfs.NewMem(), Now: func() job.Millis { return now }, Cache: 1 << 20, Logf: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestExercise(t *testing.T) { storetest.Exercise(t, open) }

func TestCompareWithMem(t *testing.T) {
	for _, seed := range storetest.Seeds(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			storetest.Compare(t, seed, mem.Open(mem.Options{}), open(t))
		})
	}
}

// giving gives names back before each transaction.
type giving struct{ *embedded.Store }

func (g giving) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	g.GiveBack()
	return g.Store.Update(ctx, fn)
}

// What is given back, however often, is what nothing has.
func TestCompareWithMemWhileNamesAreGivenBack(t *testing.T) {
	opened := func(t *testing.T) store.Store { return giving{open(t).(*embedded.Store)} }
	for _, seed := range storetest.Seeds(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			storetest.Compare(t, seed, mem.Open(mem.Options{}), opened(t))
		})
	}
	t.Run("exercise", func(t *testing.T) { storetest.Exercise(t, opened) })
}
