package engine_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

// Unary leases: core.md section 4.

var tenSeconds = engine.LeaseOptions{Max: 9, For: 10 * job.Second}

func TestALeaseTakesUpToItsMaximum(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c")
		r.AddAll("other", "d")
		r.Leased(engine.LeaseOptions{Max: 2, For: job.Minute, Queues: []string{"q"}}, "a", "b")
		r.Leased(engine.LeaseOptions{For: job.Minute}, "c") // no maximum is one
		r.Leased(tenSeconds, "d")
		r.Leased(tenSeconds)
	})
}

func TestALongPollAnswersAsSoonAsThereIsAJob(t *testing.T) {
	scenario(t, func(r *rig) {
		type answer struct {
			list []engine.Delivery
			at   job.Millis
		}
		got, begin := make(chan answer), r.Now()
		go func() {
			list, _ := r.Lease(r.Context(), tenSeconds)
			got <- answer{list, r.Now()}
		}()
		r.Pass(7 * job.Second)
		r.Add("q", "a", due(r.Now()+500))
		if a := <-got; len(a.list) != 1 || a.at != begin+7500 {
			r.Errorf("%d jobs after %s", len(a.list), a.at-begin)
		}
	})
}

func TestALongPollThatEndsAnswersNothingAndLeavesNothingBehind(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		begin := r.Now()
		list, err := r.Lease(ctx, tenSeconds)
		if err != nil || len(list) != 0 || r.Now() != begin+5*job.Second {
			r.Errorf("%d jobs, %v, after %s", len(list), err, r.Now()-begin)
		}
		r.AddAll("q", "a")
		synctest.Wait()
		r.Expect("a", job.Ready)
	})
}

func TestALeaseWhoseCallerIsGoneBeforeItIsHeardLeavesNothingBehind(t *testing.T) { // I1
	scenario(t, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		for range 20 { // whether the engine hears it first is chance
			_, _ = r.Lease(ctx, tenSeconds)
		}
		r.AddAll("q", "a")
		r.Anonymous(1).Gets("a")
	})
}

func TestAUnaryLeaseLapsesExactlyAtItsEnd(t *testing.T) { // I6
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		held := r.Leased(tenSeconds, "a")
		other := r.Anonymous(1)
		r.Pass(10*job.Second - 1)
		other.Gets()
		r.Pass(1)
		other.Gets("a")
		if j := r.Job("a"); j.Losses != 1 || j.Attempts != 0 {
			r.Errorf("%+v", j)
		}
		r.Refused(job.Superseded, engine.Settle{ID: r.IDs["a"], Token: held["a"].Lease.Token, Outcome: job.Retried})
		r.Settled(held["a"], job.OK)
		r.Refused(job.Superseded, engine.Settle{ID: r.IDs["a"], Token: other.Held["a"].Lease.Token})
		if s := r.Stats(); s.LateOK != 1 || s.Lapsed != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestAnExtensionGivesANewLifeFromNow(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		held := r.Leased(tenSeconds, "a")
		extend := engine.Extension{ID: r.IDs["a"], Token: held["a"].Lease.Token, For: 10 * job.Second}
		for range 5 {
			r.Pass(9 * job.Second)
			if v := r.extend(extend); v.Err != nil || v.State != job.Leased {
				r.Fatalf("%+v", v)
			}
		}
		r.Pass(10*job.Second - 1)
		r.Expect("a", job.Leased)
		r.Pass(1)
		r.Expect("a", job.Ready)
		if v := r.extend(extend); job.KindOf(v.Err) != job.Superseded {
			r.Errorf("a lapsed lease: %v", v.Err)
		}
	})
}

func (r *rig) extend(x engine.Extension) engine.Verdict {
	r.Helper()
	list, err := r.Extend(r.Context(), []engine.Extension{x})
	if err != nil || len(list) != 1 {
		r.Fatalf("%d verdicts, %v", len(list), err)
	}
	return list[0]
}

func TestAHeartbeatTellsWhichLeasesAreGone(t *testing.T) { // jobs.md, POST /jobs/extend
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c")
		held := r.Leased(tenSeconds, "a", "b", "c")
		r.Operate("a", cancel)
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["b"]); err != nil {
			r.Fatal(err)
		}
		for name, want := range map[string]job.Kind{"a": job.WrongState, "b": job.NotFound} {
			x := engine.Extension{ID: r.IDs[name], Token: held[name].Lease.Token, For: job.Second}
			if v := r.extend(x); v.Err == nil || job.KindOf(v.Err) != want && job.KindOf(v.Err) != job.Superseded {
				r.Errorf("%s: %v", name, v.Err)
			}
		}
		if v := r.extend(engine.Extension{ID: r.IDs["c"], Token: held["c"].Lease.Token, For: job.Second}); v.Err != nil {
			r.Errorf("c: %v", v.Err)
		}
	})
}

func TestAUnaryLeaseIsSettledByItsTokenOnly(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		held := r.Leased(tenSeconds, "a")
		r.Refused(job.TokenNeeded, engine.Settle{ID: r.IDs["a"]})
		r.Settled(held["a"], job.OK)
		if v := r.Settled(held["a"], job.OK); v.State != job.Done { // the answer was lost, so it asks again
			r.Errorf("%+v", v)
		}
	})
}

func TestAUnaryLeaseSurvivesAPoliteDeploy(t *testing.T) { // core.md section 4: for the re-attach window
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		held := r.Leased(tenSeconds, "a")
		r.Restart(20 * job.Second) // its end passed while nobody could hear a heartbeat
		other := r.Anonymous(1)
		other.Gets()
		r.Pass(29 * job.Second)
		other.Gets()
		x := engine.Extension{ID: r.IDs["a"], Token: held["a"].Lease.Token, For: 10 * job.Second}
		if v := r.extend(x); v.Err != nil {
			r.Fatal(v.Err)
		}
		r.Pass(10*job.Second - 1)
		other.Gets()
		r.Pass(1)
		other.Gets("a")
	})
}

func TestAUnaryLeaseOfAWorkerThatDoesNotComeBackLapsesAfterTheWindow(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		r.Leased(tenSeconds, "a")
		r.Restart(20 * job.Second)
		other := r.Anonymous(1)
		r.Pass(30*job.Second - 1)
		other.Gets()
		r.Pass(1)
		other.Gets("a")
	})
}

func TestAJobThatMustBeAloneStaysAloneWithAUnaryWorker(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		r.Add("q", "poison", retry(job.Retry{LossLimit: job.LimitOf(2)}))
		w := r.Anonymous(1)
		w.Gets("poison")
		w.End()
		mine := engine.LeaseOptions{Worker: "host", Max: 9, For: job.Minute}
		r.AddAll("q", "a")
		held := r.Leased(mine, "poison")
		r.Leased(mine) // not beside it
		r.Settled(held["poison"], job.OK)
		r.Leased(mine, "a")
	})
}

func TestOneWorkerNeverRunsTwoCopies(t *testing.T) { // I3
	scenario(t, func(r *rig) {
		r.Add("q", "a", func(n *engine.NewJob) { n.Job.Copies = 2 })
		mine := engine.LeaseOptions{Worker: "host", For: job.Minute}
		r.Leased(mine, "a")
		r.Leased(mine)
		r.Leased(engine.LeaseOptions{Worker: "other", For: job.Minute}, "a")
	})
}

func TestLongPollsAndStreamsWaitInOneLine(t *testing.T) {
	scenario(t, func(r *rig) {
		got := make(chan int, 2)
		for range 2 {
			go func() { list, _ := r.Lease(r.Context(), tenSeconds); got <- len(list) }()
			synctest.Wait()
		}
		w := r.Anonymous(9)
		r.AddAll("q", "a")
		r.AddAll("q", "b")
		r.AddAll("q", "c")
		if <-got+<-got != 2 {
			r.Error("who waited longest got nothing")
		}
		w.Gets("c")
	})
}

func TestAStopAnswersTheLongPolls(t *testing.T) {
	scenario(t, func(r *rig) {
		done := make(chan error)
		go func() { _, err := r.Lease(r.Context(), tenSeconds); done <- err }()
		synctest.Wait()
		r.End()
		if err := <-done; err == nil {
			r.Error("a poll that was cut short says there is no work")
		}
	})
}

func TestALeaseThatNamesNoLifeHasTheDefaultOne(t *testing.T) { // jobs.md: lease_ms (30 s)
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		r.Leased(engine.LeaseOptions{}, "a")
		r.Pass(30*job.Second - 1)
		r.Expect("a", job.Leased)
		r.Pass(1)
		r.Expect("a", job.Ready)
	})
}

// What one call gets ends behind so many bytes of payloads; a call for which there is
// no room gives back what it was given.
func TestALeaseIsBoundedInBytes(t *testing.T) {
	scenario(t, func(r *rig) {
		for _, name := range []string{"a", "b", "c"} {
			r.Add("q", name, func(n *engine.NewJob) { n.Payload = bytes.Repeat([]byte(name), engine.PageBytes/2) })
		}
		if got := r.LeaseNow(engine.LeaseOptions{Max: 9}); len(got) != 2 {
			t.Fatalf("leased %d", len(got))
		}
		full := errors.New("no room")
		asked := 0
		ctx := engine.WithRoom(t.Context(), func(n int) error { asked += n; return full })
		if got, err := r.Lease(ctx, engine.LeaseOptions{Max: 9}); !errors.Is(err, full) || got != nil || asked != engine.PageBytes/2 {
			t.Fatalf("leased %d, %v, and asked for %d bytes", len(got), err, asked)
		}
		if j := r.Expect("c", job.Ready); j.Attempts != 0 {
			t.Errorf("it was charged %d attempts", j.Attempts)
		}
		s := r.Anonymous(1)
		s.Room = func(int) error { return full }
		if _, err := s.Next(t.Context()); !errors.Is(err, full) {
			t.Errorf("a stream: %v", err)
		}
		s.End()
		r.Expect("c", job.Ready)
	})
}
