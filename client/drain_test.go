package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

func TestADrainFinishesWhatRunsAndGivesBackTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 10)
		gate := make(chan struct{})
		w := start(t, c, WorkerOptions{Concurrency: 2, Prefetch: 6}, func(context.Context, *Delivery) error { <-gate; return nil })
		f.want(t, wire.InFlight, 6)
		w.stop()
		pass(20 * time.Second)
		f.want(t, wire.InFlight, 2) // and no others were taken in their place
		f.want(t, wire.Ready, 8)
		if len(f.streams) != 1 {
			t.Error("the worker is not present while it drains: its leases would lapse")
		}
		close(gate)
		if err := <-w.done; err != nil {
			t.Error(err)
		}
		f.want(t, wire.Completed, 2)
		f.want(t, wire.Ready, 8)
		if w.count("draining 2 running, 4 unstarted") != 1 || w.count("started") != 2 {
			t.Errorf("%q", w.lines)
		}
	})
}

func TestADrainGivesBackWhatWasLostOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 3)
		w := start(t, c, WorkerOptions{ID: "w1", Queues: []string{"none"}}, nothing)
		f.mu.Lock() // given to the worker, but its line never arrived
		f.lease(f.jobs[1], "w1")
		f.mu.Unlock()
		if err := w.end(); err != nil {
			t.Error(err)
		}
		f.want(t, wire.Ready, 3)
		if w.count("started") != 0 {
			t.Errorf("%q", w.lines)
		}
	})
}

func TestADrainThatTakesTooLongStopsHandlersAndBlamesNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 2)
		w := start(t, c, WorkerOptions{Concurrency: 2, DrainTimeout: 8 * time.Second}, func(ctx context.Context, d *Delivery) error {
			<-ctx.Done()
			if string(d.Job.Payload) == "1" {
				return Dead(errors.New("this one knows"))
			}
			return ctx.Err()
		})
		begin := time.Now()
		if err := w.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != 8*time.Second {
			t.Errorf("took %s", took)
		}
		f.want(t, wire.Ready, 1)
		f.want(t, wire.Dead, 1)
		if f.jobs[0].Attempts != 0 {
			t.Error("the job was charged for our drain")
		}
	})
}

func TestAHandlerThatIgnoresTheEndIsLeftBehindAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		gate := make(chan struct{})
		defer close(gate)
		w := start(t, c, WorkerOptions{}, func(context.Context, *Delivery) error { <-gate; return nil })
		err := w.end()
		if err == nil || !strings.Contains(err.Error(), "1 handlers did not return") {
			t.Errorf("%v", err)
		}
		f.want(t, wire.InFlight, 1) // it must not run twice at once
	})
}

func TestADrainWithoutAServerEndsAndTellsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 3)
		gate := make(chan struct{})
		w := start(t, c, WorkerOptions{Concurrency: 2, Prefetch: 3}, func(context.Context, *Delivery) error { <-gate; return nil })
		f.ln.fall()
		close(gate)
		begin := time.Now()
		err := w.end()
		if err == nil || !strings.Contains(err.Error(), "did not reach the server") {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestJobsMaxBoundsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 20)
		w := start(t, c, WorkerOptions{Concurrency: 4, Prefetch: 50, JobsMax: 7}, nothing)
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		f.want(t, wire.Completed, 7)
		f.want(t, wire.Ready, 13)
	})
}
