package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Time: core.md section 8.

func TestAForwardStepIsCountedAndDelaysExpiryAndPurging(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "expires", func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + job.Hour }, due(r.Now()+job.Day))
		r.Add("q", "dead", func(n *engine.NewJob) { n.Job.RetainDead = job.Hour })
		w := r.Anonymous(1)
		w.Gets("dead")
		r.Settled(w.Held["dead"], job.Died)
		w.End()
		r.Jump(2 * job.Hour)
		r.Expect("expires", job.Scheduled)
		if s := r.Stats(); s.ClockSteps != 1 || s.Expired != 0 || s.Purged != 0 {
			r.Errorf("%+v", s)
		}
		r.Pass(job.Minute - 1)
		r.Expect("expires", job.Scheduled)
		r.Pass(1)
		r.Expect("expires", job.Dead)
		if s := r.Stats(); s.ClockSteps != 1 || s.Expired != 1 || s.Purged != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAStepIsWhatIsMoreThanFiveSeconds(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Jump(5 * job.Second)
		if s := r.Stats(); s.ClockSteps != 0 {
			r.Errorf("%+v", s)
		}
		r.Jump(5*job.Second + 1)
		if s := r.Stats(); s.ClockSteps != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestADateThatIsSetForwardIsNoticedWithinTheHour(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "a", due(r.Now()+10*job.Hour))
		w := r.Anonymous(1)
		r.Pass(0)
		r.Clock.Step.Add(int64(10 * job.Hour)) // and nobody asks for anything
		r.Pass(job.Hour)
		w.Gets("a")
	})
}

func TestAForwardStepMakesDatesDueAtOnce(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "a", due(r.Now()+job.Hour))
		w := r.Anonymous(1)
		w.Gets()
		r.Jump(job.Hour)
		w.Gets("a")
	})
}

func TestAForwardStepRestartsTheTimersOfHolders(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		w := r.Named("host", 1)
		w.Gets("a")
		w.End()
		r.Leased(tenSeconds, "b")
		r.Jump(job.Day)
		r.Pass(29 * job.Second)
		r.Expect("b", job.Leased)
		r.Named("host", 1).Gets("a")
	})
}

func TestDurationsRunOnThroughAStepOfTheDate(t *testing.T) {
	for _, step := range []job.Millis{3 * job.Second, -3 * job.Hour} { // too small to be a step, and backward
		scenario(t, func(r *rig) {
			r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = job.Minute })
			r.AddAll("q", "run", "unary")
			w := r.Anonymous(1)
			w.Gets("run")
			r.Leased(tenSeconds, "unary")
			r.Jump(step)
			r.Pass(10*job.Second - 1)
			r.Expect("unary", job.Leased)
			r.Pass(1)
			r.Expect("unary", job.Ready)
			r.Pass(50*job.Second - 1)
			r.Expect("run", job.Leased)
			r.Pass(1)
			if j := r.Job("run"); j.State == job.Leased || j.Attempts != 1 {
				r.Errorf("%+v", j)
			}
			if s := r.Stats(); s.ClockSteps != 0 {
				r.Errorf("%+v", s)
			}
		})
	}
}

func TestABackwardStepOnlyWaits(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "soon", due(r.Now()+10*job.Second))
		w := r.Anonymous(9)
		r.Jump(-job.Hour)
		r.AddAll("q", "now") // its time is the engine's, which did not go back
		w.Gets("now")
		r.Pass(job.Hour + 10*job.Second - 1)
		w.Gets()
		r.Pass(1)
		w.Gets("soon")
		if s := r.Stats(); s.ClockSteps != 0 || s.Lapsed != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestTheEngineSleepsUntilTheClockIsBackWhereItWas(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "soon", due(r.Now()+10))
		w := r.Anonymous(9)
		r.Jump(-job.Minute)
		before := r.Stats().Batches
		r.Pass(job.Minute + 9)
		w.Gets()
		r.Pass(1)
		w.Gets("soon")
		if n := r.Stats().Batches - before; n > 10 {
			r.Errorf("it looked %d times", n)
		}
	})
}

func TestEngineTimeNeverGoesBack(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		before := r.Now()
		r.Jump(-job.Hour)
		r.AddAll("q", "b")
		if a, b := r.Job("a"), r.Job("b"); b.Created < a.Created || !a.ID.Before(b.ID) {
			r.Errorf("a later job is older")
		}
		if r.Now() < before {
			r.Errorf("the engine's date went back by %s", before-r.Now())
		}
	})
}

func TestAProcessThatStoodStillGivesHoldersTimeToReport(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		held := r.Leased(tenSeconds, "a")
		r.Pass(5 * job.Second)
		r.Clock.Stood.Store(int64(job.Hour)) // suspended: both clocks ran on
		r.Stats()
		r.Pass(29 * job.Second)
		r.Expect("a", job.Leased)
		if v := r.extend(engine.Extension{ID: r.IDs["a"], Token: held["a"].Lease.Token, For: job.Minute}); v.Err != nil {
			r.Error(v.Err)
		}
		r.Pass(30 * job.Second)
		r.Expect("a", job.Leased)
		if s := r.Stats(); s.ClockSteps != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestLongWaitsWithoutAnythingToDoAreNoStep(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "a", due(r.Now()+90*job.Day))
		r.Pass(90*job.Day - 1)
		r.Expect("a", job.Scheduled)
		r.Pass(1)
		r.Expect("a", job.Ready)
		if s := r.Stats(); s.ClockSteps != 0 {
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
		r.PutAgain(list...)
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
		r.Add("q", "a", func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + 10*job.Second })
		w := r.Named("w", 1)
		w.Gets("a")
		w.End()
		v := r.Anonymous(1)
		r.Pass(30 * job.Second)
		v.Gets()
		if j := r.Expect("a", job.Dead); j.Reason != job.Expired {
			r.Errorf("%+v", j)
		}
	})
}
