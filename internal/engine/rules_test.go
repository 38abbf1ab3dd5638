package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

func said(text string) func(*engine.Settle) {
	return func(s *engine.Settle) { s.Failure.Message = text }
}

func TestRulesByMessageDecideInOneSettle(t *testing.T) { // core.md sections 6 and 9
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) {
			q.Retry = policy(r, `{"curve": {"kind": "constant", "delay": "10s"}, "rules": [
				{"when": {"message": "(?i)^no such (customer|order)\\b"}, "do": "dead"},
				{"when": {"message": "lock .* not free"}, "do": "release", "delay": "2s"}]}`)
		})
		r.AddAll("q", "dead", "released", "retried", "done")
		w := r.Anonymous(4)
		w.Gets("dead", "released", "retried", "done")
		list := []engine.Settle{
			{ID: r.IDs["dead"], Outcome: job.Retried, Failure: job.Failure{Message: "No such ORDER: 5"}},
			{ID: r.IDs["done"], Outcome: job.OK},
			{ID: r.IDs["released"], Outcome: job.Retried, Failure: job.Failure{Message: "sorry, lock of row 7 not free"}},
			{ID: r.IDs["retried"], Outcome: job.Retried, Failure: job.Failure{Message: "lock is free"}},
		}
		verdicts, err := r.Settle(r.Context(), list)
		if err != nil {
			r.Fatal(err)
		}
		for i, want := range []job.State{job.Dead, job.Done, job.Scheduled, job.Scheduled} {
			if v := verdicts[i]; v.Err != nil || v.State != want {
				r.Errorf("%d: %+v, want %s", i, v, want)
			}
		}
		if j := r.Expect("dead", job.Dead); j.Reason != job.Killed {
			r.Errorf("%+v", j)
		}
		if j := r.Expect("released", job.Scheduled); j.Attempts != 0 || j.Releases != 1 || j.ReadyAt != r.Now()+2000 {
			r.Errorf("%+v", j)
		}
		if j := r.Expect("retried", job.Scheduled); j.Attempts != 1 || j.ReadyAt != r.Now()+10_000 {
			r.Errorf("%+v", j)
		}
		if s := r.Stats(); s.Failed != 3 || s.Died != 1 {
			r.Errorf("%+v", s)
		}
	})
}

func TestEntriesOfOneJobAreSettledInTheirOrder(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "a", retry(policy(r, `{"rules": [{"when": {"message": "x"}, "do": "release", "delay": "1s"}]}`)))
		w := r.Named("w", 1)
		w.Gets("a")
		token := w.Held["a"].Lease.Token
		verdicts, err := r.Settle(r.Context(), []engine.Settle{
			{ID: r.IDs["a"], Token: token, Outcome: job.Retried, Failure: job.Failure{Message: "x"}},
			{ID: r.IDs["a"], Token: token, Outcome: job.OK},
		})
		if err != nil || verdicts[0].Err != nil || verdicts[0].State != job.Scheduled || job.KindOf(verdicts[1].Err) != job.Superseded {
			r.Errorf("%+v, %v", verdicts, err)
		}
	})
}

func TestOnlyTheHeadOfAMessageIsMatched(t *testing.T) { // core.md section 9: RE2 over at most 4 KiB of message
	scenario(t, func(r *rig) {
		own := retry(policy(r, `{"rules": [{"when": {"message": "needle"}, "do": "dead"}]}`))
		r.Add("q", "a", own)
		r.Add("q", "b", own)
		w := r.Anonymous(2)
		w.Gets("a", "b")
		w.Fails("a", said(strings.Repeat("x", job.MatchBytesMax-6)+"needle"))
		w.Fails("b", said(strings.Repeat("x", job.MatchBytesMax-5)+"needle"))
		r.Expect("a", job.Dead)
		r.Expect("b", job.Scheduled)
	})
}

func TestARuleHoldsAQueueUntilItsTimeAndThenTheRestGoesOn(t *testing.T) { // retry.md section 4, Hold
	scenario(t, func(r *rig) {
		r.SetQueue("q", func(q *job.Queue) {
			q.Retry = policy(r, `{"rules": [{"when": {"status": 429}, "do": "hold", "delay": "1m"}]}`)
		})
		r.AddAll("q", "a", "b")
		r.Add("other", "c")
		w := r.Anonymous(1)
		w.Gets("a")
		w.Fails("a", func(s *engine.Settle) { s.Failure.Status, s.RetryAfter = 429, 100*job.Second })
		w.Gets("c")
		w.OK("c")
		q, _, err := r.Queue(r.Context(), "q")
		if err != nil || q.HoldUntil < r.Now()+100*job.Second || q.HoldUntil > r.Now()+110*job.Second {
			r.Fatalf("held until %d, now %d, %v", q.HoldUntil, r.Now(), err)
		}
		r.Pass(q.HoldUntil - r.Now() - 1)
		w.Gets()
		r.Pass(1)
		if got := w.Read(); len(got) != 1 {
			r.Fatalf("after the hold %v", got)
		}
		if j := r.Job("b"); j.Attempts != 0 || j.Evictions != 0 {
			r.Errorf("the other job paid for it: %+v", j)
		}
	})
}

func TestADateATargetAskedForIsKept(t *testing.T) { // core.md section 6, point 6
	scenario(t, func(r *rig) {
		own := retry(job.Retry{Curve: wait(10 * job.Second)})
		for name, at := range map[string]job.Millis{"later": job.Minute, "sooner": job.Second, "past": -job.Minute} {
			r.Add(name, name, own)
			w := r.Anonymous(1, name)
			w.Gets(name)
			w.Fails(name, func(s *engine.Settle) { s.NotBefore = r.Now() + at })
			if j, least := r.Job(name), max(at, 10*job.Second); j.ReadyAt < r.Now()+least || j.ReadyAt > r.Now()+least+max(at, 0)/10 {
				r.Errorf("%s: due in %s", name, j.ReadyAt-r.Now())
			}
		}
	})
}

func TestAPolicyMayChangeUnderASettle(t *testing.T) { // core.md section 9: compare and set
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c", "d", "e", "f")
		w := r.Anonymous(6)
		w.Gets("a", "b", "c", "d", "e", "f")
		ctx, stop := context.WithCancel(r.Context())
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			for n := 0; ctx.Err() == nil; n++ {
				text := `{"rules": [{"when": {"message": "` + strings.Repeat("x", n%50+1) + `"}, "do": "dead"}]}`
				_, _ = r.Part.Desk.SetQueue(r.Context(), "q", func(q *job.Queue) error { q.Retry = policy(r, text); return nil }, job.Actor{})
			}
		}()
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			v := r.Try(engine.Settle{ID: r.IDs[name], Token: w.Held[name].Lease.Token, Outcome: job.Retried, Failure: job.Failure{Message: strings.Repeat("x", 60)}})
			// It is decided by one of the policies, or refused and unchanged.
			if v.Err != nil && job.KindOf(v.Err) != job.Unavailable || v.Err == nil && v.State != job.Dead && v.State != job.Scheduled {
				r.Errorf("%s: %+v", name, v)
			}
		}
		stop()
		<-changed
	})
}

func TestThePolicyOfAJobIsToldAsItHoldsNow(t *testing.T) { // retry.md section 1
	scenario(t, func(r *rig) {
		r.Add("q", "a", retry(job.Retry{Limit: job.LimitOf(3)}))
		r.SetQueue("q", func(q *job.Queue) { q.Retry = job.Retry{Limit: job.LimitOf(4), Curve: wait(job.Second)} })
		told := func() rule.Effective {
			e, err := r.Explain(r.Context(), r.IDs["a"])
			if err != nil {
				r.Fatal(err)
			}
			return e.Policy
		}
		p := told()
		if p.Retry.Limit != job.LimitOf(3) || p.From.Limit != rule.FromJob || p.Retry.Curve.Delay != job.Second || p.From.Curve != rule.FromQueue {
			r.Errorf("%+v", p)
		}
		r.SetQueue("q", func(q *job.Queue) { q.Retry = job.Retry{} })
		if p = told(); p.From.Curve != rule.FromDoor || p.Retry.Curve.Delay != job.Minute {
			r.Errorf("%+v", p)
		}
	}, func(r *rig) { r.Opts.Server.Doors[job.DoorJobs] = &job.Retry{Curve: wait(job.Minute)} })
}

func TestADoorHasIdempotencyKeysOfItsOwn(t *testing.T) { // core.md section 7
	scenario(t, func(r *rig) {
		one := engine.NewJob{Key: "k", Job: job.Job{Queue: "q", Copies: 1, RetainDone: job.Unset, RetainDead: job.Unset}}
		other := one
		other.Job.Door = job.DoorStream
		added, err := r.Put(r.Context(), []engine.NewJob{one, other})
		if err != nil || added[0].Duplicate || added[1].Duplicate {
			r.Errorf("%+v, %v", added, err)
		}
	})
}
