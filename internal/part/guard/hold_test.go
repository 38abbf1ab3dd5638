package guard_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// until is the end of the hold of a queue, or of a group.
func (r *rig) until(queue, group string) job.Millis {
	r.Helper()
	list, err := r.Part.Guard.Asides(r.Context(), queue, 10)
	if err != nil {
		r.Fatal(err)
	}
	for _, a := range list {
		if a.Group == group {
			return a.Hold
		}
	}
	return 0
}

func TestARetryAfterParksTheGroupAndChargesOnlyWhoMetIt(t *testing.T) { // retry.md section 4, Hold
	for _, order := range []job.Order{job.OrderNone, job.OrderStart, job.OrderStrict} {
		t.Run(order.String(), func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.SetQueue("q", func(q *job.Queue) { q.Order, q.Concurrency = order, 1 })
				own := retry(job.Retry{Curve: wait(job.Second)})
				r.Add("q", "met", grouped("busy"), own)
				r.Add("q", "spared", grouped("busy"), own)
				r.Add("q", "other", grouped("idle"), own)
				w := r.Named("w", 1)
				w.Gets("met")
				w.Fails("met", func(s *engine.Settle) { s.RetryAfter = 100 * job.Second })
				w.Gets("other")
				w.OK("other")
				w.Gets()
				end := r.until("q", "busy")
				if least := r.Now() + 100*job.Second; end < least || end > least+10*job.Second || r.until("q", "") != 0 {
					r.Fatalf("held until %d, now %d", end, r.Now())
				}
				r.Add("q", "late", grouped("busy"), own) // who arrives is held too
				r.Pass(end - r.Now() - 1)
				w.Gets()
				if j := r.Job("spared"); j.Attempts != 0 || j.Deliveries != 0 {
					r.Errorf("the other job paid for it: %+v", j)
				}
				if j := r.Job("met"); j.Attempts != 1 || j.ReadyAt != end {
					r.Errorf("it met the target: %+v", j)
				}
				r.Pass(1)
				w.Gets("met")
				w.OK("met")
				w.Gets("spared")
			})
		})
	}
}

func TestAHoldOutlivesAPowerCut(t *testing.T) { // I5: the answer said when the job comes back
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b")
		w := r.Anonymous(1)
		w.Gets("a")
		w.Fails("a", func(s *engine.Settle) { s.NotBefore = r.Now() + job.Minute })
		end := r.until("q", "")
		if end < r.Now()+job.Minute {
			r.Fatalf("held until %d, now %d", end, r.Now())
		}
		r.PowerCut()
		if got := r.until("q", ""); got != end {
			r.Fatalf("after a power cut held until %d, not %d", got, end)
		}
		if e, err := r.Explain(r.Context(), r.IDs["a"]); err != nil || e.Retry == nil || e.Retry.By != job.WaitTarget || e.Retry.Waits < job.Minute {
			r.Errorf("%+v, %v", e.Retry, err)
		}
		v := r.Anonymous(1)
		v.Gets()
		r.Pass(end - r.Now())
		v.Gets("a")
	})
}

func TestAHoldEndsAlsoOfAGroupThatIsEmpty(t *testing.T) { // nothing is kept of a group without members
	scenario(t, func(r *rig) {
		r.Add("q", "a", grouped("g"), retry(job.Retry{Limit: job.LimitOf(0)}))
		w := r.Anonymous(1)
		w.Gets("a")
		w.Fails("a", func(s *engine.Settle) { s.RetryAfter = job.Minute })
		r.Expect("a", job.Dead)
		if r.until("q", "g") == 0 {
			r.Fatal("the target is asked again at once")
		}
		r.Pass(job.Minute + 6*job.Second)
		if end := r.until("q", "g"); end != 0 {
			r.Errorf("still held until %d", end)
		}
	})
}

func TestAHolderThatIsEmptiedGoesOnWhenAFailureHoldsTheQueue(t *testing.T) { // core.md section 5
	scenario(t, func(r *rig) {
		r.AddAll("bad", "met")
		x := r.Anonymous(1, "bad")
		x.Gets("met")
		r.AddAll("q", "a", "b")
		w := r.Anonymous(2)
		w.Gets("a", "b")
		r.Poisonous("bad", "poison")
		r.AddAll("q", "c")
		w.OK("a")
		w.Gets() // it is emptied for the one that must be alone
		x.Fails("met", func(s *engine.Settle) { s.RetryAfter = job.Minute })
		w.Gets("c")
	})
}

func TestAWorkersHoldParksTheOthersWhateverBecameOfTheJob(t *testing.T) { // retry.md section 4: a worker's hold
	for _, outcome := range []job.Outcome{job.OK, job.Retried, job.Died, job.Released} {
		for _, group := range []string{"", "g"} {
			t.Run(outcome.String()+group, func(t *testing.T) {
				scenario(t, func(r *rig) {
					own := retry(job.Retry{Curve: wait(1)})
					r.Add("q", "met", grouped(group), own)
					r.Add("q", "spared", grouped(group), own)
					w := r.Named("w", 1)
					w.Gets("met")
					r.Settled(w.Held["met"], outcome, func(s *engine.Settle) { s.Hold = job.Minute })
					w.Gets()
					end := r.until("q", group)
					if least := r.Now() + job.Minute; end < least || end > least+6*job.Second {
						r.Fatalf("held until %d, now %d", end, r.Now())
					}
					r.Pass(end - r.Now() - 1)
					w.Gets()
					r.Pass(1)
					if got := w.Read(); len(got) != 1 {
						r.Errorf("after the hold %v", got)
					}
					if j := r.Job("spared"); j.Attempts != 0 || j.Evictions != 0 {
						r.Errorf("the other job paid for it: %+v", j)
					}
				})
			})
		}
	}
}

func TestOneSettleOfManyHolds(t *testing.T) { // the others of the same call are settled, whatever is held
	scenario(t, func(r *rig) {
		r.AddAll("q", "a", "b", "c")
		w := r.Named("w", 2)
		w.Gets("a", "b")
		list := []engine.Settle{
			{ID: r.IDs["a"], Token: w.Held["a"].Lease.Token, Outcome: job.OK, Hold: job.Minute},
			{ID: r.IDs["b"], Token: w.Held["b"].Lease.Token, Outcome: job.OK, Hold: job.Second},
		}
		verdicts, err := r.Settle(r.Context(), list)
		if err != nil || verdicts[0].Err != nil || verdicts[1].Err != nil {
			r.Fatalf("%+v, %v", verdicts, err)
		}
		if end := r.until("q", ""); end < r.Now()+job.Minute {
			r.Errorf("the shorter hold won: until %d, now %d", end, r.Now())
		}
		w.Gets()
	})
}
