package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

func TestAStreamHoldsNoMoreThanItsPrefetch(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c", "d", "e", "f")
		w := r.Anonymous(2)
		w.Gets("a", "b")
		w.OK("a")
		w.Gets("c")
		w.Fails("b")
		w.Gets("d")
		r.Settled(w.Held["c"], job.Died)
		w.Gets("e")
		r.Settled(w.Held["d"], job.Released)
		w.Gets("d") // it kept its place
		w.Gets()
	})
}

func TestAJobThatSomebodyElseEndsGivesTheStreamItsRoomBack(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.RunTimeout = job.Second })
		r.AddAll("q", "a", "b", "c", "d")
		w := r.Anonymous(1)
		w.Gets("a")
		r.Operate("a", cancel)
		w.Gets("b")
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.IDs["b"]); err != nil {
			r.Fatal(err)
		}
		w.Gets("c")
		r.Pass(job.Second) // its run timeout
		w.Gets("d")
	})
}

func TestAStreamWithoutPrefetchTakesAllAndIsBoundedByWhatItReads(t *testing.T) {
	scenario(t, func(r *rig) {
		var list []engine.NewJob
		for i := range 2000 {
			list = append(list, newNamed("q", fmt.Sprint(i)))
		}
		added, err := r.Put(r.Context(), list)
		if err != nil {
			r.Fatal(err)
		}
		for i, a := range added {
			r.Call(a.ID, fmt.Sprint(i))
		}
		w := r.Opened(engine.StreamOptions{})
		synctest.Wait()
		if n := r.inState(job.Leased); n == 0 || n > 1000 {
			r.Errorf("%d of 2000 were given out before the stream read any", n)
		}
		got := w.Read()
		if len(got) != 2000 || got[0] != "0" || got[1999] != "1999" {
			r.Errorf("%d were delivered", len(got))
		}
	})
}

func (r *rig) inState(s job.State) int64 {
	r.Helper()
	f := all
	f.States = []job.State{s}
	n, err := r.Count(r.Context(), f)
	if err != nil {
		r.Fatal(err)
	}
	return n
}

func TestATakeOverSeveralQueuesKeepsOneOrderOverAllOfThem(t *testing.T) { // core.md section 1
	scenario(t, func(r *rig) {
		r.AddAll("x", "x1")
		r.AddAll("y", "y1")
		r.AddAll("z", "z1")
		r.Add("y", "y urgent", func(n *engine.NewJob) { n.Job.Priority = 1 })
		r.Add("x", "x front", func(n *engine.NewJob) { n.Place = job.PlaceFront })
		r.AddAll("x", "x2")
		some := r.Anonymous(9, "y", "x")
		some.Gets("y urgent", "x front", "x1", "y1", "x2")
		every := r.Anonymous(9)
		every.Gets("z1")
	})
}

func TestAStreamGetsJobsOfItsQueuesOnly(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.Anonymous(9, "x")
		r.AddAll("y", "y1")
		w.Gets()
		r.AddAll("x", "x1")
		w.Gets("x1")
	})
}

func TestOnlyAHolderWhosePropertiesFitGetsTheJob(t *testing.T) { // core.md section 3, Fit
	scenario(t, func(r *rig) {
		needs := func(n *engine.NewJob) {
			n.Job.Requires = []job.Requirement{{Property: "cpu", Op: ">=", Value: "8"}}
		}
		r.Add("q", "heavy", needs)
		r.AddAll("q", "light")
		small := r.Opened(engine.StreamOptions{Prefetch: 9, Properties: map[string]string{"cpu": "2"}})
		small.Gets("light")
		big := r.Opened(engine.StreamOptions{Prefetch: 9, Properties: map[string]string{"cpu": "16"}})
		big.Gets("heavy")
		small.Gets()
	})
}

func TestTwoStreamsNeverShareAJob(t *testing.T) { // I3
	scenario(t, func(r *rig) {
		var streams []*stream
		for range 4 {
			streams = append(streams, r.Anonymous(3))
		}
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprint(i))
		}
		r.AddAll("q", names...)
		seen := map[string]bool{}
		for len(seen) < 40 {
			before := len(seen)
			for _, s := range streams {
				for _, name := range s.Read() {
					if seen[name] {
						r.Fatalf("%s was delivered twice", name)
					}
					seen[name] = true
					s.OK(name)
				}
			}
			if len(seen) == before {
				r.Fatalf("only %d of 40 were delivered", before)
			}
		}
	})
}

func TestStreamsThatAskForOtherWorkDoNotAnswerForEachOther(t *testing.T) {
	scenario(t, func(r *rig) {
		two, one := r.Anonymous(9, "x", "y"), r.Anonymous(9, "x,y")
		r.AddAll("x,y", "a")
		two.Gets()
		one.Gets("a")
		needs := func(n *engine.NewJob) { n.Job.Requires = []job.Requirement{{Property: "b", Op: "=", Value: "2"}} }
		odd := r.Opened(engine.StreamOptions{Prefetch: 9, Properties: map[string]string{"a": "1 b:2"}})
		fit := r.Opened(engine.StreamOptions{Prefetch: 9, Properties: map[string]string{"a": "1", "b": "2"}})
		r.Add("q", "c", needs)
		odd.Gets()
		fit.Gets("c")
	})
}

func TestStreamsThatWaitGetTheirShareInTurn(t *testing.T) {
	scenario(t, func(r *rig) {
		x, y := r.Anonymous(9), r.Anonymous(9)
		r.AddAll("q", "a", "b", "c", "d")
		x.Gets("a", "c")
		y.Gets("b", "d")
	})
}

func TestADisconnectGivesBackAndCountsALoss(t *testing.T) { // core.md sections 4 and 5
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c")
		w := r.Anonymous(2)
		w.Gets("a", "b")
		other := r.Anonymous(9)
		other.Gets("c")
		w.End()
		other.Gets("a", "b")
		if j := r.Job("a"); j.Losses != 1 || j.Attempts != 0 || j.Evictions != 0 || j.Ended[0].How != job.ByDisconnect {
			r.Errorf("%+v", j)
		}
		if s := r.Stats(); s.Lapsed != 2 || s.Failed != 0 {
			r.Errorf("%+v", s)
		}
		w.End() // twice is harmless
	})
}

func TestADeliveryThatWasNotReadIsGivenBackToo(t *testing.T) { // I1
	scenario(t, func(r *rig) {
		w := r.Anonymous(5)
		r.AddAll("q", "a")
		synctest.Wait()
		r.Expect("a", job.Leased)
		w.End()
		r.Expect("a", job.Ready)
	})
}

func TestATokenlessOKAfterItsStreamEndedStillCompletes(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		w := r.Anonymous(2)
		w.Gets("a", "b")
		w.End()
		if v := r.Try(engine.Settle{ID: r.IDs["a"]}); v.Err != nil || v.State != job.Done {
			r.Errorf("%+v", v)
		}
		r.Refused(job.NotFound, engine.Settle{ID: r.IDs["b"], Outcome: job.Retried})
		if j := r.Expect("b", job.Ready); j.Attempts != 0 {
			r.Errorf("%+v", j)
		}
		if s := r.Stats(); s.LateOK != 1 || s.Done != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestALateOKTakesTheJobFromWhoRunsItNow(t *testing.T) { // core.md section 4, I3
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		w, other := r.Anonymous(1, "q"), r.Anonymous(1, "q")
		w.Gets("a")
		other.Gets("b")
		late := w.Held["a"]
		w.End()
		other.OK("b")
		other.Gets("a")
		r.Settled(late, job.OK)
		r.Expect("a", job.Done)
		r.Refused(job.Superseded, engine.Settle{ID: r.IDs["a"], Token: other.Held["a"].Lease.Token})
		r.AddAll("q", "c")
		other.Gets("c") // the room of the voided lease came back
	})
}

func TestNextEndsWithItsContextAndTheStreamGoesOn(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.Anonymous(1)
		ctx, cancel := context.WithCancel(r.Context())
		done := make(chan error)
		go func() { _, err := w.Next(ctx); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			r.Errorf("next: %v", err)
		}
		r.AddAll("q", "a")
		w.Gets("a")
	})
}

func TestAWaitingNextIsWokenByAPut(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.Anonymous(1)
		got := make(chan []engine.Delivery)
		go func() { list, _ := w.Next(r.Context()); got <- list }()
		r.AddAll("q", "a")
		if list := <-got; len(list) != 1 || string(list[0].Payload) != "a" {
			r.Errorf("%+v", list)
		}
	})
}

func TestAStreamWhoseCallerIsGoneIsClosed(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		if s, err := r.Stream(ctx, engine.StreamOptions{Prefetch: 1}); err == nil {
			s.Close() // it may have been quicker than its context
		}
		r.AddAll("q", "a")
		synctest.Wait()
		r.Expect("a", job.Ready)
	})
}

func TestFromHalfOfTheLossLimitAJobIsDeliveredAlone(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		poison := retry(job.Retry{LossLimit: job.LimitOf(4)})
		r.AddAll("q", "a")
		r.Add("q", "poison", poison)
		r.AddAll("q", "b", "c")
		for range 2 {
			w := r.Anonymous(3)
			w.Gets("a", "poison", "b")
			w.End()
		}
		w := r.Anonymous(3)
		w.Gets("a") // the next one must be alone
		w.OK("a")
		w.Gets("poison")
		r.AddAll("q", "d", "e")
		w.Gets() // not beside it
		w.End()
		w = r.Anonymous(3)
		w.Gets("poison") // it stands first, and comes alone
		w.End()
		if j := r.Expect("poison", job.Dead); j.Reason != job.Lost || j.Attempts != 0 {
			r.Errorf("%+v", j)
		}
		if j := r.Expect("d", job.Ready); j.Losses != 0 {
			r.Errorf("another job paid for it: %+v", j)
		}
	})
}

func TestAStreamIsNamedAsItsWorkerSays(t *testing.T) {
	scenario(t, func(r *rig) {
		if name := r.Named("host-7", 1).Name(); name != "host-7" {
			r.Errorf("name %q", name)
		}
		if a, b := r.Anonymous(1).Name(), r.Anonymous(1).Name(); a == b || strings.Contains(a, "/") {
			r.Errorf("names %q %q", a, b)
		}
	})
}

func TestAGreatStreamIsServedInMoreThanOneTransaction(t *testing.T) { // a limit on every loop
	const jobs = 10_000
	e, st := openEngine(t, vfs.NewMem(), 5)
	s, err := e.Stream(t.Context(), engine.StreamOptions{Prefetch: 2 * jobs})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]engine.NewJob, jobs)
	for i := range list {
		list[i] = newNamed("q", "a")
	}
	added, err := e.Put(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for got := 0; got < jobs; {
		list, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			if d.Job.ID != added[got].ID {
				t.Fatalf("delivery %d is another job", got)
			}
			got++
		}
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
