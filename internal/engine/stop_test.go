package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/store"
)

func TestAStopAnswersEverythingItAcceptedAndRefusesTheRest(t *testing.T) { // I5
	slowly(t, func(r *rig, d *disk) {
		d.stop()
		type answer struct {
			added []engine.Added
			err   error
		}
		answers := make(chan answer, 300)
		put := func(i int) {
			added, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", fmt.Sprint(i))})
			answers <- answer{added, err}
		}
		for i := range 200 {
			go put(i)
		}
		synctest.Wait()
		stopped := make(chan error)
		go func() { stopped <- r.Stop(context.Background()) }()
		synctest.Wait()
		for i := range 100 {
			go put(1000 + i)
		}
		synctest.Wait()
		d.run()
		if err := <-stopped; err != nil {
			r.Fatal(err)
		}
		var kept []job.ID
		for range 300 {
			a := <-answers
			switch {
			case a.err == nil:
				kept = append(kept, a.added[0].ID)
			case job.KindOf(a.err) != job.Unavailable:
				r.Errorf("refused with %v", a.err)
			}
		}
		if len(kept) != 200 {
			r.Errorf("%d of 200 that came before the stop were taken in", len(kept))
		}
		r.Ended = true
		r.PowerCut()
		for _, id := range kept {
			if _, _, err := r.Get(r.Context(), id); err != nil {
				r.Errorf("an acknowledged job is lost: %v", err)
			}
		}
	})
}

func TestAStoppedEngineRefusesByName(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		r.End()
		_, put := r.Put(r.Context(), []engine.NewJob{newNamed("q", "b")})
		_, settle := r.Settle(r.Context(), []engine.Settle{{}})
		_, lease := r.Lease(r.Context(), tenSeconds)
		for _, err := range []error{put, settle, lease, r.Ready()} {
			if err == nil || job.KindOf(err) != job.Unavailable {
				r.Errorf("%v", err)
			}
		}
		if err := r.Stop(r.Context()); err != nil {
			r.Errorf("stopping twice: %v", err)
		}
	})
}

func TestAnEngineThatWasNotStartedRefusesByName(t *testing.T) {
	scenario(t, func(r *rig) {
		fresh := engine.New(r.Mem, r.Clock, func() uint64 { return 1 }, nil, engine.Options{})
		_, err := fresh.Put(r.Context(), []engine.NewJob{newNamed("q", "b")})
		if job.KindOf(err) != job.Unavailable || fresh.Ready() == nil {
			r.Errorf("%v", err)
		}
		if _, _, err := query.Of(fresh).Get(r.Context(), job.ID{}); job.KindOf(err) != job.Unavailable {
			r.Errorf("%v", err)
		}
	})
}

func TestAStopReleasesAnonymousStreamsUncharged(t *testing.T) { // core.md section 4, section 5
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c")
		w := r.Anonymous(2)
		w.Gets("a", "b")
		r.Restart(0)
		for _, name := range []string{"a", "b", "c"} {
			if j := r.Expect(name, job.Ready); j.Losses != 0 || j.Attempts != 0 || j.Evictions != 0 {
				r.Errorf("%+v", j)
			}
		}
		r.Settled(w.Held["a"], job.OK) // its worker finished it meanwhile
		if v := r.Try(engine.Settle{ID: r.IDs["b"]}); v.Err != nil || v.State != job.Done {
			r.Errorf("%+v", v)
		}
		r.Anonymous(9).Gets("c")
	})
}

func TestAStopGivesNothingToWhoItSendsAway(t *testing.T) { // core.md section 4: nothing is held by nobody
	slowly(t, func(r *rig, d *disk) {
		r.AddAll("q", "a")
		w := r.Anonymous(1)
		w.Gets("a")
		poll := make(chan error, 1)
		go func() { _, err := r.Lease(r.Context(), tenSeconds); poll <- err }()
		synctest.Wait()
		d.stop()
		stopped := make(chan error)
		go func() { stopped <- r.Stop(context.Background()) }()
		synctest.Wait()
		if err := <-poll; !errors.Is(err, engine.ErrStreamEnded) {
			r.Errorf("the poll was answered %v", err)
		}
		d.run()
		if err := <-stopped; err != nil {
			r.Fatal(err)
		}
		r.Begin()
		if j := r.Job("a"); j.State != job.Ready {
			r.Errorf("the poll was sent away, and holds the job: %+v", j.Leases)
		}
	})
}

func TestWhoComesInTheSameBatchAsTheStopIsSentAwayToo(t *testing.T) {
	slowly(t, func(r *rig, d *disk) {
		d.stop()
		go func() { _, _ = enginetest.Stats(r.Context(), r.Engine) }() // this batch waits for the disk
		synctest.Wait()
		over := make(chan error, 2)
		go func() {
			s, err := r.Stream(r.Context(), engine.StreamOptions{Prefetch: 1})
			if err == nil {
				_, err = s.Next(r.Context())
			}
			over <- err
		}()
		go func() { _, err := r.Lease(r.Context(), tenSeconds); over <- err }()
		synctest.Wait()
		go func() { _ = r.Stop(context.Background()) }()
		synctest.Wait()
		d.run()
		synctest.Wait()
		if len(over) != 2 {
			r.Errorf("%d of 2 know that it is over", len(over))
		}
		r.Ended = true
		ctx := context.Background()
		_ = r.Stop(ctx)
	})
}

func TestAStopDuringAFailureEndsToo(t *testing.T) {
	for seed := range uint64(8) {
		scenario(t, func(r *rig) {
			r.AddAll("q", "a")
			r.Mem.FailNextCommit(errDisk)
			answered, e := make(chan error, 1), r.Engine
			go func() { _, err := e.Put(r.Context(), []engine.NewJob{newNamed("q", "b")}); answered <- err }()
			r.End()
			if err := <-answered; err == nil {
				r.Error("a commit that failed was answered as done")
			}
			if err := r.Mem.Reopen(r.Context()); err != nil {
				r.Fatal(err)
			}
			r.Begin()
			r.Expect("a", job.Ready)
		}, func(r *rig) { r.Seed = seed })
	}
}

func TestAStopThatComesJustBeforeAFailureEndsToo(t *testing.T) {
	slowly(t, func(r *rig, d *disk) {
		d.stop()
		answers := make(chan error, 400)
		put := func(n int) {
			for range n {
				go func() { _, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "a")}); answers <- err }()
			}
			synctest.Wait()
		}
		put(1)   // waits for the disk
		put(399) // waits for its turn
		stopped := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			stopped <- r.Stop(ctx)
		}()
		synctest.Wait()
		r.Mem.PowerCut(dice(1))
		d.run()
		if err := <-stopped; err != nil {
			r.Error(err)
		}
		for range 400 {
			if err := <-answers; err == nil {
				r.Error("answered as done, by a store that was down")
			}
		}
		r.Ended = true
		if err := r.Mem.Reopen(r.Context()); err != nil {
			r.Fatal(err)
		}
	})
}

func TestAStopWhileTheStoreStaysBrokenAnswersEverybody(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Mem.PowerCut(dice(1))
		answers := make(chan error, 20)
		for i := range 20 {
			go func() {
				_, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", fmt.Sprint(i))})
				answers <- err
			}()
		}
		r.End()
		for range 20 {
			if err := <-answers; job.KindOf(err) != job.Unavailable {
				r.Errorf("%v", err)
			}
		}
		if err := r.Mem.Reopen(r.Context()); err != nil {
			r.Fatal(err)
		}
	}, func(r *rig) {
		r.Opts.BatchOpsMax = 4
		r.Around = func(s store.Store) store.Store { return lost{s} }
	})
}

// lost is a store that cannot be opened again.
type lost struct{ store.Store }

func (lost) Reopen(context.Context) error { return errDisk }

func TestAStopThatTakesTooLongSaysSo(t *testing.T) {
	slowly(t, func(r *rig, d *disk) {
		d.stop()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := r.Stop(ctx); err == nil {
			r.Error("stopped, with a disk that does not answer")
		}
		d.run()
		r.Ended = true
		r.Pass(0)
	})
}
