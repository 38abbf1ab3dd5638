package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Run and start timeouts: core.md sections 4 and 8.

func TestCopiesThatTimeOutInTheSameMillisecondAreChargedEach(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = job.Minute })
		x, y := r.Anonymous(1), r.Anonymous(1)
		r.Add("q", "a", copies(2), retry(job.Retry{Limit: job.LimitOf(1)}))
		x.Gets("a")
		y.Gets("a")
		r.Pass(job.Minute)
		if j := r.Expect("a", job.Dead); j.Attempts != 2 || j.Failures != 2 || j.Reason != job.Exhausted {
			r.Errorf("%+v", j)
		}
		list, err := r.Failures(r.Context(), r.IDs["a"], 0, false, 9)
		if err != nil || len(list) != 2 || list[0].Holder == list[1].Holder {
			r.Errorf("%+v, %v", list, err)
		}
		if s := r.Stats(); s.Lapsed != 2 || s.Died != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAStepOfTheDateNeitherDelaysNorHastensATimeout(t *testing.T) { // core.md section 8
	for _, step := range []job.Millis{job.Day, -job.Day} {
		scenario(t, func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = 20 * job.Second })
			r.SetQueue("slow", func(q *job.Queue) { q.StartTimeout = 10 * job.Second })
			r.AddAll("q", "run", "unary")
			r.AddAll("slow", "start")
			w := r.Anonymous(1, "q")
			w.Gets("run")
			r.Leased(engine.LeaseOptions{Max: 9, For: job.Minute}, "unary", "start")
			r.Pass(5 * job.Second)
			r.Jump(step)
			r.Pass(5*job.Second - 1)
			r.Expect("start", job.Leased)
			r.Pass(1)
			r.Expect("start", job.Ready)
			r.Pass(10*job.Second - 1)
			r.Expect("run", job.Leased)
			r.Expect("unary", job.Leased)
			r.Pass(1)
			for _, name := range []string{"run", "unary"} {
				if j := r.Job(name); j.State == job.Leased || j.Attempts != 1 {
					r.Errorf("step %s: %+v", step, j)
				}
			}
		})
	}
}

func TestATimeoutDuringTheExtraTimeOfHoldersEndsNoOtherLease(t *testing.T) { // core.md section 8
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = 20 * job.Second })
		r.Add("q", "a", copies(2))
		w := r.Anonymous(1)
		w.Gets("a")
		r.Pass(10 * job.Second)
		held := r.Leased(engine.LeaseOptions{For: 5 * job.Second}, "a")
		r.Jump(job.Day) // holders get 30 s from here
		r.Pass(10 * job.Second)
		if j := r.Expect("a", job.Leased); len(j.Leases) != 1 || j.Leases[0].Token != held["a"].Lease.Token || j.Attempts != 1 {
			r.Errorf("%+v", j)
		}
		r.Settled(held["a"], job.OK)
	})
}

// Over a restart: the steady clock begins anew (docs/adr/0003).

func TestATimeoutGoesOnOverARestartWhateverTheDateDid(t *testing.T) { // core.md section 8
	for _, step := range []job.Millis{0, job.Day, -job.Day} {
		scenario(t, func(r *rig) {
			r.SetQueue("run", func(q *job.Queue) { q.RunTimeout = job.Hour })
			r.SetQueue("start", func(q *job.Queue) { q.StartTimeout = job.Hour })
			r.AddAll("run", "a", "b")
			r.AddAll("start", "c")
			w := engine.StreamOptions{Name: "w", Prefetch: 1, Queues: []string{"run"}}
			r.Opened(w).Gets("a")
			r.Leased(engine.LeaseOptions{Worker: "u", Max: 2, For: job.Day}, "b", "c")
			r.Pass(10 * job.Minute)
			r.Jump(step)
			for range 3 { // however often
				r.Pass(5 * job.Minute)
				r.Restart(job.Minute)
				r.Opened(w).Gets("a")
			}
			r.Pass((60-10-3*6)*job.Minute - 1)
			for _, name := range []string{"a", "b", "c"} {
				if j := r.Job(name); j.State != job.Leased {
					r.Errorf("step %s: %s is %s before its time", step, name, j.State)
				}
			}
			r.Pass(1)
			for name, charged := range map[string]uint32{"a": 1, "b": 1, "c": 0} {
				if j := r.Job(name); j.State == job.Leased || j.Attempts != charged {
					r.Errorf("step %s: %s is %s with %d attempts at its time", step, name, j.State, j.Attempts)
				}
			}
		})
	}
}

func TestATimeoutIsNeverLongerThanItsWholeWhenTheDateWentBackWhileTheServerWasAway(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = job.Hour })
		r.AddAll("q", "a")
		r.Named("w", 1).Gets("a")
		r.End()
		r.Clock.Step.Add(-int64(job.Day))
		r.Begin()
		r.Named("w", 1).Gets("a")
		r.Pass(job.Hour - 1)
		r.Expect("a", job.Leased)
		r.Pass(1)
		if j := r.Job("a"); j.State == job.Leased || j.Attempts != 1 {
			r.Errorf("%+v", j)
		}
	})
}

func TestWhoeverRanOutOfTimeWhileTheServerWasAwayMaySayItIsDone(t *testing.T) { // I4: our own restarts charge nothing
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = job.Hour })
		r.AddAll("q", "a", "b")
		w := r.Named("w", 2)
		w.Gets("a", "b")
		r.Restart(2 * job.Hour)
		w = r.Named("w", 2)
		w.Gets("a", "b")
		r.Pass(30*job.Second - 1)
		w.OK("a")
		r.Expect("a", job.Done)
		r.Expect("b", job.Leased)
		r.Pass(1)
		if j := r.Job("b"); j.State == job.Leased || j.Attempts != 1 {
			r.Errorf("%+v", j)
		}
	})
}

func TestATimeoutShorterThanTheReattachWindowIsNotProlongedBeyondItself(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = 10 * job.Second })
		r.AddAll("q", "a", "b")
		r.Named("w", 1).Gets("a")
		r.Restart(job.Minute)
		w := r.Named("w", 2)
		w.Gets("a", "b")
		r.Pass(10*job.Second - 1)
		r.Expect("a", job.Leased)
		r.Expect("b", job.Leased)
		r.Pass(1)
		for _, name := range []string{"a", "b"} {
			if j := r.Job(name); j.State == job.Leased || j.Attempts != 1 {
				r.Errorf("%+v", j)
			}
		}
	})
}
