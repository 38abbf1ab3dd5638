package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Named streams: core.md section 4, "Three kinds of holder".

func TestANamedStreamThatComesBackInTimeIsOfferedWhatItHolds(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b", "c")
		w := r.named("host", 2)
		w.gets("a", "b")
		token := w.held["a"].Lease.Token
		w.close()
		other := r.anonymous(9, "q")
		other.gets("c")
		r.Pass(30*job.Second - 1)
		w = r.named("host", 2)
		w.gets("a", "b")
		if d := w.held["a"]; !d.Held || d.Lease.Token != token || d.Job.Losses != 0 {
			r.Errorf("%+v", d)
		}
		r.Pass(job.Hour) // connected again, it does not lapse
		other.gets()
		w.ok("a", "b")
		if s := r.stats(); s.Lapsed != 0 || s.LateOK != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestANamedStreamThatStaysAwayLapsesExactlyAfterTheWindow(t *testing.T) { // I6
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		w := r.named("host", 1)
		w.gets("a")
		w.close()
		other := r.anonymous(1)
		r.Pass(30*job.Second - 1)
		other.gets()
		r.Pass(1)
		other.gets("a")
		if j := r.job("a"); j.Losses != 1 || j.Attempts != 0 || j.Ended[0].How != job.ByLapse {
			r.Errorf("%+v", j)
		}
		r.settle(w.held["a"], job.OK) // late, and honoured
		r.expect("a", job.Done)
	})
}

func TestWhatANamedStreamHoldsIsSettledWhileItIsAway(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b")
		w := r.named("host", 2)
		w.gets("a", "b")
		w.close()
		w.ok("a")
		r.refused(job.TokenNeeded, engine.Settle{ID: r.ids["b"]})
		w = r.named("host", 2)
		w.gets("b")
		r.puts("q", "c", "d")
		w.gets("c") // b counts against its prefetch
	})
}

func TestANewerConnectionOfTheSameNameTakesOver(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		first := r.named("host", 9)
		first.gets("a")
		second := r.named("host", 2)
		first.ended()
		second.gets("a")
		first.close() // the old connection breaks at last: nothing happens
		r.Pass(job.Minute)
		r.puts("q", "b", "c")
		second.gets("b")
		second.ok("a")
		second.gets("c")
	})
}

func TestNamedStreamsOfDifferentNamesDoNotMeet(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b")
		x, y := r.named("x", 1), r.named("y", 1)
		x.gets("a")
		y.gets("b")
		x.close()
		y.close()
		y, x = r.named("y", 1), r.named("x", 1)
		x.gets("a")
		y.gets("b")
	})
}

func TestANamedStreamSurvivesAPoliteDeploy(t *testing.T) { // core.md section 4: a polite deploy re-runs nothing
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b")
		w := r.named("host", 1)
		w.gets("a")
		r.Restart(10 * job.Second)
		r.puts("q", "c")
		other := r.anonymous(1)
		other.gets("b")
		r.Pass(30*job.Second - 1) // the window counts from the start
		token := w.held["a"].Lease.Token
		w = r.named("host", 1)
		w.gets("a")
		if d := w.held["a"]; !d.Held || d.Lease.Token != token {
			r.Errorf("it was run again: %+v", d)
		}
		w.ok("a")
		w.gets("c")
	})
}

func TestANamedStreamThatDoesNotComeBackAfterARestartLapses(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		r.named("host", 1).gets("a")
		r.Restart(0)
		other := r.anonymous(1)
		r.Pass(30*job.Second - 1)
		other.gets()
		r.Pass(1)
		other.gets("a")
	})
}

func TestANamedStreamThatDoesNotComeBackAfterACrashLapses(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.NonIdempotent = true })
		r.puts("q", "a")
		r.named("host", 1).gets("a")
		r.PowerCut()
		other := r.anonymous(1)
		r.Pass(30*job.Second - 1)
		other.gets()
		r.Pass(1)
		other.gets("a")
	})
}

func TestANamedStreamSurvivesACrash(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.NonIdempotent = true }) // its takes are on disk before they are answered
		r.puts("q", "a")
		w := r.named("host", 1)
		w.gets("a")
		r.PowerCut()
		r.anonymous(1).gets()
		w2 := r.named("host", 1)
		w2.gets("a")
		w.ok("a") // the token of the life before is the same
	})
}

func TestAnAnonymousStreamEndsBeforeTheListenerOpensAfterACrash(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.NonIdempotent = true })
		r.puts("q", "a")
		w := r.anonymous(1)
		w.gets("a")
		r.PowerCut()
		if j := r.expect("a", job.Ready); j.Losses != 0 || j.Attempts != 0 || j.Ended[0].How != job.ByRestart {
			r.Errorf("our own crash was charged: %+v", j)
		}
		r.settle(w.held["a"], job.OK)
		r.expect("a", job.Done)
	})
}

func TestAnUnsyncedTakeThatACrashForgotIsStillCompletedByItsToken(t *testing.T) { // core.md section 4, Late OK
	scenario(t, func(r *rig) {
		r.puts("q", "a", "b")
		w := r.named("host", 2)
		w.gets("a", "b")
		if err := r.Mem.Reopen(r.Context()); err != nil { // at once: what was not synced is gone
			r.Fatal(err)
		}
		r.PowerCut()
		r.expect("a", job.Ready)
		r.settle(w.held["a"], job.OK)
		r.refused(job.Superseded, engine.Settle{ID: r.ids["b"], Token: w.held["b"].Lease.Token, Outcome: job.Retried})
		if j := r.expect("b", job.Ready); j.Attempts != 0 {
			r.Errorf("%+v", j)
		}
	})
}

func TestAJobHeldAloneIsStillAloneAfterAReconnect(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		r.put("q", "poison", retry(job.Retry{LossLimit: job.LimitOf(2)}))
		w := r.anonymous(1)
		w.gets("poison")
		w.close()
		n := r.named("host", 5)
		n.gets("poison")
		n.close()
		n = r.named("host", 5)
		n.gets("poison")
		r.puts("q", "a")
		n.gets()
	})
}

func TestAHolderRowLeavesWithItsHolder(t *testing.T) {
	scenario(t, func(r *rig) {
		r.named("idle", 1).close()
		if n := r.rows(job.Holders); n != 0 {
			r.Errorf("%d rows of holders that hold nothing", n)
		}
		r.puts("q", "a")
		w := r.named("busy", 1)
		w.gets("a")
		w.close()
		r.Pass(30 * job.Second)
		if n := r.rows(job.Holders); n != 0 {
			r.Errorf("%d rows of holders that do not exist", n)
		}
	})
}

func TestAStopEndsEveryStreamAndRefusesNewOnes(t *testing.T) {
	scenario(t, func(r *rig) {
		streams := []*stream{r.anonymous(1), r.named("host", 1), r.stream(engine.StreamOptions{})}
		r.End()
		for _, s := range streams {
			s.ended()
		}
		if _, err := r.Stream(r.Context(), engine.StreamOptions{}); job.KindOf(err) != job.Unavailable {
			r.Errorf("a stream after the stop: %v", err)
		}
		streams[0].Close()
		synctest.Wait()
	})
}
