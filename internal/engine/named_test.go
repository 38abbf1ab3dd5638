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
		r.AddAll("q", "a", "b", "c")
		w := r.Named("host", 2)
		w.Gets("a", "b")
		token := w.Held["a"].Lease.Token
		w.End()
		other := r.Anonymous(9, "q")
		other.Gets("c")
		r.Pass(30*job.Second - 1)
		w = r.Named("host", 2)
		w.Gets("a", "b")
		if d := w.Held["a"]; !d.Held || d.Lease.Token != token || d.Job.Losses != 0 {
			r.Errorf("%+v", d)
		}
		r.Pass(job.Hour) // connected again, it does not lapse
		other.Gets()
		w.OK("a", "b")
		if s := r.Stats(); s.Lapsed != 0 || s.LateOK != 0 {
			r.Errorf("%+v", s)
		}
	})
}

func TestANamedStreamThatStaysAwayLapsesExactlyAfterTheWindow(t *testing.T) { // I6
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		w := r.Named("host", 1)
		w.Gets("a")
		w.End()
		other := r.Anonymous(1)
		r.Pass(30*job.Second - 1)
		other.Gets()
		r.Pass(1)
		other.Gets("a")
		if j := r.Job("a"); j.Losses != 1 || j.Attempts != 0 || j.Ended[0].How != job.ByLapse {
			r.Errorf("%+v", j)
		}
		r.Settled(w.Held["a"], job.OK) // late, and honoured
		r.Expect("a", job.Done)
	})
}

func TestWhatANamedStreamHoldsIsSettledWhileItIsAway(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		w := r.Named("host", 2)
		w.Gets("a", "b")
		w.End()
		w.OK("a")
		r.Refused(job.TokenNeeded, engine.Settle{ID: r.IDs["b"]})
		w = r.Named("host", 2)
		w.Gets("b")
		r.AddAll("q", "c", "d")
		w.Gets("c") // b counts against its prefetch
	})
}

func TestANewerConnectionOfTheSameNameTakesOver(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		first := r.Named("host", 9)
		first.Gets("a")
		second := r.Named("host", 2)
		first.IsOver()
		second.Gets("a")
		first.End() // the old connection breaks at last: nothing happens
		r.Pass(job.Minute)
		r.AddAll("q", "b", "c")
		second.Gets("b")
		second.OK("a")
		second.Gets("c")
	})
}

func TestNamedStreamsOfDifferentNamesDoNotMeet(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		x, y := r.Named("x", 1), r.Named("y", 1)
		x.Gets("a")
		y.Gets("b")
		x.End()
		y.End()
		y, x = r.Named("y", 1), r.Named("x", 1)
		x.Gets("a")
		y.Gets("b")
	})
}

func TestANamedStreamSurvivesAPoliteDeploy(t *testing.T) { // core.md section 4: a polite deploy re-runs nothing
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		w := r.Named("host", 1)
		w.Gets("a")
		r.Restart(10 * job.Second)
		r.AddAll("q", "c")
		other := r.Anonymous(1)
		other.Gets("b")
		r.Pass(30*job.Second - 1) // the window counts from the start
		token := w.Held["a"].Lease.Token
		w = r.Named("host", 1)
		w.Gets("a")
		if d := w.Held["a"]; !d.Held || d.Lease.Token != token {
			r.Errorf("it was run again: %+v", d)
		}
		w.OK("a")
		w.Gets("c")
	})
}

func TestANamedStreamThatDoesNotComeBackAfterARestartLapses(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		r.Named("host", 1).Gets("a")
		r.Restart(0)
		other := r.Anonymous(1)
		r.Pass(30*job.Second - 1)
		other.Gets()
		r.Pass(1)
		other.Gets("a")
	})
}

func TestANamedStreamThatDoesNotComeBackAfterACrashLapses(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.NonIdempotent = true })
		r.AddAll("q", "a")
		r.Named("host", 1).Gets("a")
		r.PowerCut()
		other := r.Anonymous(1)
		r.Pass(30*job.Second - 1)
		other.Gets()
		r.Pass(1)
		other.Gets("a")
	})
}

func TestANamedStreamSurvivesACrash(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.NonIdempotent = true }) // its takes are on disk before they are answered
		r.AddAll("q", "a")
		w := r.Named("host", 1)
		w.Gets("a")
		r.PowerCut()
		r.Anonymous(1).Gets()
		w2 := r.Named("host", 1)
		w2.Gets("a")
		w.OK("a") // the token of the life before is the same
	})
}

func TestAnAnonymousStreamEndsBeforeTheListenerOpensAfterACrash(t *testing.T) { // core.md section 4
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) { q.NonIdempotent = true })
		r.AddAll("q", "a")
		w := r.Anonymous(1)
		w.Gets("a")
		r.PowerCut()
		if j := r.Expect("a", job.Ready); j.Losses != 0 || j.Attempts != 0 || j.Ended[0].How != job.ByRestart {
			r.Errorf("our own crash was charged: %+v", j)
		}
		r.Settled(w.Held["a"], job.OK)
		r.Expect("a", job.Done)
	})
}

func TestAnUnsyncedTakeThatACrashForgotIsStillCompletedByItsToken(t *testing.T) { // core.md section 4, Late OK
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		w := r.Named("host", 2)
		w.Gets("a", "b")
		if err := r.Mem.Reopen(r.Context()); err != nil { // at once: what was not synced is gone
			r.Fatal(err)
		}
		r.PowerCut()
		r.Expect("a", job.Ready)
		r.Settled(w.Held["a"], job.OK)
		r.Refused(job.Superseded, engine.Settle{ID: r.IDs["b"], Token: w.Held["b"].Lease.Token, Outcome: job.Retried})
		if j := r.Expect("b", job.Ready); j.Attempts != 0 {
			r.Errorf("%+v", j)
		}
	})
}

func TestAJobHeldAloneIsStillAloneAfterAReconnect(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		r.Add("q", "poison", retry(job.Retry{LossLimit: job.LimitOf(2)}))
		w := r.Anonymous(1)
		w.Gets("poison")
		w.End()
		n := r.Named("host", 5)
		n.Gets("poison")
		n.End()
		n = r.Named("host", 5)
		n.Gets("poison")
		r.AddAll("q", "a")
		n.Gets()
	})
}

func TestAHolderRowLeavesWithItsHolder(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Named("idle", 1).End()
		if n := r.Rows(job.Holders); n != 0 {
			r.Errorf("%d rows of holders that hold nothing", n)
		}
		r.AddAll("q", "a")
		w := r.Named("busy", 1)
		w.Gets("a")
		w.End()
		r.Pass(30 * job.Second)
		if n := r.Rows(job.Holders); n != 0 {
			r.Errorf("%d rows of holders that do not exist", n)
		}
	})
}

func TestAStopEndsEveryStreamAndRefusesNewOnes(t *testing.T) {
	scenario(t, func(r *rig) {
		streams := []*stream{r.Anonymous(1), r.Named("host", 1), r.Opened(engine.StreamOptions{})}
		r.End()
		for _, s := range streams {
			s.IsOver()
		}
		if _, err := r.Stream(r.Context(), engine.StreamOptions{}); job.KindOf(err) != job.Unavailable {
			r.Errorf("a stream after the stop: %v", err)
		}
		streams[0].Close()
		synctest.Wait()
	})
}
