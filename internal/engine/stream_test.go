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
		r.puts("q", "a", "b", "c", "d", "e", "f")
		w := r.anonymous(2)
		w.gets("a", "b")
		w.ok("a")
		w.gets("c")
		w.fail("b")
		w.gets("d")
		r.settle(w.held["c"], job.Died)
		w.gets("e")
		r.settle(w.held["d"], job.Released)
		w.gets("d") // it kept its place
		w.gets()
	})
}

func TestAJobThatSomebodyElseEndsGivesTheStreamItsRoomBack(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.RunTimeout = job.Second })
		r.puts("q", "a", "b", "c", "d")
		w := r.anonymous(1)
		w.gets("a")
		r.operate("a", cancel)
		w.gets("b")
		if _, err := r.part.Desk.Do(r.Context(), job.Actor{}, desk.Delete, r.ids["b"]); err != nil {
			r.Fatal(err)
		}
		w.gets("c")
		r.Pass(job.Second) // its run timeout
		w.gets("d")
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
			r.call(a.ID, fmt.Sprint(i))
		}
		w := r.stream(engine.StreamOptions{})
		synctest.Wait()
		if n := r.inState(job.Leased); n == 0 || n > 1000 {
			r.Errorf("%d of 2000 were given out before the stream read any", n)
		}
		got := w.read()
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
		r.puts("x", "x1")
		r.puts("y", "y1")
		r.puts("z", "z1")
		r.put("y", "y urgent", func(n *engine.NewJob) { n.Job.Priority = 1 })
		r.put("x", "x front", func(n *engine.NewJob) { n.Place = job.PlaceFront })
		r.puts("x", "x2")
		some := r.anonymous(9, "y", "x")
		some.gets("y urgent", "x front", "x1", "y1", "x2")
		every := r.anonymous(9)
		every.gets("z1")
	})
}

func TestAStreamGetsJobsOfItsQueuesOnly(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.anonymous(9, "x")
		r.puts("y", "y1")
		w.gets()
		r.puts("x", "x1")
		w.gets("x1")
	})
}

func TestOnlyAHolderWhosePropertiesFitGetsTheJob(t *testing.T) { // core.md section 3, Fit
	scenario(t, func(r *rig) {
		needs := func(n *engine.NewJob) {
			n.Job.Requires = []job.Requirement{{Property: "cpu", Op: ">=", Value: "8"}}
		}
		r.put("q", "heavy", needs)
		r.puts("q", "light")
		small := r.stream(engine.StreamOptions{Prefetch: 9, Properties: map[string]string{"cpu": "2"}})
		small.gets("light")
		big := r.stream(engine.StreamOptions{Prefetch: 9, Properties: map[string]string{"cpu": "16"}})
		big.gets("heavy")
		small.gets()
	})
}

func TestTwoStreamsNeverShareAJob(t *testing.T) { // I3
	scenario(t, func(r *rig) {
		var streams []*stream
		for range 4 {
			streams = append(streams, r.anonymous(3))
		}
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprint(i))
		}
		r.puts("q", names...)
		seen := map[string]bool{}
		for len(seen) < 40 {
			before := len(seen)
			for _, s := range streams {
				for _, name := range s.read() {
					if seen[name] {
						r.Fatalf("%s was delivered twice", name)
					}
					seen[name] = true
					s.ok(name)
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
		two, one := r.anonymous(9, "x", "y"), r.anonymous(9, "x,y")
		r.puts("x,y", "a")
		two.gets()
		one.gets("a")
		needs := func(n *engine.NewJob) { n.Job.Requires = []job.Requirement{{Property: "b", Op: "=", Value: "2"}} }
		odd := r.stream(engine.StreamOptions{Prefetch: 9, Properties: map[string]string{"a": "1 b:2"}})
		fit := r.stream(engine.StreamOptions{Prefetch: 9, Properties: map[string]string{"a": "1", "b": "2"}})
		r.put("q", "c", needs)
		odd.gets()
		fit.gets("c")
	})
}

func TestStreamsThatWaitGetTheirShareInTurn(t *testing.T) {
	scenario(t, func(r *rig) {
		x, y := r.anonymous(9), r.anonymous(9)
		r.puts("q", "a", "b", "c", "d")
		x.gets("a", "c")
		y.gets("b", "d")
	})
}

func TestADisconnectGivesBackAndCountsALoss(t *testing.T) { // core.md sections 4 and 5
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b", "c")
		w := r.anonymous(2)
		w.gets("a", "b")
		other := r.anonymous(9)
		other.gets("c")
		w.close()
		other.gets("a", "b")
		if j := r.job("a"); j.Losses != 1 || j.Attempts != 0 || j.Evictions != 0 || j.Ended[0].How != job.ByDisconnect {
			r.Errorf("%+v", j)
		}
		if s := r.stats(); s.Lapsed != 2 || s.Failed != 0 {
			r.Errorf("%+v", s)
		}
		w.close() // twice is harmless
	})
}

func TestADeliveryThatWasNotReadIsGivenBackToo(t *testing.T) { // I1
	scenario(t, func(r *rig) {
		w := r.anonymous(5)
		r.puts("q", "a")
		synctest.Wait()
		r.expect("a", job.Leased)
		w.close()
		r.expect("a", job.Ready)
	})
}

func TestATokenlessOKAfterItsStreamEndedStillCompletes(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b")
		w := r.anonymous(2)
		w.gets("a", "b")
		w.close()
		if v := r.try(engine.Settle{ID: r.ids["a"]}); v.Err != nil || v.State != job.Done {
			r.Errorf("%+v", v)
		}
		r.refused(job.NotFound, engine.Settle{ID: r.ids["b"], Outcome: job.Retried})
		if j := r.expect("b", job.Ready); j.Attempts != 0 {
			r.Errorf("%+v", j)
		}
		if s := r.stats(); s.LateOK != 1 || s.Done != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestALateOKTakesTheJobFromWhoRunsItNow(t *testing.T) { // core.md section 4, I3
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b")
		w, other := r.anonymous(1, "q"), r.anonymous(1, "q")
		w.gets("a")
		other.gets("b")
		late := w.held["a"]
		w.close()
		other.ok("b")
		other.gets("a")
		r.settle(late, job.OK)
		r.expect("a", job.Done)
		r.refused(job.Superseded, engine.Settle{ID: r.ids["a"], Token: other.held["a"].Lease.Token})
		r.puts("q", "c")
		other.gets("c") // the room of the voided lease came back
	})
}

func TestNextEndsWithItsContextAndTheStreamGoesOn(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.anonymous(1)
		ctx, cancel := context.WithCancel(r.Context())
		done := make(chan error)
		go func() { _, err := w.Next(ctx); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			r.Errorf("next: %v", err)
		}
		r.puts("q", "a")
		w.gets("a")
	})
}

func TestAWaitingNextIsWokenByAPut(t *testing.T) {
	scenario(t, func(r *rig) {
		w := r.anonymous(1)
		got := make(chan []engine.Delivery)
		go func() { list, _ := w.Next(r.Context()); got <- list }()
		r.puts("q", "a")
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
		r.puts("q", "a")
		synctest.Wait()
		r.expect("a", job.Ready)
	})
}

func TestFromHalfOfTheLossLimitAJobIsDeliveredAlone(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		poison := retry(job.Retry{LossLimit: job.LimitOf(4)})
		r.puts("q", "a")
		r.put("q", "poison", poison)
		r.puts("q", "b", "c")
		for range 2 {
			w := r.anonymous(3)
			w.gets("a", "poison", "b")
			w.close()
		}
		w := r.anonymous(3)
		w.gets("a") // the next one must be alone
		w.ok("a")
		w.gets("poison")
		r.puts("q", "d", "e")
		w.gets() // not beside it
		w.close()
		w = r.anonymous(3)
		w.gets("poison") // it stands first, and comes alone
		w.close()
		if j := r.expect("poison", job.Dead); j.Reason != job.Lost || j.Attempts != 0 {
			r.Errorf("%+v", j)
		}
		if j := r.expect("d", job.Ready); j.Losses != 0 {
			r.Errorf("another job paid for it: %+v", j)
		}
	})
}

func TestAStreamIsNamedAsItsWorkerSays(t *testing.T) {
	scenario(t, func(r *rig) {
		if name := r.named("host-7", 1).Name(); name != "host-7" {
			r.Errorf("name %q", name)
		}
		if a, b := r.anonymous(1).Name(), r.anonymous(1).Name(); a == b || strings.Contains(a, "/") {
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
