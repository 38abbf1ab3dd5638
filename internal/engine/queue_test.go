package engine_test

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

// configured gives the engine settings of the queue q.
func configured(edit func(*job.Queue)) func(*rig) {
	return func(r *rig) { r.Configured(edit) }
}

// startFails wants the next life to be refused with an error of a kind.
func (r *rig) startFails(kind job.Kind) {
	r.Helper()
	r.End()
	e := engine.New(r.Mem, r.Clock, func() uint64 { return 1 }, quiet, r.Opts)
	if err := e.Start(r.Context()); err == nil || job.KindOf(err) != kind {
		r.Errorf("started with %v, want an error of kind %d", err, kind)
		_ = e.Stop(r.Context())
	}
}

func TestConfiguredSettingsHoldFromTheStart(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "a1", grouped("a"))
		r.Add("q", "a2", grouped("a"))
		r.Anonymous(9).Gets("a1")
		if q, d, err := r.Queue(r.Context(), "q"); err != nil || q.Order != job.OrderStrict || d.Grouped != 2 {
			r.Errorf("%+v %+v %v", q, d, err)
		}
		if q, d, err := r.Queue(r.Context(), "unknown"); err != nil || *q != *job.NewQueue("unknown") || d.Open() != 0 {
			r.Errorf("%+v %+v %v", q, d, err)
		}
	}, configured(strict))
}

func TestAConfiguredOrderDoesNotChangeUnderOpenMembers(t *testing.T) { // I7
	for name, before := range map[string]job.Order{"of settings": job.OrderStart, "of a queue nobody has set": job.OrderNone} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				is := func(order job.Order, most int64) {
					t.Helper()
					if q, _, err := r.Queue(r.Context(), "q"); err != nil || q.Order != order || q.MaxJobs != most {
						t.Errorf("%+v, %v; want order %s and max_jobs %d", q, err, order, most)
					}
				}
				if before != job.OrderNone {
					r.SetQueue("q", func(q *job.Queue) { q.Order = before })
				}
				r.Add("q", "a", grouped("a"))
				configured(func(q *job.Queue) { strict(q); q.MaxJobs = 5 })(r)
				r.Restart(0) // starts
				is(before, 5)
				r.Operate("a", cancel)
				r.Restart(0)
				is(job.OrderStrict, 5)
			})
		})
	}
}

func TestAConfiguredStrictQueueMeansConcurrencyOne(t *testing.T) { // core.md section 2
	scenario(t, func(r *rig) {
		configured(func(q *job.Queue) { q.Order, q.Concurrency = job.OrderStrict, 2 })(r)
		r.startFails(job.Invalid)
	})
}

func TestAHoldOutlivesARestartOfAConfiguredQueue(t *testing.T) {
	scenario(t, func(r *rig) {
		until := r.Now() + job.Minute
		r.SetQueue("q", func(q *job.Queue) { q.HoldUntil = until })
		r.AddAll("q", "a")
		r.Restart(job.Second)
		w := r.Anonymous(1)
		w.Gets()
		r.Pass(until - r.Now())
		w.Gets("a")
	}, configured(func(*job.Queue) {}))
}

func TestAFailedCommitDoesNotUndoWhatAnOperatorSet(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.Paused = true })
		r.AddAll("q", "a")
		r.Mem.FailNextCommit(errDisk)
		_, _ = r.Put(r.Context(), []engine.NewJob{newNamed("q", "x")})
		r.Recovered()
		r.Anonymous(1).Gets()
		if q, _, err := r.Queue(r.Context(), "q"); err != nil || !q.Paused {
			r.Errorf("the pause is gone: %v", err)
		}
	}, configured(func(*job.Queue) {}))
}

func TestTheQueuesAreThoseThatHaveJobs(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("y", "b")
		r.AddAll("x", "a")
		r.SetQueue("settings only", func(q *job.Queue) { q.Paused = true })
		if names, err := r.Queues(r.Context()); err != nil || !slices.Equal(names, []string{"x", "y"}) {
			r.Errorf("%v, %v", names, err)
		}
	})
}

func TestSettingsThatAreRefusedChangeNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		refusal := job.Errorf(job.Invalid, "no")
		if _, err := r.Part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Paused = true; return refusal }, job.Actor{}); job.KindOf(err) != job.Invalid {
			r.Error(err)
		}
		_, err := r.Part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Order, q.Concurrency = job.OrderStrict, 3; return nil }, job.Actor{})
		if job.KindOf(err) != job.Invalid {
			r.Error(err)
		}
		q, err := r.Part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Name, q.MaxJobs = "other", 5; return nil }, job.Actor{})
		if err != nil || q.Name != "q" || q.Paused || q.Order != job.OrderNone || q.MaxJobs != 5 {
			r.Errorf("%+v, %v", q, err)
		}
	})
}

func TestWhatDoesNotExistIsNotFound(t *testing.T) {
	scenario(t, func(r *rig) {
		_, operate := enginetest.Operate(r.Context(), r.Engine, job.ID{1}, cancel)
		_, failures := r.Failures(r.Context(), job.ID{1}, 0, false, 9)
		_, _, get := r.Get(r.Context(), job.ID{1})
		_, remove := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, job.ID{1})
		for _, err := range []error{operate, failures, get, remove} {
			if job.KindOf(err) != job.NotFound {
				r.Error(err)
			}
		}
	})
}

func TestARefusedOperationChangesNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.IDs["a"], revive); job.KindOf(err) != job.WrongState {
			r.Error(err)
		}
		r.Expect("a", job.Ready)
	})
}
