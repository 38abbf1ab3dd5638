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
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/query"
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
		e := part.New(st, clock, rand.New(rand.NewPCG(seed, 3)).Uint64, slog.New(slog.NewTextHandler(&said, nil)), engine.Options{Server: rule.DefaultServer()}).Engine
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if seed%2 == 1 { // somebody looks at them before anybody has them
			looksAt(t, e, added)
		}
		ran := runAll(t, e)
		dead, err := enginetest.Page(t.Context(), e, store.Filter{States: []job.State{job.Dead}}, jobs+1)
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
			failures, err := query.Of(e).Failures(t.Context(), d.Job.ID, 0, false, 1)
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

// looksAt wants every job to be shown with its payload, or as one that is given up with
// a failure that says where: by a list, and alone.
func looksAt(t *testing.T, e *engine.Engine, all []engine.Added) {
	t.Helper()
	list, err := query.Of(e).List(t.Context(), store.Filter{}, 2*len(all))
	if err == nil {
		err = query.Of(e).Payloads(t.Context(), list[:len(list)/2])
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range list {
		if i >= len(list)/2 {
			if l.Job, l.Payload, err = query.Of(e).Get(t.Context(), l.Job.ID); err != nil && job.KindOf(err) != job.Corrupt {
				t.Fatal(err)
			}
		}
		if l.Payload == nil && l.Job.State != job.Dead {
			t.Errorf("job %s is shown as %s without its payload", l.Job.ID, l.Job.State)
		}
	}
}

// What an earlier version took in and clients cannot read is dead with a failure that
// says why, before anybody gets it. All others are delivered, by streams, to workers
// that come again, and by unary calls.
func TestWhatClientsCannotReadIsSetAside(t *testing.T) {
	scenario(t, func(r *rig) {
		deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
		s := r.Anonymous(4, "q")
		r.AddAll("q", "1e400", "1", deep, "2")
		s.Gets("1", "2")
		s.OK("1", "2")
		r.AddAll("q", "3")
		s.Gets("3")
		s.OK("3")
		s.End()
		named := r.Named("w", 10)
		r.AddAll("q", `{"a":[0,-1e999]}`, "4")
		named.Gets("4", `{"a":[0,-1e999]}: cancel`)
		named.OK("4")
		named.End()
		r.AddAll("unary", "5e5000", "6")
		r.Leased(engine.LeaseOptions{Worker: "u", Max: 5}, "6")
		r.Pass(0)
		for name, says := range map[string]string{
			"1e400": "unreadable: its payload is a number that is too large", deep: "unreadable: its payload is nested deeper",
			`{"a":[0,-1e999]}`: "unreadable: its payload.a[1] is a number", "5e5000": "unreadable: its payload is a number",
		} {
			j := r.Expect(name, job.Dead)
			failures, err := r.Failures(r.Context(), j.ID, 0, false, 1)
			if j.Reason != job.Rejected || err != nil || len(failures) != 1 || !strings.HasPrefix(failures[0].Message, says) {
				t.Errorf("%.20s is dead because of %s: %v (%v)", name, j.Reason, failures, err)
			}
		}
	})
}

// A checkpoint goes out with the job.
func TestACheckpointThatClientsCannotReadSetsItsJobAside(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "a", func(n *engine.NewJob) {
			n.Job.Extras = &job.Extras{Progress: &job.RunProgress{Fraction: job.FractionUnset, Checkpoint: []byte("1e400")}}
		})
		r.Anonymous(1).Gets()
		r.Pass(0)
		r.Expect("a", job.Dead)
	})
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
		n, err := query.Of(e).Count(t.Context(), open)
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
