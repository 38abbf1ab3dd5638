package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// A bad block of a table costs the jobs that stand in it, and those are dead with a
// failure that says where. All others are delivered, and the store is not opened
// again for it.
func TestABadBlockSetsAsideTheJobsInItAndNoOthers(t *testing.T) {
	const jobs = 300
	live := vfs.NewCrashableMem()
	e, st := openEngine(t, live, 1)
	list := make([]engine.NewJob, jobs)
	for i := range list {
		list[i] = engine.NewJob{
			Job:     job.Job{Queue: fmt.Sprint("q", i%3), Type: "t", RetainDone: job.Unset, RetainDead: job.Unset},
			Payload: bytes.Repeat(fmt.Appendf(nil, "%04d", rand.Uint32N(10000)), 50),
		}
	}
	added, err := e.Put(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Stop(t.Context()), st.Close()); err != nil {
		t.Fatal(err)
	}
	e, st = openEngine(t, live, 1) // the log becomes a table
	if err := errors.Join(e.Stop(t.Context()), st.Close()); err != nil {
		t.Fatal(err)
	}
	rows, payloads := 0, 0
	for seed := range uint64(8) {
		fs := live.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		flipTable(t, fs, rand.New(rand.NewPCG(seed, 1)))
		var said bytes.Buffer
		clock := engine.SystemClock()
		st, err := embedded.Open(embedded.Options{Dir: "data", FS: fs, Now: clock.Wall})
		if job.KindOf(err) == job.Corrupt {
			continue // nobody knows what was there
		}
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(st, clock, rand.New(rand.NewPCG(seed, 3)).Uint64, slog.New(slog.NewTextHandler(&said, nil)), engine.Options{Server: rule.DefaultServer()})
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ran := runAll(t, e)
		dead, err := e.List(t.Context(), store.Filter{States: []job.State{job.Dead}}, jobs+1, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dead {
			ran[d.Job.ID] = true
			if d.Job.Reason != job.Rejected {
				t.Errorf("job %s is dead because of %s", d.Job.ID, d.Job.Reason)
			}
			if d.Job.Queue == "damaged" {
				rows++
			} else {
				payloads++
			}
			failures, err := e.Failures(t.Context(), d.Job.ID, 0, false, 1)
			if err != nil || len(failures) != 1 || !strings.Contains(failures[0].Message, "corrupt: ") {
				t.Errorf("job %s has the failures %v (%v)", d.Job.ID, failures, err)
			}
		}
		for _, a := range added {
			if !ran[a.ID] {
				t.Errorf("seed %d: job %s neither ran nor is it set aside", seed, a.ID)
			}
		}
		if err := errors.Join(e.Stop(context.Background()), st.Close()); err != nil {
			t.Error(err)
		}
		if strings.Contains(said.String(), "opening the store again") {
			t.Errorf("seed %d: the store was opened again:\n%s", seed, said.String())
		}
	}
	t.Logf("set aside: %d jobs, and %d for their payloads", rows, payloads)
	if rows == 0 || payloads == 0 {
		t.Errorf("set aside %d jobs, and %d for their payloads; want some of both", rows, payloads)
	}
}

// flipTable flips a bit in the largest table.
func flipTable(t *testing.T, fs vfs.FS, rng *rand.Rand) {
	t.Helper()
	names, err := fs.List("data/data")
	if err != nil {
		t.Fatal(err)
	}
	path, size := "", int64(0)
	for _, name := range names {
		if info, err := fs.Stat("data/data/" + name); err == nil && strings.HasSuffix(name, ".sst") && info.Size() > size {
			path, size = "data/data/"+name, info.Size()
		}
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	b, at := make([]byte, 1), rng.Int64N(size)
	if _, err := f.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	b[0] ^= 1 << rng.IntN(8)
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// runAll takes and finishes jobs until none is open.
func runAll(t *testing.T, e *engine.Engine) map[job.ID]bool {
	t.Helper()
	ran := map[job.ID]bool{}
	open := store.Filter{States: []job.State{job.Ready, job.Leased}}
	for {
		n, err := e.Count(t.Context(), open)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return ran
		}
		now, cancel := context.WithCancel(t.Context())
		cancel()
		list, err := e.Lease(now, engine.LeaseOptions{Worker: "w", Max: 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			ran[d.Job.ID] = true
			if v, err := e.Settle(t.Context(), []engine.Settle{{ID: d.Job.ID, Token: d.Lease.Token}}); err != nil || v[0].Err != nil {
				t.Fatal(v, err)
			}
		}
	}
}
