package meter_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/meter"
)

// The store of a scenario runs every transaction twice; nothing counts twice.
func TestWhatHappensIsCountedOnce(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "ok")
		r.Add("q", "fails", retry(job.Retry{Curve: wait(job.Second), Limit: job.LimitOf(1)}))
		r.Add("q", "released")
		r.Add("q", "expires", due(r.Clock.Wall()+job.Hour), func(n *engine.NewJob) { n.Job.ExpiresAt = r.Clock.Wall() + job.Minute })
		r.Pass(2 * job.Second)
		s := r.Anonymous(3, "q")
		s.Gets("ok", "fails", "released")
		r.Pass(job.Second)
		s.OK("ok")
		s.Fails("fails", func(s *engine.Settle) { s.Failure.Status = 503 })
		r.Settled(s.Held["released"], job.Released, func(s *engine.Settle) { s.Delay = job.Hour })
		r.Counted("q", map[meter.Count]uint64{
			meter.Enqueued: 4, meter.Taken: 3, meter.SettledOK: 1, meter.SettledRetry: 1, meter.SettledRelease: 1, meter.RetryHTTP5xx: 1,
		})
		r.Pass(job.Second)
		s.Gets("fails")
		s.Fails("fails")
		r.Operate("released", cancel)
		r.Pass(job.Minute)
		r.Expect("expires", job.Dead)
		r.Counted("q", map[meter.Count]uint64{
			meter.Enqueued: 4, meter.Taken: 4, meter.SettledOK: 1, meter.SettledRetry: 2, meter.SettledRelease: 1, meter.RetryHTTP5xx: 1,
			meter.DeadExhausted: 1, meter.JobsCancelled: 1, meter.DeadExpired: 1,
		})
		m, q := r.Measures("q")
		if q.Wait.Sum != 3*2000 || q.Wait.Counts[8] != 3 { // first takes only; 2.5 s is the edge
			t.Errorf("waits %+v, want three of 2 s", q.Wait)
		}
		if q.Run.Sum != 3*1000 || q.Run.Counts[7] != 3 || q.Run.Counts[0] != 1 {
			t.Errorf("runs %+v, want three of 1 s and one of 0", q.Run)
		}
		if m.Stats.Expired != 1 || m.Leases != 0 || m.Holders != [3]int{1, 0, 0} || !m.Working {
			t.Errorf("got %+v", m)
		}
		if q.Depth.States != [job.States]int64{job.Done: 1, job.Dead: 3} || q.Depth.Cancelled() != 1 || q.Oldest != 0 {
			t.Errorf("depth %+v, oldest %d", q.Depth, q.Oldest)
		}
		if m.Total != 1000 || m.Free != 1000 || m.Batch.Sum == 0 || m.Commit.Counts == [histogram.Buckets]uint64{} || m.Sync.Counts == [histogram.Buckets]uint64{} {
			t.Errorf("got %+v", m)
		}
	})
}

func TestLeasesThatNobodySettledAreCountedByTheirEnd(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = job.Second })
		r.AddAll("q", "a")
		s := r.Anonymous(1, "q")
		s.Gets("a")
		s.End()
		r.Leased(engine.LeaseOptions{Queues: []string{"q"}, For: job.Minute}, "a")
		r.Pass(2 * job.Second)
		r.Counted("q", map[meter.Count]uint64{
			meter.Enqueued: 1, meter.Taken: 2, meter.EndedDisconnect: 1, meter.EndedRunTimeout: 1, meter.RetryTimeout: 1,
		})
		_, q := r.Measures("q")
		if q.Wait.Counts[0] != 1 {
			t.Errorf("waits %+v: a second delivery is not a first take", q.Wait)
		}
		r.AddAll("q", "b")
		h := r.Named("w", 1)
		h.Gets("b")
		if m, q := r.Measures("q"); m.Holders != [3]int{0, 1, 0} || m.Leases != 1 || q.Depth.Leases != 1 {
			t.Errorf("got %+v", m)
		}
		r.Restart(job.Minute)
		if m, _ := r.Measures("q"); m.Holders != [3]int{} || m.Leases != 1 { // it has its window
			t.Errorf("after a restart: holders %v, %d leases", m.Holders, m.Leases)
		}
	})
}

func TestOnlySoManyQueuesAreMeasuredByName(t *testing.T) {
	scenario(t, func(r *rig) {
		for i := range 5 {
			r.AddAll(fmt.Sprint("q", i), fmt.Sprint("a", i), fmt.Sprint("b", i))
		}
		m := r.Part.Meter.Measure(r.Context())
		if len(m.Queues) != 2 || m.Queues[0].Name != "q0" || m.Queues[1].Name != "q1" {
			t.Fatalf("named: %+v", m.Queues)
		}
		if m.Queues[1].N[meter.Enqueued] != 2 || m.Queues[1].Depth.States[job.Ready] != 2 {
			t.Errorf("got %+v", m.Queues[1])
		}
		if m.Other.N[meter.Enqueued] != 6 || m.Other.Depth.States[job.Ready] != 6 || m.Other.Depth.Bytes != 12 {
			t.Errorf("the others: %+v", m.Other)
		}
	}, func(r *rig) { r.ByName = 2 })
}

func TestTheStateOfQueuesIsMeasured(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		r.AddAll("p", "c")
		r.SetQueue("p", func(q *job.Queue) { q.Paused = true })
		r.Pass(7 * job.Second)
		_, q := r.Measures("q")
		if q.Oldest != 7*job.Second || q.Paused || q.Held || q.Breaker != job.BreakerClosed {
			t.Errorf("got %+v", q)
		}
		if err := r.Part.Guard.ForceBreaker(r.Context(), "q", "", job.BreakerOpen, job.Actor{}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Part.Guard.Hold(r.Context(), "q", "", r.Clock.Wall()+job.Minute, job.Actor{}); err != nil {
			t.Fatal(err)
		}
		if err := enginetest.HoldGroup(r.Context(), r.Engine, "q", "g", r.Clock.Wall()+job.Minute); err != nil {
			t.Fatal(err)
		}
		m, q := r.Measures("q")
		if !q.Held || q.Breaker != job.BreakerOpen || m.Breakers[job.BreakerOpen] != 1 || m.HeldGroups != 1 {
			t.Errorf("got %+v", m)
		}
		if _, p := r.Measures("p"); !p.Paused || p.Held {
			t.Errorf("got %+v", p)
		}
	})
}

func TestWhatDiesWithoutBeingKeptIsCountedAsDiscarded(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "a", retry(job.Retry{Limit: job.LimitOf(0)}))
		s := r.Anonymous(1)
		s.Gets("a")
		s.Fails("a")
		r.Expect("a", job.None)
		r.Counted("q", map[meter.Count]uint64{
			meter.Enqueued: 1, meter.Taken: 1, meter.SettledRetry: 1, meter.DeadExhausted: 1, meter.Discarded: 1,
		})
	}, func(r *rig) { r.Opts.Server.RetainDead = 0 })
}

func TestWithoutAStoreTheCountersAreStillThere(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		r.End()
		m, q := r.Measures("q")
		if q.N[meter.Enqueued] != 1 || m.Stats.Put != 1 {
			t.Errorf("got %+v", m)
		}
	})
}
