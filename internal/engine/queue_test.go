package engine_test

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

// configured gives the engine settings of the queue q.
func configured(edit func(*job.Queue)) func(*rig) {
	return func(r *rig) {
		q := job.NewQueue("q")
		edit(q)
		r.Opts.Queues = []*job.Queue{q}
	}
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
		r.put("q", "a1", grouped("a"))
		r.put("q", "a2", grouped("a"))
		r.anonymous(9).gets("a1")
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
					r.queue("q", func(q *job.Queue) { q.Order = before })
				}
				r.put("q", "a", grouped("a"))
				configured(func(q *job.Queue) { strict(q); q.MaxJobs = 5 })(r)
				r.Restart(0) // starts
				is(before, 5)
				r.operate("a", cancel)
				r.Restart(0)
				is(job.OrderStrict, 5)
			})
		})
	}
}

// What came over the API keeps no server from starting, nor from reading its
// configuration again: inboxes and sessions, empty or not, stay what they are.
func TestTheConfigurationLeavesInboxesAndSessionsWhatTheyAre(t *testing.T) {
	limit := func(q *job.Queue) { q.MaxJobs = 7 }
	all := func(q *job.Queue) {
		toTheEnd(q)
		q.Turns, q.MaxJobs, q.OnFull, q.Paused = false, 7, job.FullDropOldest, true
	}
	makes := map[string]func(*gridRig){
		"session": func(g *gridRig) { g.session("q"); g.tasks("q", "A") },
		"inbox": func(g *gridRig) {
			row := job.DoorSetting{Door: job.DoorInbox, Name: "q", Body: []byte("{}")}
			if err := g.part.Desk.SetDoor(g.Context(), row, func(q *job.Queue) error { failFirst(q); return nil }, func([]byte) string { return "" }, ann); err != nil {
				g.Fatal(err)
			}
		},
	}
	makes["inbox with a message"] = func(g *gridRig) {
		makes["inbox"](g)
		g.put("q", "a1", grouped("a"), func(n *engine.NewJob) { n.Job.Door = job.DoorInbox })
	}
	for _, c := range []struct {
		name      string
		file      func(*job.Queue)
		apiFirst  bool
		what, log string
	}{
		{"max_jobs", limit, true, "session", "session"},
		{"all", all, true, "session", "not_taken=order,concurrency,on_dead,retry,fair_share,on_full"},
		{"all", all, true, "inbox", "not_taken=order,concurrency,on_full"},
		{"max_jobs", limit, true, "inbox", "inbox"},
		{"all", all, true, "inbox with a message", "not_taken=order,concurrency,on_full"},
		{"max_jobs", limit, false, "inbox", "inbox"},
		{"max_jobs", limit, false, "inbox with a message", "inbox"},
	} {
		t.Run(fmt.Sprintf("%s, %s, API first %t", c.name, c.what, c.apiFirst), func(t *testing.T) {
			grid(t, func(g *gridRig) {
				if !c.apiFirst {
					configured(c.file)(g.rig)
					g.Restart(0)
				}
				makes[c.what](g)
				before, _, err := g.Queue(g.Context(), "q")
				if err != nil {
					t.Fatal(err)
				}
				want := *before
				want.MaxJobs, want.Paused = 7, c.name == "all"
				is := func(when string) {
					t.Helper()
					if q, _, err := g.Queue(g.Context(), "q"); err != nil || !reflect.DeepEqual(q, &want) {
						t.Errorf("%s: %+v, %v; want %+v", when, q, err, want)
					}
				}
				reload := g.Opts
				configured(c.file)(g.rig)
				reload.Queues = g.Opts.Queues
				if err := g.Reconfigure(g.Context(), reload, ann); err != nil {
					t.Fatal(err)
				}
				is("reloaded")
				g.Restart(0)
				is("started")
				g.End()
				var lines strings.Builder
				g.Engine = engine.New(g.Mem, g.Clock, dice(9).Uint64, slog.New(slog.NewTextHandler(&lines, nil)), g.Opts)
				if err := g.Start(g.Context()); err != nil {
					t.Fatal(err)
				}
				g.Ended = false
				if s := lines.String(); !strings.Contains(s, "queue=q ") || !strings.Contains(s, c.log) {
					t.Errorf("the log says %q, want %q", s, c.log)
				}
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
		r.queue("q", func(q *job.Queue) { q.HoldUntil = until })
		r.puts("q", "a")
		r.Restart(job.Second)
		w := r.anonymous(1)
		w.gets()
		r.Pass(until - r.Now())
		w.gets("a")
	}, configured(func(*job.Queue) {}))
}

func TestAFailedCommitDoesNotUndoWhatAnOperatorSet(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.Paused = true })
		r.puts("q", "a")
		r.Mem.FailNextCommit(errDisk)
		_, _ = r.Put(r.Context(), []engine.NewJob{newNamed("q", "x")})
		r.recovered()
		r.anonymous(1).gets()
		if q, _, err := r.Queue(r.Context(), "q"); err != nil || !q.Paused {
			r.Errorf("the pause is gone: %v", err)
		}
	}, configured(func(*job.Queue) {}))
}

func TestTheQueuesAreThoseThatHaveJobs(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("y", "b")
		r.puts("x", "a")
		r.queue("settings only", func(q *job.Queue) { q.Paused = true })
		if names, err := r.Queues(r.Context()); err != nil || !slices.Equal(names, []string{"x", "y"}) {
			r.Errorf("%v, %v", names, err)
		}
	})
}

func TestSettingsThatAreRefusedChangeNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		refusal := job.Errorf(job.Invalid, "no")
		if _, err := r.part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Paused = true; return refusal }, job.Actor{}); job.KindOf(err) != job.Invalid {
			r.Error(err)
		}
		_, err := r.part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Order, q.Concurrency = job.OrderStrict, 3; return nil }, job.Actor{})
		if job.KindOf(err) != job.Invalid {
			r.Error(err)
		}
		q, err := r.part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Name, q.MaxJobs = "other", 5; return nil }, job.Actor{})
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
		_, remove := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, job.ID{1})
		for _, err := range []error{operate, failures, get, remove} {
			if job.KindOf(err) != job.NotFound {
				r.Error(err)
			}
		}
	})
}

func TestARefusedOperationChangesNothing(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		if _, err := enginetest.Operate(r.Context(), r.Engine, r.ids["a"], revive); job.KindOf(err) != job.WrongState {
			r.Error(err)
		}
		r.expect("a", job.Ready)
	})
}
