package engine_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Quotas and overload: core.md section 10.

func (r *rig) depth(queue string) store.Depth {
	r.Helper()
	_, d, err := r.Queue(r.Context(), queue)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// tooMuch wants a put to be refused for a limit, and nothing to have changed.
func (r *rig) tooMuch(list ...engine.NewJob) {
	r.Helper()
	before, _ := r.Count(r.Context(), all)
	_, err := r.Put(r.Context(), list)
	if after, _ := r.Count(r.Context(), all); job.KindOf(err) != job.OverLimit || after != before {
		r.Fatalf("%v; %d jobs, then %d", err, before, after)
	}
}

func sized(name string, n int) engine.NewJob {
	return newNamed("q", name, func(j *engine.NewJob) { j.Payload = make([]byte, n) })
}

func TestAFullQueueRejectsUntilThereIsRoom(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.MaxJobs = 2 })
		r.puts("q", "a", "b")
		r.tooMuch(newNamed("q", "c"))
		w := r.anonymous(1)
		w.gets("a")
		r.tooMuch(newNamed("q", "c")) // what runs is open still
		w.ok("a")
		r.puts("q", "c")
		r.tooMuch(newNamed("q", "d"), newNamed("other", "e"))
	})
}

func TestAQueueCountsTheBytesOfItsOpenPayloads(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.MaxBytes = 100 })
		r.putAgain(sized("a", 60))
		r.tooMuch(sized("b", 41))
		r.tooMuch(sized("b", 20), sized("c", 21)) // together
		r.putAgain(sized("b", 40))
		if d := r.depth("q"); d.Bytes != 100 {
			r.Errorf("%+v", d)
		}
	})
}

func TestAFullQueueDropsItsOldestAndCountsIt(t *testing.T) { // I9
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.MaxJobs, q.OnFull = 3, job.FullDropOldest })
		r.put("q", "a", due(r.Now()+job.Hour))
		r.puts("q", "b", "c")
		r.puts("q", "d", "e")
		for name, want := range map[string]job.State{
			"a": job.Dead, "b": job.Dead, "c": job.Ready, "d": job.Ready, "e": job.Ready,
		} {
			if j := r.expect(name, want); want == job.Dead && j.Reason != job.Evicted {
				r.Errorf("%s died of %s", name, j.Reason)
			}
		}
		if s := r.stats(); s.Evicted != 2 {
			r.Errorf("%+v", s)
		}
	})
}

func TestDroppingTheOldestKeepsTheQuotasWhateverComes(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.MaxJobs, q.MaxBytes, q.OnFull = 6, 100, job.FullDropOldest })
		for i := range 6 {
			r.putAgain(sized(fmt.Sprint(i), 10))
		}
		within := func(when string) {
			r.Helper()
			if d := r.depth("q"); d.Open() > 6 || d.Bytes > 100 {
				r.Errorf("%s: %d jobs of %d bytes; the quota is 6 and 100", when, d.Open(), d.Bytes)
			}
		}
		r.putAgain(sized("big", 90))
		within("one large job")
		var many []engine.NewJob
		for i := range 6 {
			many = append(many, sized(fmt.Sprint("many", i), 16))
		}
		r.putAgain(many...)
		within("six at once")
		if d := r.depth("q"); d.Open() != 6 {
			r.Errorf("only %d of the newcomers are there", d.Open())
		}
		r.tooMuch(append(many, sized("seventh", 1))...) // they could never stand in it together
	})
}

func TestWhatRunsIsNeverDropped(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.MaxJobs, q.OnFull = 2, job.FullDropOldest })
		r.puts("q", "a", "b")
		w := r.anonymous(2)
		w.gets("a", "b")
		r.tooMuch(newNamed("q", "c"))
		w.ok("a")
		r.puts("q", "c")
		w.gets("c")
		r.expect("b", job.Leased)
	})
}

func TestThereAreNoMoreQueuesThanAllowed(t *testing.T) { // max_queues
	few := func(r *rig) { r.Opts.QueuesMax = 3 }
	scenario(t, func(r *rig) {
		r.puts("one", "a")
		r.put("two", "b", due(r.Now()+job.Hour))
		r.tooMuch(newNamed("three", "c"), newNamed("four", "d"))
		r.puts("three", "c")
		r.tooMuch(newNamed("four", "d"))
		r.puts("one", "e")
		r.Restart(0)
		r.tooMuch(newNamed("four", "d"))
		r.puts("two", "f")
	}, few)
}

// A name that was used once does not count for ever.
func TestQueuesWithoutJobsAndSettingsMakeRoomForOthers(t *testing.T) { // max_queues
	scenario(t, func(r *rig) {
		r.puts("one", "a")
		r.puts("two", "b")
		r.queue("three", func(q *job.Queue) { q.MaxJobs = 5 })
		r.tooMuch(newNamed("four", "d"))
		r.deletes(of("one"), 1)
		r.Pass(11 * job.Second)
		r.puts("four", "d")
		r.tooMuch(newNamed("one", "e")) // two has a job, three has settings
		r.deletes(of("two"), 1)
		r.tooMuch(newNamed("one", "e")) // not that often
		r.Pass(11 * job.Second)
		r.puts("one", "e")
		r.expect("d", job.Ready)
	}, func(r *rig) { r.Opts.QueuesMax = 3 })
}

func TestBelowItsDiskReserveTheEngineTakesNothingInAndGoesOnOtherwise(t *testing.T) { // disk_reserve
	reserve := func(r *rig) { r.Opts.Reserve = engine.Reserve{Bytes: 100, Share: 0.2} }
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b", "c")
		w := r.anonymous(1)
		w.gets("a")
		r.Room.Store(199) // the larger of 100 bytes and 20 % of 1000
		r.Pass(job.Second)
		if _, err := r.Put(r.Context(), []engine.NewJob{newNamed("q", "d")}); job.KindOf(err) != job.Unavailable {
			r.Errorf("put: %v", err)
		}
		if err := r.Ready(); err == nil {
			r.Error("ready below the reserve")
		}
		w.ok("a")
		w.gets("b")
		if v := r.extend(engine.Extension{ID: r.ids["b"], Token: w.held["b"].Lease.Token}); v.Err != nil {
			r.Error(v.Err)
		}
		r.Room.Store(200)
		r.Pass(job.Second)
		r.puts("q", "d")
		if err := r.Ready(); err != nil {
			r.Error(err)
		}
		w.fail("b")
		w.gets("c")
	}, reserve)
}

func TestTheLeasesOfAllHoldersTogetherAreBounded(t *testing.T) {
	few := func(r *rig) { r.Opts.InFlightMax = 2 }
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b", "c", "d", "e")
		held := r.lease(engine.LeaseOptions{Max: 9, For: job.Hour}, "a", "b")
		w := r.anonymous(9)
		w.gets()
		r.settle(held["a"], job.OK)
		w.gets("c") // though it is not w that got room
		r.Restart(0)
		w = r.anonymous(9)
		w.gets("c")
		w.ok("c")
		w.gets("d")
	}, few)
}
