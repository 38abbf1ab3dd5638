package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
)

// fullDisk refuses every write while it is on.
type fullDisk struct{ on atomic.Bool }

func (d *fullDisk) String() string { return "full disk" }

func (d *fullDisk) MaybeError(op errorfs.Op) error {
	if d.on.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
		return syscall.ENOSPC
	}
	return nil
}

func newJob(queue string) engine.NewJob {
	return engine.NewJob{
		Job:     job.Job{Queue: queue, Type: "t", Priority: 9, RetainDone: job.Unset, RetainDead: job.Unset},
		Payload: []byte(`{"n":1}`),
	}
}

// TestFailingDisk: a commit that fails answers an error of kind Unavailable,
// loses nothing that was acknowledged, ends the streams, and service resumes
// by itself when the disk takes writes again (operations.md, I5).
func TestFailingDisk(t *testing.T) {
	disk := &fullDisk{}
	mem := vfs.NewCrashableMem()
	e, st := openEngine(t, errorfs.Wrap(mem, disk), 1)
	rng := rand.New(rand.NewPCG(1, 1))
	acknowledged := map[job.ID]bool{}
	for round := range 12 {
		for range 1 + rng.IntN(20) {
			added, err := e.Put(t.Context(), []engine.NewJob{newJob(fmt.Sprint("q", round))})
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			acknowledged[added[0].ID] = true
		}
		s, err := e.Stream(t.Context(), engine.StreamOptions{Prefetch: 3})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		disk.on.Store(true)
		if _, err := e.Put(t.Context(), []engine.NewJob{newJob("q")}); job.KindOf(err) != job.Unavailable {
			t.Fatalf("round %d: a put on a full disk answered %v, want Unavailable", round, err)
		}
		for err = nil; err == nil; {
			_, err = s.Next(t.Context())
		}
		if !errors.Is(err, engine.ErrStreamEnded) {
			t.Fatalf("the stream ended with %v", err)
		}
		if e.Ready() == nil {
			t.Fatal("ready while the disk refuses writes")
		}
		disk.on.Store(false)
		for e.Ready() != nil { // heals by itself; the test's own deadline bounds it
			runtime.Gosched()
		}
	}
	for id := range acknowledged {
		if j, _, err := query.Of(e).Get(t.Context(), id); err != nil || j.State != job.Ready {
			t.Errorf("acknowledged job %s: %v, %v", id, j, err)
		}
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
