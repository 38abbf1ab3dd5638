package engine_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Quotas and overload: core.md section 10.

func sized(name string, n int) engine.NewJob {
	return newNamed("q", name, func(j *engine.NewJob) { j.Payload = make([]byte, n) })
}

func TestAFullQueueRejectsUntilThereIsRoom(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.MaxJobs = 2 })
		r.AddAll("q", "a", "b")
		r.TooMuch(newNamed("q", "c"))
		w := r.Anonymous(1)
		w.Gets("a")
		r.TooMuch(newNamed("q", "c")) // what runs is open still
		w.OK("a")
		r.AddAll("q", "c")
		r.TooMuch(newNamed("q", "d"), newNamed("other", "e"))
	})
}

func TestAQueueCountsTheBytesOfItsOpenPayloads(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.MaxBytes = 100 })
		r.PutAgain(sized("a", 60))
		r.TooMuch(sized("b", 41))
		r.TooMuch(sized("b", 20), sized("c", 21)) // together
		r.PutAgain(sized("b", 40))
		if d := r.DepthOf("q"); d.Bytes != 100 {
			r.Errorf("%+v", d)
		}
	})
}

func TestAFullQueueDropsItsOldestAndCountsIt(t *testing.T) { // I9
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.MaxJobs, q.OnFull = 3, job.FullDropOldest })
		r.Add("q", "a", due(r.Now()+job.Hour))
		r.AddAll("q", "b", "c")
		r.AddAll("q", "d", "e")
		for name, want := range map[string]job.State{
			"a": job.Dead, "b": job.Dead, "c": job.Ready, "d": job.Ready, "e": job.Ready,
		} {
			if j := r.Expect(name, want); want == job.Dead && j.Reason != job.Evicted {
				r.Errorf("%s died of %s", name, j.Reason)
			}
		}
		if s := r.Stats(); s.Evicted != 2 {
			r.Errorf("%+v", s)
		}
	})
}

func TestDroppingTheOldestKeepsTheQuotasWhateverComes(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.MaxJobs, q.MaxBytes, q.OnFull = 6, 100, job.FullDropOldest })
		for i := range 6 {
			r.PutAgain(sized(fmt.Sprint(i), 10))
		}
		within := func(when string) {
			r.Helper()
			if d := r.DepthOf("q"); d.Open() > 6 || d.Bytes > 100 {
				r.Errorf("%s: %d jobs of %d bytes; the quota is 6 and 100", when, d.Open(), d.Bytes)
			}
		}
		r.PutAgain(sized("big", 90))
		within("one large job")
		var many []engine.NewJob
		for i := range 6 {
			many = append(many, sized(fmt.Sprint("many", i), 16))
		}
		r.PutAgain(many...)
		within("six at once")
		if d := r.DepthOf("q"); d.Open() != 6 {
			r.Errorf("only %d of the newcomers are there", d.Open())
		}
		r.TooMuch(append(many, sized("seventh", 1))...) // they could never stand in it together
	})
}

func TestWhatRunsIsNeverDropped(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.MaxJobs, q.OnFull = 2, job.FullDropOldest })
		r.AddAll("q", "a", "b")
		w := r.Anonymous(2)
		w.Gets("a", "b")
		r.TooMuch(newNamed("q", "c"))
		w.OK("a")
		r.AddAll("q", "c")
		w.Gets("c")
		r.Expect("b", job.Leased)
	})
}

func TestThereAreNoMoreQueuesThanAllowed(t *testing.T) { // max_queues
	few := func(r *rig) { r.Opts.QueuesMax = 3 }
	scenario(t, func(r *rig) {
		r.AddAll("one", "a")
		r.Add("two", "b", due(r.Now()+job.Hour))
		r.TooMuch(newNamed("three", "c"), newNamed("four", "d"))
		r.AddAll("three", "c")
		r.TooMuch(newNamed("four", "d"))
		r.AddAll("one", "e")
		r.Restart(0)
		r.TooMuch(newNamed("four", "d"))
		r.AddAll("two", "f")
	}, few)
}

// A name that was used once does not count for ever.
func TestQueuesWithoutJobsAndSettingsMakeRoomForOthers(t *testing.T) { // max_queues
	scenario(t, func(r *rig) {
		r.AddAll("one", "a")
		r.AddAll("two", "b")
		r.SetQueue("three", func(q *job.Queue) { q.MaxJobs = 5 })
		r.TooMuch(newNamed("four", "d"))
		r.deletes(of("one"), 1)
		r.Pass(11 * job.Second)
		r.AddAll("four", "d")
		r.TooMuch(newNamed("one", "e")) // two has a job, three has settings
		r.deletes(of("two"), 1)
		r.TooMuch(newNamed("one", "e")) // not that often
		r.Pass(11 * job.Second)
		r.AddAll("one", "e")
		r.Expect("d", job.Ready)
	}, func(r *rig) { r.Opts.QueuesMax = 3 })
}

func TestBelowItsDiskReserveTheEngineTakesNothingInAndGoesOnOtherwise(t *testing.T) { // disk_reserve
	reserve := func(r *rig) { r.Opts.Reserve = engine.Reserve{Bytes: 100, Share: 0.2} }
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c")
		w := r.Anonymous(1)
		w.Gets("a")
		r.Room.Store(199) // the larger of 100 bytes and 20 % of 1000
		r.Pass(job.Second)
		if _, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "d")}); job.KindOf(err) != job.Unavailable {
			r.Errorf("put: %v", err)
		}
		if err := r.Ready(); err == nil {
			r.Error("ready below the reserve")
		}
		w.OK("a")
		w.Gets("b")
		if v := r.extend(engine.Extension{ID: r.IDs["b"], Token: w.Held["b"].Lease.Token}); v.Err != nil {
			r.Error(v.Err)
		}
		r.Room.Store(200)
		r.Pass(job.Second)
		r.AddAll("q", "d")
		if err := r.Ready(); err != nil {
			r.Error(err)
		}
		w.Fails("b")
		w.Gets("c")
	}, reserve)
}

func TestTheLeasesOfAllHoldersTogetherAreBounded(t *testing.T) {
	few := func(r *rig) { r.Opts.InFlightMax = 2 }
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c", "d", "e")
		held := r.Leased(engine.LeaseOptions{Max: 9, For: job.Hour}, "a", "b")
		w := r.Anonymous(9)
		w.Gets()
		r.Settled(held["a"], job.OK)
		w.Gets("c") // though it is not w that got room
		r.Restart(0)
		w = r.Anonymous(9)
		w.Gets("c")
		w.OK("c")
		w.Gets("d")
	}, few)
}
