package engine_test

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/store"
)

func limited(n uint32, c *job.Curve) func(*engine.NewJob) {
	return retry(job.Retry{Limit: job.LimitOf(n), Curve: c})
}

func TestAFailedJobIsGivenOutAgainExactlyWhenItsWaitIsOver(t *testing.T) { // I6
	scenario(t, func(r *rig) {
		r.Add("q", "a", retry(job.Retry{Curve: &job.Curve{Kind: job.CurveList, Delays: []job.Millis{5000, 1, 90_000}}}))
		w := r.Anonymous(1)
		w.Gets("a")
		for _, delay := range []job.Millis{5000, 1, 90_000} {
			v := w.Fails("a")
			if v.State != job.Scheduled || v.Job.ReadyAt != r.Now()+delay {
				r.Fatalf("%+v", v)
			}
			r.Pass(delay - 1)
			w.Gets()
			r.Pass(1)
			w.Gets("a")
		}
	})
}

func TestAScheduledJobIsGivenOutExactlyAtItsDueTime(t *testing.T) { // I6
	scenario(t, func(r *rig) {
		w := r.Anonymous(9)
		r.Add("q", "later", due(r.Now()+job.Hour))
		r.Add("q", "soon", due(r.Now()+1))
		w.Gets()
		r.Pass(1)
		w.Gets("soon")
		r.Pass(job.Hour - 2)
		w.Gets()
		r.Pass(1)
		w.Gets("later")
	})
}

func TestADeadJobKeepsItsErrorsAndLeavesAfterItsRetention(t *testing.T) { // I9, retry.md section 2
	scenario(t, func(r *rig) {
		r.Add("q", "a", limited(1, wait(10)))
		w := r.Anonymous(1)
		w.Gets("a")
		w.Fails("a", func(s *engine.Settle) { s.Failure.Message = "first" })
		r.Pass(10)
		w.Gets("a")
		v := w.Fails("a", func(s *engine.Settle) { s.Failure.Message = "second" })
		if v.State != job.Dead || v.Job.Reason != job.Exhausted {
			r.Fatalf("%+v", v)
		}
		if got := r.messages("a", false); !slices.Equal(got, []string{"first", "second"}) {
			r.Errorf("its errors: %v", got)
		}
		if got := r.messages("a", true); !slices.Equal(got, []string{"second", "first"}) {
			r.Errorf("latest first: %v", got)
		}
		r.Pass(7*job.Day - 1)
		r.Expect("a", job.Dead)
		r.Pass(1)
		r.Expect("a", job.None)
		if s := r.Stats(); s.Died != 1 || s.Failed != 2 || s.Purged != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func (r *rig) messages(name string, desc bool) (out []string) {
	r.Helper()
	list, err := r.Failures(r.Context(), r.IDs[name], 0, desc, 100)
	if err != nil {
		r.Fatal(err)
	}
	for _, f := range list {
		out = append(out, f.Message)
	}
	return out
}

func TestTheFirstAndTheLastFiftyErrorsAreKept(t *testing.T) { // retry.md section 2
	scenario(t, func(r *rig) {
		r.Add("q", "a", retry(job.Retry{Limit: job.Unlimited(), Curve: wait(0)}))
		w := r.Anonymous(1)
		for range 60 {
			w.Gets("a")
			w.Fails("a")
		}
		list, err := r.Failures(r.Context(), r.IDs["a"], 0, false, 1000)
		if err != nil || len(list) != 51 || list[0].Number != 1 || list[1].Number != 11 || list[50].Number != 60 {
			r.Errorf("%d records, %v", len(list), err)
		}
	})
}

func TestAWorkersOwnTimeIsKeptToTheMillisecond(t *testing.T) { // core.md section 6, point 5
	scenario(t, func(r *rig) {
		r.Add("q", "a", limited(0, nil))
		w := r.Anonymous(1)
		w.Gets("a")
		w.Fails("a", func(s *engine.Settle) { s.RetryIn = 77 })
		r.Pass(76)
		w.Gets()
		r.Pass(1)
		w.Gets("a")
		w.Fails("a", func(s *engine.Settle) { s.RetryAt, s.RetryAfter = r.Now()+5, 9 }) // too short for a jitter
		r.Pass(8)
		w.Gets()
		r.Pass(1)
		w.Gets("a")
		w.Fails("a")
		r.Expect("a", job.Dead)
	})
}

func TestAReleasedJobComesBackUnchargedAtOnceOrAfterItsDelay(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		r.Add("q", "a", limited(0, nil))
		w := r.Anonymous(1)
		w.Gets("a")
		r.Settled(w.Held["a"], job.Released)
		w.Gets("a")
		r.Settled(w.Held["a"], job.Released, func(s *engine.Settle) { s.Delay = 30 })
		r.Pass(29)
		w.Gets()
		r.Pass(1)
		w.Gets("a")
		if j := r.Job("a"); j.Attempts != 0 || j.Evictions != 2 || j.Deliveries != 3 {
			r.Errorf("%+v", j)
		}
	})
}

func TestAKilledJobIsDeadAndItsWorkerSaidWhy(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		w := r.Anonymous(1)
		w.Gets("a")
		r.Settled(w.Held["a"], job.Died)
		if j := r.Expect("a", job.Dead); j.Reason != job.Killed || j.Attempts != 1 {
			r.Errorf("%+v", j)
		}
		if got := r.messages("a", false); !slices.Equal(got, []string{"boom"}) {
			r.Error(got)
		}
	})
}

func TestARunTimeoutIsChargedExactlyAtItsTime(t *testing.T) { // core.md section 4, Timeouts
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = 90 * job.Second })
		r.Add("q", "a", limited(1, wait(10)))
		w := r.Anonymous(2)
		w.Gets("a")
		r.Pass(90*job.Second - 1)
		r.Expect("a", job.Leased)
		r.Pass(1)
		if j := r.Expect("a", job.Scheduled); j.Attempts != 1 || j.Losses != 0 {
			r.Errorf("%+v", j)
		}
		r.Refused(job.Superseded, engine.Settle{ID: r.IDs["a"], Token: w.Held["a"].Lease.Token})
		r.Pass(10)
		w.Gets("a")
		r.Pass(90 * job.Second)
		if j := r.Expect("a", job.Dead); j.Reason != job.Exhausted || j.Attempts != 2 {
			r.Errorf("%+v", j)
		}
	})
}

func TestTheRunTimeoutCountsFromTheStartTheHolderTells(t *testing.T) { // core.md section 4, Timeouts
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.RunTimeout, q.StartTimeout = 1000, 300 })
		r.AddAll("q", "a")
		w := r.Anonymous(1)
		w.Gets("a")
		r.Pass(299)
		v, err := r.Extend(r.Context(), []engine.Extension{{ID: r.IDs["a"], Token: w.Held["a"].Lease.Token, Started: true}})
		if err != nil || v[0].Err != nil {
			r.Fatal(v, err)
		}
		r.Pass(999)
		r.Expect("a", job.Leased)
		r.Pass(1)
		if j := r.Expect("a", job.Scheduled); j.Attempts != 1 {
			r.Errorf("%+v", j)
		}
	})
}

func TestALeaseThatIsNotStartedInTimeIsReturnedUncharged(t *testing.T) { // core.md section 4, start_timeout
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.StartTimeout = 300 })
		r.Add("q", "a", limited(0, nil))
		w := r.Anonymous(1)
		w.Gets("a")
		first := w.Held["a"].Lease.Token
		r.Pass(299)
		w.Gets()
		r.Pass(1)
		w.Gets("a")
		if j := r.Job("a"); j.Attempts != 0 || j.Losses != 0 || w.Held["a"].Lease.Token == first {
			r.Errorf("%+v", j)
		}
	})
}

func TestAJobThatWasNotStartedInTimeExpiresExactlyThen(t *testing.T) { // core.md section 4, I6, I9
	scenario(t, func(r *rig) {
		expires := func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + 50 }
		r.Add("q", "ready", expires)
		r.Add("q", "scheduled", expires, due(r.Now()+job.Hour))
		r.Pass(49)
		r.Expect("ready", job.Ready)
		r.Expect("scheduled", job.Scheduled)
		r.Pass(1)
		for _, name := range []string{"ready", "scheduled"} {
			if j := r.Expect(name, job.Dead); j.Reason != job.Expired {
				r.Errorf("%s died of %s", name, j.Reason)
			}
		}
		if s := r.Stats(); s.Expired != 2 {
			r.Errorf("%+v", s)
		}
		r.Anonymous(9).Gets()
	})
}

func TestExpiryDoesNotStopARunButAFailureAfterItIsDead(t *testing.T) { // core.md section 4, Timeouts
	scenario(t, func(r *rig) {
		expires := func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + 50 }
		r.Add("q", "a", expires)
		r.Add("q", "b", expires)
		r.Add("q", "c", expires)
		w := r.Anonymous(3)
		w.Gets("a", "b", "c")
		r.Pass(60)
		w.OK("a")
		if v := w.Fails("b"); v.State != job.Dead || v.Job.Reason != job.Expired {
			r.Errorf("%+v", v)
		}
		w.End() // c is given back, too late to start again
		if j := r.Expect("c", job.Dead); j.Reason != job.Expired {
			r.Errorf("%+v", j)
		}
	})
}

func TestADoneJobLeavesAtOnceWithoutRetentionAndItsPayloadToo(t *testing.T) { // I8
	scenario(t, func(r *rig) {
		r.Add("q", "a", func(n *engine.NewJob) { n.Job.RetainDone = 0 })
		w := r.Anonymous(1)
		w.Gets("a")
		if v := r.Settled(w.Held["a"], job.OK); v.State != job.Done || v.Job.ID != r.IDs["a"] {
			r.Errorf("%+v", v)
		}
		r.Expect("a", job.None)
		if body, err := store.Payload(r.Mem, r.IDs["a"]); body != nil || err != nil {
			r.Errorf("its payload is still there: %q, %v", body, err)
		}
	})
}

func TestATerminalJobPastItsRetentionIsNotSeenEvenBeforeItIsTakenAway(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		w := r.Anonymous(1)
		w.Gets("a")
		w.OK("a")
		r.Clock.Step.Store(int64(2 * job.Hour)) // purging waits for clock_guard after the step
		r.AddAll("q", "b")
		if _, _, err := r.Get(r.Context(), r.IDs["a"]); job.KindOf(err) != job.NotFound {
			r.Errorf("read: %v", err)
		}
		if list, err := enginetest.Page(r.Context(), r.Engine, all, 9); err != nil || len(list) != 1 || string(list[0].Payload) != "b" {
			r.Errorf("listed %v, %v", list, err)
		}
	})
}

func TestAnOperatorRevivesCancelsAndDeletes(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "a", limited(0, nil))
		w := r.Anonymous(1)
		w.Gets("a")
		w.Fails("a")
		r.Operate("a", revive)
		w.Gets("a")
		r.Operate("a", cancel)
		r.Refused(job.Superseded, engine.Settle{ID: r.IDs["a"], Token: w.Held["a"].Lease.Token})
		r.Operate("a", revive)
		w.Gets("a")
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a"]); err != nil {
			r.Fatal(err)
		}
		r.Expect("a", job.None)
		r.Refused(job.NotFound, engine.Settle{ID: r.IDs["a"], Token: w.Held["a"].Lease.Token})
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["a"]); job.KindOf(err) != job.NotFound {
			r.Errorf("deleted twice: %v", err)
		}
		r.AddAll("q", "b")
		w.Gets("b") // its room came back
	})
}

func TestAFailureInsideGraceIsCountedWhoeverTellsIt(t *testing.T) { // core.md section 6, point 1
	scenario(t, func(r *rig) {
		r.Add("q", "a", func(n *engine.NewJob) { n.Job.GraceUntil, n.Job.RunTimeout = r.Now()+job.Minute, 10 })
		w := r.Named("w", 1)
		w.Gets("a")
		w.Fails("a")
		r.Pass(6 * job.Second)
		w.Gets("a")
		r.Pass(10) // the clock: the run took too long
		if j, n := r.Expect("a", job.Scheduled), r.Stats().Suppressed; j.Suppressed != 2 || n != 2 || j.Attempts != 0 {
			r.Fatalf("%d in the counters, want 2; %+v", n, j)
		}
	})
}
