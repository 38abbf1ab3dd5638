package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Run and start timeouts: core.md sections 4 and 8.

func TestCopiesThatTimeOutInTheSameMillisecondAreChargedEach(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.RunTimeout = job.Minute })
		x, y := r.anonymous(1), r.anonymous(1)
		r.put("q", "a", copies(2), retry(job.Retry{Limit: job.LimitOf(1)}))
		x.gets("a")
		y.gets("a")
		r.pass(job.Minute)
		if j := r.expect("a", job.Dead); j.Attempts != 2 || j.Failures != 2 || j.Reason != job.Exhausted {
			r.Errorf("%+v", j)
		}
		list, err := r.Failures(r.Context(), r.ids["a"], 0, false, 9)
		if err != nil || len(list) != 2 || list[0].Holder == list[1].Holder {
			r.Errorf("%+v, %v", list, err)
		}
		if s := r.stats(); s.Lapsed != 2 || s.Died != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAStepOfTheDateNeitherDelaysNorHastensATimeout(t *testing.T) { // core.md section 8
	for _, step := range []job.Millis{job.Day, -job.Day} {
		scenario(t, func(r *rig) {
			r.queue("q", func(q *job.Queue) { q.RunTimeout = 20 * job.Second })
			r.queue("slow", func(q *job.Queue) { q.StartTimeout = 10 * job.Second })
			r.puts("q", "run", "unary")
			r.puts("slow", "start")
			w := r.anonymous(1, "q")
			w.gets("run")
			r.lease(engine.LeaseOptions{Max: 9, For: job.Minute}, "unary", "start")
			r.pass(5 * job.Second)
			r.jump(step)
			r.pass(5*job.Second - 1)
			r.expect("start", job.Leased)
			r.pass(1)
			r.expect("start", job.Ready)
			r.pass(10*job.Second - 1)
			r.expect("run", job.Leased)
			r.expect("unary", job.Leased)
			r.pass(1)
			for _, name := range []string{"run", "unary"} {
				if j := r.job(name); j.State == job.Leased || j.Attempts != 1 {
					r.Errorf("step %s: %+v", step, j)
				}
			}
		})
	}
}

func TestATimeoutDuringTheExtraTimeOfHoldersEndsNoOtherLease(t *testing.T) { // core.md section 8
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.RunTimeout = 20 * job.Second })
		r.put("q", "a", copies(2))
		w := r.anonymous(1)
		w.gets("a")
		r.pass(10 * job.Second)
		held := r.lease(engine.LeaseOptions{For: 5 * job.Second}, "a")
		r.jump(job.Day) // holders get 30 s from here
		r.pass(10 * job.Second)
		if j := r.expect("a", job.Leased); len(j.Leases) != 1 || j.Leases[0].Token != held["a"].Lease.Token || j.Attempts != 1 {
			r.Errorf("%+v", j)
		}
		r.settle(held["a"], job.OK)
	})
}
