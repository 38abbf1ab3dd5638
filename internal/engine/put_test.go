package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/store"
)

// disk is one that can be made to stand still: what is committed then becomes
// durable when it runs again.
type disk struct {
	mu    sync.Mutex // guards stood
	stood chan struct{}
}

func (d *disk) stop() { d.mu.Lock(); d.stood = make(chan struct{}); d.mu.Unlock() }

func (d *disk) run() { d.mu.Lock(); close(d.stood); d.stood = nil; d.mu.Unlock() }

func (d *disk) wait() {
	d.mu.Lock()
	stood := d.stood
	d.mu.Unlock()
	if stood != nil {
		<-stood
	}
}

type slow struct {
	store.Store
	disk *disk
}

func (s slow) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	c, err := s.Store.Update(ctx, fn)
	if err != nil {
		return nil, err
	}
	return slowCommit{c, s.disk}, nil
}

type slowCommit struct {
	store.Commit
	disk *disk
}

func (c slowCommit) Wait() error { c.disk.wait(); return c.Commit.Wait() }

// slowly runs a scenario on such a disk.
func slowly(t *testing.T, f func(r *rig, d *disk)) {
	t.Helper()
	d := &disk{}
	scenario(t, func(r *rig) { synctest.Wait(); f(r, d) }, func(r *rig) {
		r.Around = func(inner store.Store) store.Store { return slow{inner, d} }
	})
}

func TestAPutIsAnsweredOnlyWhenItIsOnDisk(t *testing.T) { // I5
	slowly(t, func(r *rig, d *disk) {
		d.stop()
		done := make(chan error, 1)
		go func() {
			_, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "a")})
			done <- err
		}()
		synctest.Wait()
		if len(done) > 0 {
			r.Error("answered before the disk was")
		}
		d.run()
		if err := <-done; err != nil {
			r.Error(err)
		}
	})
}

func TestADeliveryIsHandedOverOnlyWhenItsBatchIsOnDisk(t *testing.T) { // core.md section 4
	slowly(t, func(r *rig, d *disk) {
		d.stop()
		got := make(chan []engine.Delivery, 1)
		go func() { list, _ := r.Lease(r.Context(), tenSeconds); got <- list }()
		go func() { _, _ = r.Put(r.Context(), []engine.NewJob{newNamed("q", "a")}) }()
		synctest.Wait()
		if len(got) > 0 {
			r.Error("given before the disk answered")
		}
		d.run()
		if list := <-got; len(list) != 1 {
			r.Errorf("%d jobs", len(list))
		}
	})
}

func TestWhatWaitsTogetherIsCommittedTogether(t *testing.T) { // DESIGN section 4
	slowly(t, func(r *rig, d *disk) {
		d.stop()
		done := make(chan error, 100)
		for i := range 100 {
			go func() {
				_, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", fmt.Sprint(i))})
				done <- err
			}()
		}
		synctest.Wait()
		d.run()
		for range 100 {
			if err := <-done; err != nil {
				r.Fatal(err)
			}
		}
		if s := r.Stats(); s.Put != 100 || s.Batches > 20 {
			r.Errorf("%d puts in %d batches", s.Put, s.Batches)
		}
	})
}

func TestADuplicateIsAnsweredOnlyWhenItsFirstIsOnDisk(t *testing.T) { // I5
	const many = 500 // more than wait for the disk before the next batch is applied
	slowly(t, func(r *rig, d *disk) {
		d.stop()
		answers := make(chan error, 1+many)
		for n := range 1 + many {
			go func() {
				_, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "a", keyed("k"))})
				answers <- err
			}()
			if n == 0 {
				synctest.Wait() // the others are in batches of their own
			}
		}
		synctest.Wait()
		r.Mem.PowerCut(dice(1)) // the first one's batch does not get there
		d.run()
		answered := 0
		for range 1 + many {
			if err := <-answers; err == nil {
				answered++
			}
		}
		r.Recovered()
		if n := r.inState(job.Ready); n == 0 && answered > 0 {
			r.Errorf("%d were told that it is known, and it is not there", answered)
		}
	})
}

func TestTheJobsOfOneCallGetIDsAndPlacesInTheirOrder(t *testing.T) { // core.md section 1
	scenario(t, func(r *rig) {
		list := []engine.NewJob{newNamed("q", "a"), newNamed("q", "b"), newNamed("q", "c")}
		added, err := r.Put(r.Context(), list)
		if err != nil {
			r.Fatal(err)
		}
		for i, name := range []string{"a", "b", "c"} {
			r.Call(added[i].ID, name)
			if i > 0 && (!added[i-1].ID.Before(added[i].ID) || added[i-1].Job.Seq >= added[i].Job.Seq) {
				r.Errorf("%d stands before %d", i, i-1)
			}
			if added[i].Duplicate || added[i].Job.Created != r.Now() {
				r.Errorf("%+v", added[i])
			}
		}
		r.Anonymous(9).Gets("a", "b", "c")
	})
}

func TestOneRefusedJobRefusesTheWholeCall(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("small", func(q *job.Queue) { q.MaxJobs = 1 })
		list := []engine.NewJob{newNamed("q", "a", keyed("k")), newNamed("small", "b"), newNamed("small", "c")}
		if _, err := r.Put(r.Context(), list); job.KindOf(err) != job.OverLimit {
			r.Fatalf("%v", err)
		}
		if n, _ := r.Count(r.Context(), all); n != 0 {
			r.Errorf("%d jobs of a refused call are there", n)
		}
		if n := r.Rows(job.Receipts); n != 0 {
			r.Errorf("%d receipts of a refused call are there", n)
		}
	})
}

func TestAPayloadIsKeptAsItIs(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "", "\x00\xff not text")
		w := r.Anonymous(2)
		w.Gets("", "\x00\xff not text")
		if _, body, err := r.Get(r.Context(), r.IDs["\x00\xff not text"]); err != nil || string(body) != "\x00\xff not text" {
			r.Errorf("%q, %v", body, err)
		}
	})
}

func TestNumbersAreNeverGivenTwiceThroughCrashes(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		seqs, ids := map[int64]bool{}, map[job.ID]bool{}
		for life := range 4 {
			for i := range 5 {
				r.AddAll("q", fmt.Sprint(life, "-", i))
			}
			for name, id := range r.IDs {
				j := r.Expect(name, job.Ready)
				if life > 0 && j.Created == r.Now() && (seqs[j.Seq] || ids[id]) {
					r.Errorf("%s has a number of another", name)
				}
			}
			for name, id := range r.IDs {
				seqs[r.Job(name).Seq], ids[id] = true, true
			}
			if len(seqs) != len(r.IDs) {
				r.Fatalf("%d positions for %d jobs", len(seqs), len(r.IDs))
			}
			r.PowerCut()
			r.Pass(1)
		}
	})
}

func TestACallWhoseCallerIsGoneLeaksNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		for range 50 {
			_, _ = r.Put(ctx, []engine.NewJob{newNamed("q", "a")})
			_, _ = r.Settle(ctx, []engine.Settle{{}})
			_, _ = r.Extend(ctx, []engine.Extension{{}})
			_, _ = enginetest.Stats(ctx, r.Engine)
			_, _ = enginetest.Operate(ctx, r.Engine, job.ID{}, revive)
			_, _ = r.Part.Desk.SetQueue(ctx, "q", func(*job.Queue) error { return nil }, job.Actor{})
			_ = enginetest.HoldGroup(ctx, r.Engine, "q", "g", 1)
			_, _ = r.Part.Desk.Do(ctx, job.Actor{}, desk.Delete, job.ID{})
			_, _, _ = r.Get(ctx, job.ID{})
		}
		r.AddAll("q", "b") // and who waits is answered by his own command
		r.Expect("b", job.Ready)
	})
}
