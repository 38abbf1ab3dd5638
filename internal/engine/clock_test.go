package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Time: core.md section 8.

// jump lets the date step, and the engine notice it.
func (r *rig) jump(span job.Millis) {
	r.Helper()
	r.Pass(0)
	r.Clock.Step.Add(int64(span))
	r.stats() // any command makes it look
	r.Pass(0)
}

func TestAForwardStepIsCountedAndDelaysExpiryAndPurging(t *testing.T) {
	scenario(t, func(r *rig) {
		r.put("q", "expires", func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + job.Hour }, due(r.Now()+job.Day))
		r.put("q", "dead", func(n *engine.NewJob) { n.Job.RetainDead = job.Hour })
		w := r.anonymous(1)
		w.gets("dead")
		r.settle(w.held["dead"], job.Died)
		w.close()
		r.jump(2 * job.Hour)
		r.expect("expires", job.Scheduled)
		if s := r.stats(); s.ClockSteps != 1 || s.Expired != 0 || s.Purged != 0 {
			r.Errorf("%+v", s)
		}
		r.Pass(job.Minute - 1)
		r.expect("expires", job.Scheduled)
		r.Pass(1)
		r.expect("expires", job.Dead)
		if s := r.stats(); s.ClockSteps != 1 || s.Expired != 1 || s.Purged != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAStepIsWhatIsMoreThanFiveSeconds(t *testing.T) {
	scenario(t, func(r *rig) {
		r.jump(5 * job.Second)
		if s := r.stats(); s.ClockSteps != 0 {
			r.Errorf("%+v", s)
		}
		r.jump(5*job.Second + 1)
		if s := r.stats(); s.ClockSteps != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestADateThatIsSetForwardIsNoticedWithinTheHour(t *testing.T) {
	scenario(t, func(r *rig) {
		r.put("q", "a", due(r.Now()+10*job.Hour))
		w := r.anonymous(1)
		r.Pass(0)
		r.Clock.Step.Add(int64(10 * job.Hour)) // and nobody asks for anything
		r.Pass(job.Hour)
		w.gets("a")
	})
}

func TestAForwardStepMakesDatesDueAtOnce(t *testing.T) {
	scenario(t, func(r *rig) {
		r.put("q", "a", due(r.Now()+job.Hour))
		w := r.anonymous(1)
		w.gets()
		r.jump(job.Hour)
		w.gets("a")
	})
}

func TestAForwardStepRestartsTheTimersOfHolders(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b")
		w := r.named("host", 1)
		w.gets("a")
		w.close()
		r.lease(tenSeconds, "b")
		r.jump(job.Day)
		r.Pass(29 * job.Second)
		r.expect("b", job.Leased)
		r.named("host", 1).gets("a")
	})
}

func TestDurationsRunOnThroughAStepOfTheDate(t *testing.T) {
	for _, step := range []job.Millis{3 * job.Second, -3 * job.Hour} { // too small to be a step, and backward
		scenario(t, func(r *rig) {
			r.queue("q", func(q *job.Queue) { q.RunTimeout = job.Minute })
			r.puts("q", "run", "unary")
			w := r.anonymous(1)
			w.gets("run")
			r.lease(tenSeconds, "unary")
			r.jump(step)
			r.Pass(10*job.Second - 1)
			r.expect("unary", job.Leased)
			r.Pass(1)
			r.expect("unary", job.Ready)
			r.Pass(50*job.Second - 1)
			r.expect("run", job.Leased)
			r.Pass(1)
			if j := r.job("run"); j.State == job.Leased || j.Attempts != 1 {
				r.Errorf("%+v", j)
			}
			if s := r.stats(); s.ClockSteps != 0 {
				r.Errorf("%+v", s)
			}
		})
	}
}

func TestABackwardStepOnlyWaits(t *testing.T) {
	scenario(t, func(r *rig) {
		r.put("q", "soon", due(r.Now()+10*job.Second))
		w := r.anonymous(9)
		r.jump(-job.Hour)
		r.puts("q", "now") // its time is the engine's, which did not go back
		w.gets("now")
		r.Pass(job.Hour + 10*job.Second - 1)
		w.gets()
		r.Pass(1)
		w.gets("soon")
		if s := r.stats(); s.ClockSteps != 0 || s.Lapsed != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestTheEngineSleepsUntilTheClockIsBackWhereItWas(t *testing.T) {
	scenario(t, func(r *rig) {
		r.put("q", "soon", due(r.Now()+10))
		w := r.anonymous(9)
		r.jump(-job.Minute)
		before := r.stats().Batches
		r.Pass(job.Minute + 9)
		w.gets()
		r.Pass(1)
		w.gets("soon")
		if n := r.stats().Batches - before; n > 10 {
			r.Errorf("it looked %d times", n)
		}
	})
}

func TestEngineTimeNeverGoesBack(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		before := r.Now()
		r.jump(-job.Hour)
		r.puts("q", "b")
		if a, b := r.job("a"), r.job("b"); b.Created < a.Created || !a.ID.Before(b.ID) {
			r.Errorf("a later job is older")
		}
		if r.Now() < before {
			r.Errorf("the engine's date went back by %s", before-r.Now())
		}
	})
}

func TestAProcessThatStoodStillGivesHoldersTimeToReport(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		held := r.lease(tenSeconds, "a")
		r.Pass(5 * job.Second)
		r.Clock.Stood.Store(int64(job.Hour)) // suspended: both clocks ran on
		r.stats()
		r.Pass(29 * job.Second)
		r.expect("a", job.Leased)
		if v := r.extend(engine.Extension{ID: r.ids["a"], Token: held["a"].Lease.Token, For: job.Minute}); v.Err != nil {
			r.Error(v.Err)
		}
		r.Pass(30 * job.Second)
		r.expect("a", job.Leased)
		if s := r.stats(); s.ClockSteps != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestLongWaitsWithoutAnythingToDoAreNoStep(t *testing.T) {
	scenario(t, func(r *rig) {
		r.put("q", "a", due(r.Now()+90*job.Day))
		r.Pass(90*job.Day - 1)
		r.expect("a", job.Scheduled)
		r.Pass(1)
		r.expect("a", job.Ready)
		if s := r.stats(); s.ClockSteps != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestTheClockWorksOffMoreThanOneTransactionHolds(t *testing.T) { // a limit on every loop
	scenario(t, func(r *rig) {
		var list []engine.NewJob
		at := r.Now() + job.Minute
		for range 2500 {
			list = append(list, newNamed("q", "x", due(at)))
		}
		r.putAgain(list...)
		r.Pass(job.Minute - 1)
		if n := r.inState(job.Scheduled); n != 2500 {
			r.Errorf("%d wait", n)
		}
		r.Pass(1)
		if n := r.inState(job.Ready); n != 2500 {
			r.Errorf("%d are ready", n)
		}
	}, func(r *rig) { r.Twice = false })
}

func TestWhatALapsedHolderGivesBackAfterItsExpiryIsNotGivenOut(t *testing.T) { // core.md section 4, expires_at
	scenario(t, func(r *rig) {
		r.put("q", "a", func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + 10*job.Second })
		w := r.named("w", 1)
		w.gets("a")
		w.close()
		v := r.anonymous(1)
		r.Pass(30 * job.Second)
		v.gets()
		if j := r.expect("a", job.Dead); j.Reason != job.Expired {
			r.Errorf("%+v", j)
		}
	})
}
