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
		r.put("q", "a", retry(job.Retry{Curve: &job.Curve{Kind: job.CurveList, Delays: []job.Millis{5000, 1, 90_000}}}))
		w := r.anonymous(1)
		w.gets("a")
		for _, delay := range []job.Millis{5000, 1, 90_000} {
			v := w.fail("a")
			if v.State != job.Scheduled || v.Job.ReadyAt != r.Now()+delay {
				r.Fatalf("%+v", v)
			}
			r.Pass(delay - 1)
			w.gets()
			r.Pass(1)
			w.gets("a")
		}
	})
}

func TestAScheduledJobIsGivenOutExactlyAtItsDueTime(t *testing.T) { // I6
	scenario(t, func(r *rig) {
		w := r.anonymous(9)
		r.put("q", "later", due(r.Now()+job.Hour))
		r.put("q", "soon", due(r.Now()+1))
		w.gets()
		r.Pass(1)
		w.gets("soon")
		r.Pass(job.Hour - 2)
		w.gets()
		r.Pass(1)
		w.gets("later")
	})
}

func TestADeadJobKeepsItsErrorsAndLeavesAfterItsRetention(t *testing.T) { // I9, retry.md section 2
	scenario(t, func(r *rig) {
		r.put("q", "a", limited(1, wait(10)))
		w := r.anonymous(1)
		w.gets("a")
		w.fail("a", func(s *engine.Settle) { s.Failure.Message = "first" })
		r.Pass(10)
		w.gets("a")
		v := w.fail("a", func(s *engine.Settle) { s.Failure.Message = "second" })
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
		r.expect("a", job.Dead)
		r.Pass(1)
		r.expect("a", job.None)
		if s := r.stats(); s.Died != 1 || s.Failed != 2 || s.Purged != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func (r *rig) messages(name string, desc bool) (out []string) {
	r.Helper()
	list, err := r.Failures(r.Context(), r.ids[name], 0, desc, 100)
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
		r.put("q", "a", retry(job.Retry{Limit: job.Unlimited(), Curve: wait(0)}))
		w := r.anonymous(1)
		for range 60 {
			w.gets("a")
			w.fail("a")
		}
		list, err := r.Failures(r.Context(), r.ids["a"], 0, false, 1000)
		if err != nil || len(list) != 51 || list[0].Number != 1 || list[1].Number != 11 || list[50].Number != 60 {
			r.Errorf("%d records, %v", len(list), err)
		}
	})
}

func TestAWorkersOwnTimeIsKeptToTheMillisecond(t *testing.T) { // core.md section 6, point 5
	scenario(t, func(r *rig) {
		r.put("q", "a", limited(0, nil))
		w := r.anonymous(1)
		w.gets("a")
		w.fail("a", func(s *engine.Settle) { s.RetryIn = 77 })
		r.Pass(76)
		w.gets()
		r.Pass(1)
		w.gets("a")
		w.fail("a", func(s *engine.Settle) { s.RetryAt, s.RetryAfter = r.Now()+5, 9 }) // too short for a jitter
		r.Pass(8)
		w.gets()
		r.Pass(1)
		w.gets("a")
		w.fail("a")
		r.expect("a", job.Dead)
	})
}

func TestAReleasedJobComesBackUnchargedAtOnceOrAfterItsDelay(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		r.put("q", "a", limited(0, nil))
		w := r.anonymous(1)
		w.gets("a")
		r.settle(w.held["a"], job.Released)
		w.gets("a")
		r.settle(w.held["a"], job.Released, func(s *engine.Settle) { s.Delay = 30 })
		r.Pass(29)
		w.gets()
		r.Pass(1)
		w.gets("a")
		if j := r.job("a"); j.Attempts != 0 || j.Evictions != 2 || j.Deliveries != 3 {
			r.Errorf("%+v", j)
		}
	})
}

func TestAKilledJobIsDeadAndItsWorkerSaidWhy(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		w := r.anonymous(1)
		w.gets("a")
		r.settle(w.held["a"], job.Died)
		if j := r.expect("a", job.Dead); j.Reason != job.Killed || j.Attempts != 1 {
			r.Errorf("%+v", j)
		}
		if got := r.messages("a", false); !slices.Equal(got, []string{"boom"}) {
			r.Error(got)
		}
	})
}

func TestARunTimeoutIsChargedExactlyAtItsTime(t *testing.T) { // core.md section 4, Timeouts
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.RunTimeout = 90 * job.Second })
		r.put("q", "a", limited(1, wait(10)))
		w := r.anonymous(2)
		w.gets("a")
		r.Pass(90*job.Second - 1)
		r.expect("a", job.Leased)
		r.Pass(1)
		if j := r.expect("a", job.Scheduled); j.Attempts != 1 || j.Losses != 0 {
			r.Errorf("%+v", j)
		}
		r.refused(job.Superseded, engine.Settle{ID: r.ids["a"], Token: w.held["a"].Lease.Token})
		r.Pass(10)
		w.gets("a")
		r.Pass(90 * job.Second)
		if j := r.expect("a", job.Dead); j.Reason != job.Exhausted || j.Attempts != 2 {
			r.Errorf("%+v", j)
		}
	})
}

func TestTheRunTimeoutCountsFromTheStartTheHolderTells(t *testing.T) { // core.md section 4, Timeouts
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.RunTimeout, q.StartTimeout = 1000, 300 })
		r.puts("q", "a")
		w := r.anonymous(1)
		w.gets("a")
		r.Pass(299)
		v, err := r.Extend(r.Context(), []engine.Extension{{ID: r.ids["a"], Token: w.held["a"].Lease.Token, Started: true}})
		if err != nil || v[0].Err != nil {
			r.Fatal(v, err)
		}
		r.Pass(999)
		r.expect("a", job.Leased)
		r.Pass(1)
		if j := r.expect("a", job.Scheduled); j.Attempts != 1 {
			r.Errorf("%+v", j)
		}
	})
}

func TestALeaseThatIsNotStartedInTimeIsReturnedUncharged(t *testing.T) { // core.md section 4, start_timeout
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.StartTimeout = 300 })
		r.put("q", "a", limited(0, nil))
		w := r.anonymous(1)
		w.gets("a")
		first := w.held["a"].Lease.Token
		r.Pass(299)
		w.gets()
		r.Pass(1)
		w.gets("a")
		if j := r.job("a"); j.Attempts != 0 || j.Losses != 0 || w.held["a"].Lease.Token == first {
			r.Errorf("%+v", j)
		}
	})
}

func TestAJobThatWasNotStartedInTimeExpiresExactlyThen(t *testing.T) { // core.md section 4, I6, I9
	scenario(t, func(r *rig) {
		expires := func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + 50 }
		r.put("q", "ready", expires)
		r.put("q", "scheduled", expires, due(r.Now()+job.Hour))
		r.Pass(49)
		r.expect("ready", job.Ready)
		r.expect("scheduled", job.Scheduled)
		r.Pass(1)
		for _, name := range []string{"ready", "scheduled"} {
			if j := r.expect(name, job.Dead); j.Reason != job.Expired {
				r.Errorf("%s died of %s", name, j.Reason)
			}
		}
		if s := r.stats(); s.Expired != 2 {
			r.Errorf("%+v", s)
		}
		r.anonymous(9).gets()
	})
}

func TestExpiryDoesNotStopARunButAFailureAfterItIsDead(t *testing.T) { // core.md section 4, Timeouts
	scenario(t, func(r *rig) {
		expires := func(n *engine.NewJob) { n.Job.ExpiresAt = r.Now() + 50 }
		r.put("q", "a", expires)
		r.put("q", "b", expires)
		r.put("q", "c", expires)
		w := r.anonymous(3)
		w.gets("a", "b", "c")
		r.Pass(60)
		w.ok("a")
		if v := w.fail("b"); v.State != job.Dead || v.Job.Reason != job.Expired {
			r.Errorf("%+v", v)
		}
		w.close() // c is given back, too late to start again
		if j := r.expect("c", job.Dead); j.Reason != job.Expired {
			r.Errorf("%+v", j)
		}
	})
}

func TestADoneJobLeavesAtOnceWithoutRetentionAndItsPayloadToo(t *testing.T) { // I8
	scenario(t, func(r *rig) {
		r.put("q", "a", func(n *engine.NewJob) { n.Job.RetainDone = 0 })
		w := r.anonymous(1)
		w.gets("a")
		if v := r.settle(w.held["a"], job.OK); v.State != job.Done || v.Job.ID != r.ids["a"] {
			r.Errorf("%+v", v)
		}
		r.expect("a", job.None)
		if body, err := store.Payload(r.Mem, r.ids["a"]); body != nil || err != nil {
			r.Errorf("its payload is still there: %q, %v", body, err)
		}
	})
}

func TestATerminalJobPastItsRetentionIsNotSeenEvenBeforeItIsTakenAway(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		w := r.anonymous(1)
		w.gets("a")
		w.ok("a")
		r.Clock.Step.Store(int64(2 * job.Hour)) // purging waits for clock_guard after the step
		r.puts("q", "b")
		if _, _, err := r.Get(r.Context(), r.ids["a"]); job.KindOf(err) != job.NotFound {
			r.Errorf("read: %v", err)
		}
		if list, err := enginetest.Page(r.Context(), r.Engine, all, 9); err != nil || len(list) != 1 || string(list[0].Payload) != "b" {
			r.Errorf("listed %v, %v", list, err)
		}
	})
}

func TestAnOperatorRevivesCancelsAndDeletes(t *testing.T) {
	scenario(t, func(r *rig) {
		r.put("q", "a", limited(0, nil))
		w := r.anonymous(1)
		w.gets("a")
		w.fail("a")
		r.operate("a", revive)
		w.gets("a")
		r.operate("a", cancel)
		r.refused(job.Superseded, engine.Settle{ID: r.ids["a"], Token: w.held["a"].Lease.Token})
		r.operate("a", revive)
		w.gets("a")
		if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.ids["a"]); err != nil {
			r.Fatal(err)
		}
		r.expect("a", job.None)
		r.refused(job.NotFound, engine.Settle{ID: r.ids["a"], Token: w.held["a"].Lease.Token})
		if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.ids["a"]); job.KindOf(err) != job.NotFound {
			r.Errorf("deleted twice: %v", err)
		}
		r.puts("q", "b")
		w.gets("b") // its room came back
	})
}

func TestAFailureInsideGraceIsCountedWhoeverTellsIt(t *testing.T) { // core.md section 6, point 1
	scenario(t, func(r *rig) {
		r.put("q", "a", func(n *engine.NewJob) { n.Job.GraceUntil, n.Job.RunTimeout = r.Now()+job.Minute, 10 })
		w := r.named("w", 1)
		w.gets("a")
		w.fail("a")
		r.Pass(6 * job.Second)
		w.gets("a")
		r.Pass(10) // the clock: the run took too long
		if j, n := r.expect("a", job.Scheduled), r.stats().Suppressed; j.Suppressed != 2 || n != 2 || j.Attempts != 0 {
			r.Fatalf("%d in the counters, want 2; %+v", n, j)
		}
	})
}
