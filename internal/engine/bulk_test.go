package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
)

func of(queues ...string) query.Search { return query.Search{Filter: engine.Filter{Queues: queues}} }

// deletes wants a call over many jobs to remove so many.
func (r *rig) deletes(s query.Search, want int64) {
	r.Helper()
	if n, _, err := r.Part.Desk.DoAll(r.Context(), desk.Delete, s); err != nil || n != want {
		r.Fatalf("deleted %d, %v; want %d", n, err, want)
	}
}

func priority(n uint16) desk.Patch {
	return desk.Patch{Edit: func(j *job.Job, _ job.Millis) { j.Priority = n }}
}

func TestACallOverManyJobsTouchesEachOnce(t *testing.T) {
	scenario(t, func(r *rig) {
		many := numbered("j", 1234) // some transactions
		r.AddAll("q", many...)
		r.AddAll("other", "x")
		once := desk.Patch{Edit: func(j *job.Job, _ job.Millis) { j.Priority++ }}
		r.Patches(of("q"), once, 1234, 0)
		for _, name := range many {
			if j := r.Job(name); j.Priority != job.PriorityDefault+1 {
				r.Fatalf("%s was changed to %d", name, j.Priority)
			}
		}
		s := of("q")
		s.Judge = named(func(name string) bool { return strings.HasSuffix(name, "7") })
		r.deletes(s, 123)
		r.deletes(of("none"), 0)
		r.deletes(of("q"), 1111)
		r.Expect("x", job.Ready)
		r.Restart(0) // what was answered is there
		r.deletes(of(), 1)
		if n := r.CountOf(engine.Filter{}); n != 0 {
			r.Errorf("%d jobs are left", n)
		}
	})
}

func TestDeletingInFlightJobsFreesTheirHolders(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c")
		w := r.Opened(engine.StreamOptions{Queues: []string{"q"}, Prefetch: 2})
		w.Gets("a", "b")
		s := of("q")
		s.Filter.States = []job.State{job.Leased}
		r.deletes(s, 2)
		w.Gets("c")
		r.Refused(job.NotFound, engine.Settle{ID: r.IDs["a"], Outcome: job.OK})
	})
}

// Those past their retention are hidden from lists, but not from these calls.
func TestDeletingManyTakesHiddenJobsToo(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Dies("q", boom, []string{"a", "b"})
		r.Clock.Step.Store(int64(2 * job.Day)) // a clock that jumped: purging waits
		r.AddAll("q", "c")
		if n := r.CountOf(engine.Filter{}); n != 1 {
			r.Fatalf("%d jobs are to be seen", n)
		}
		r.deletes(of(), 3)
	}, func(r *rig) { r.Opts.Server.RetainDead = job.Day })
}

func TestFinishedJobsArePassedOverByAPatch(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Dies("q", boom, []string{"a"})
		r.AddAll("q", "b")
		r.Patches(of(), priority(3), 1, 0)
		if _, err := r.Part.Desk.Do(r.Context(), ann, priority(3).Verb(), r.IDs["a"]); job.KindOf(err) != job.WrongState {
			r.Errorf("a dead one: %v", err)
		}
		if _, err := r.Part.Desk.Do(r.Context(), ann, priority(3).Verb(), job.ID{1}); job.KindOf(err) != job.NotFound {
			r.Errorf("one that is not there: %v", err)
		}
	})
}

// What is chosen by its payload is judged outside; what changed meanwhile is
// left alone.
func TestAJobThatChangesWhileItIsJudgedIsLeftAlone(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", numbered("j", 500)...) // as many as are looked at together, so the search goes on
		s := of("q")
		s.Judge = oneByOne(func(payload []byte) (bool, error) {
			switch string(payload) {
			case "j000":
				r.Patches(query.Search{Filter: engine.Filter{IDs: []job.ID{r.IDs["j000"]}}}, desk.Patch{Queue: "other"}, 1, 0)
			case "j499":
				r.AddAll("q", "late") // later than the call
			}
			return true, nil
		})
		r.deletes(s, 499)
		r.Expect("j000", job.Ready)
		r.Expect("late", job.Ready)
	})
}

func TestACallOverManyJobsThatFailsHasDonePart(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", numbered("j", 700)...)
		r.SetQueue("small", func(q *job.Queue) { q.MaxJobs = 600 })
		n, _, err := r.Part.Desk.DoAll(r.Context(), desk.Patch{Queue: "small"}.Verb(), of("q"))
		if job.KindOf(err) != job.OverLimit || n != 600 {
			r.Fatalf("moved %d, %v", n, err)
		}
		if _, d, err := r.Queue(r.Context(), "small"); err != nil || d.Open() != 600 {
			r.Errorf("the small queue has %d, %v", d.Open(), err)
		}
		ctx, cancel := context.WithCancel(r.Context())
		s := of("small")
		s.Judge = oneByOne(func([]byte) (bool, error) { cancel(); return true, nil })
		if n, _, err := r.Part.Desk.DoAll(ctx, desk.Delete, s); err == nil || n != 0 {
			r.Errorf("deleted %d for a caller who left, %v", n, err)
		}
	})
}

func TestResetForgetsJobsRunsAndKeys(t *testing.T) {
	scenario(t, func(r *rig) {
		key := func(n *engine.NewJob) { n.Key = "k" }
		r.Dies("q", boom, numbered("j", 3))
		r.Add("q", "a", key)
		r.StartReplay(job.Replay{Rate: 0.001})
		r.SetQueue("q", func(q *job.Queue) { q.MaxJobs = 5 })
		if n, err := r.Part.Desk.Reset(r.Context()); err != nil || n != 4 {
			r.Fatalf("reset %d, %v", n, err)
		}
		if list, err := r.Part.Dead.Replays(r.Context(), job.ID{}, 9); err != nil || len(list) != 0 {
			r.Errorf("runs are left: %v, %v", list, err)
		}
		before := r.IDs["a"]
		if after := r.Add("q", "a", key); after == before {
			r.Error("the key is still known")
		}
		if q, _, err := r.Queue(r.Context(), "q"); err != nil || q.MaxJobs != 5 {
			r.Errorf("the settings are gone: %+v, %v", q, err)
		}
	}, func(r *rig) { r.Opts.Server.RetainDead = job.Day })
}

func TestAMoveTakesAJobToTheTakersOfItsNewQueue(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.Opened(engine.StreamOptions{Queues: []string{"to"}, Prefetch: 9})
		r.AddAll("from", "a")
		if _, err := r.Part.Desk.Do(r.Context(), ann, desk.Patch{Queue: "to"}.Verb(), r.IDs["a"]); err != nil {
			r.Fatal(err)
		}
		w.Gets("a")
		if n := r.CountOf(engine.Filter{Queues: []string{"from"}}); n != 0 {
			r.Errorf("%d are counted where it was", n)
		}
		r.Settled(w.Held["a"], job.OK)
	})
}

func TestAMoveIsRefusedWhereItWouldBreakSomething(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("strict", func(q *job.Queue) { q.Order = job.OrderStrict })
		r.SetQueue("counted", func(q *job.Queue) { q.Protection.MaxRunning = 1 })
		r.SetQueue("full", func(q *job.Queue) { q.MaxJobs = 1 })
		r.SetQueue("bytes", func(q *job.Queue) { q.MaxBytes = 3 })
		r.SetQueue("turning", func(q *job.Queue) { q.MaxJobs, q.OnFull = 1, job.FullDropOldest })
		r.Add("strict", "member", grouped("g"))
		r.Add("q", "grouped", grouped("g"))
		r.Add("counted", "running")
		r.Add("counted", "next")
		r.Add("full", "there")
		r.Add("turning", "oldest")
		r.Add("q", "plain")
		r.Opened(engine.StreamOptions{Queues: []string{"counted"}, Prefetch: 1}).Gets("running")
		for _, c := range []struct {
			name, to string
			kind     job.Kind
		}{
			{"member", "q", job.WrongState},
			{"grouped", "strict", job.WrongState},
			{"running", "q", job.WrongState},
			{"plain", "full", job.OverLimit},
			{"plain", "bytes", job.OverLimit},
			{"plain", "one-too-many", job.OverLimit},
		} {
			before := fmt.Sprintf("%+v", r.Job(c.name))
			_, err := r.Part.Desk.Do(r.Context(), ann, desk.Patch{Queue: c.to}.Verb(), r.IDs[c.name])
			if job.KindOf(err) != c.kind {
				r.Errorf("%s to %s: %v", c.name, c.to, err)
			}
			if after := fmt.Sprintf("%+v", r.Job(c.name)); after != before {
				r.Errorf("%s changed: %s", c.name, after)
			}
		}
		r.Patches(of("strict"), desk.Patch{Queue: "q"}, 0, 1)
		r.Patches(query.Search{Filter: engine.Filter{IDs: []job.ID{r.IDs["member"]}}}, priority(1), 1, 0)
		if _, err := r.Part.Desk.Do(r.Context(), ann, desk.Patch{Queue: "turning"}.Verb(), r.IDs["plain"]); err != nil {
			r.Fatal(err)
		}
		if j := r.Expect("oldest", job.Dead); j.Reason != job.Evicted {
			r.Errorf("it died as %s", j.Reason)
		}
		if _, err := r.Part.Desk.Do(r.Context(), ann, desk.Patch{Queue: "q"}.Verb(), r.IDs["next"]); err != nil {
			r.Errorf("what waits in a counted queue: %v", err)
		}
	}, func(r *rig) { r.Opts.QueuesMax = 6; r.Opts.Server.RetainDead = job.Day })
}

// A group that is left behind, or joined, keeps its hold and loses no member.
func TestAMoveLeavesNoGateBehind(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.Concurrency = 1 })
		r.SetQueue("to", func(q *job.Queue) { q.Concurrency = 1 })
		r.Add("q", "a", grouped("g"))
		r.Add("q", "b", grouped("g"))
		r.Add("to", "c", grouped("g"))
		w := r.Opened(engine.StreamOptions{Queues: []string{"q", "to"}, Prefetch: 9})
		w.Gets("a", "c")
		if _, err := r.Part.Desk.Do(r.Context(), ann, desk.Patch{Queue: "to"}.Verb(), r.IDs["b"]); err != nil {
			r.Fatal(err)
		}
		w.Gets() // the group runs one already
		r.Settled(w.Held["c"], job.OK)
		w.Gets("b")
	})
}

// A retry that is brought forward does not get past a pause of its fingerprint.
func TestAPatchDoesNotGetPastAPause(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		w := r.Opened(engine.StreamOptions{Queues: []string{"q"}, Prefetch: 1})
		w.Gets("a")
		r.Settled(w.Held["a"], job.Retried, func(s *engine.Settle) { s.Failure, s.RetryIn = boom, job.Hour })
		yes := true
		if _, err := r.Part.Dead.Mark(r.Context(), r.Job("a").Print, deadset.MarkEdit{Paused: &yes}, ann); err != nil {
			r.Fatal(err)
		}
		if _, err := r.Part.Desk.Do(r.Context(), ann, desk.Patch{Edit: func(j *job.Job, now job.Millis) { j.ReadyAt = now }}.Verb(), r.IDs["a"]); err != nil {
			r.Fatal(err)
		}
		w.Gets()
		if j := r.Job("a"); j.Park == "" {
			r.Errorf("it is not held: %+v", j)
		}
	})
}
