package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestPutIsReadyAtOnceOrScheduledUntilItsDueTime(t *testing.T) {
	w := newWorld(t)
	if j := w.put("now"); j.State != job.Ready || j.ReadyAt != dawn || j.Created != dawn {
		t.Errorf("now: %+v", j)
	}
	if j := w.put("past", func(j *job.Job) { j.ReadyAt = dawn - 5 }); j.State != job.Ready || j.ReadyAt != dawn-5 {
		t.Errorf("past: %+v", j)
	}
	if j := w.put("on time", func(j *job.Job) { j.ReadyAt = dawn }); j.State != job.Ready {
		t.Errorf("on time: %+v", j)
	}
	w.put("later", func(j *job.Job) { j.ReadyAt = dawn + 1 })
	w.expect("later", "scheduled due 1ms")
}

func TestPutWantsAtLeastOneCopy(t *testing.T) {
	w := newWorld(t)
	if j := w.put("a"); j.Copies != 1 || j.CopiesWanted != 1 {
		t.Errorf("%d copies, %d wanted", j.Copies, j.CopiesWanted)
	}
	if j := w.put("b", func(j *job.Job) { j.Copies = 3 }); j.Copies != 3 || j.CopiesWanted != 3 {
		t.Errorf("%d copies, %d wanted", j.Copies, j.CopiesWanted)
	}
}

func TestPutRemembersTheOrderOfItsQueueForMembersOfAGroupOnly(t *testing.T) { // core.md section 2
	w := newWorld(t, strict)
	if j := w.put("member", grouped("g")); j.Order != job.OrderStrict {
		t.Errorf("a member has order %s", j.Order)
	}
	if j := w.put("alone"); j.Order != job.OrderNone {
		t.Errorf("an ungrouped job has order %s: it has no gate", j.Order)
	}
}

func TestTakeGrantsAFreshLease(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	w.tick(5)
	token := w.take("a", "h")
	j := w.jobs["a"]
	l := j.Leases[0]
	if j.State != job.Leased || j.Deliveries != 1 || j.DequeuedAt != dawn+5 {
		t.Errorf("%+v", j)
	}
	if l.Token != token || l.Holder != "h" || l.Since != dawn+5 || l.RunEnd != 0 || l.StartBy != 0 || l.Turn != 0 {
		t.Errorf("%+v", l)
	}
	w.refused(job.WrongState, "a", Command{Verb: Take, Lease: w.lease("other")})
}

func TestTheTimeoutsOfTheJobWinOverThoseOfItsQueue(t *testing.T) { // core.md section 4, Timeouts
	w := newWorld(t, func(q *job.Queue) { q.RunTimeout, q.StartTimeout = job.Minute, job.Second })
	w.steady += 77 // leases are measured on the steady clock, not on the date
	w.put("queue's")
	w.put("own", func(j *job.Job) { j.RunTimeout, j.StartTimeout = 9, 4 })
	w.take("queue's", "h")
	w.take("own", "h")
	if l := w.jobs["queue's"].Leases[0]; l.RunEnd != w.steady+job.Minute || l.StartBy != w.steady+job.Second {
		t.Errorf("queue's: %+v", l)
	}
	if l := w.jobs["own"].Leases[0]; l.RunEnd != w.steady+9 || l.StartBy != w.steady+4 {
		t.Errorf("own: %+v", l)
	}
}

func TestExtendMovesTheEndOfAUnaryLeaseOnly(t *testing.T) {
	w := newWorld(t)
	w.put("unary")
	w.put("stream")
	unary := w.take("unary", "u/1", of(job.Unary), func(l *job.Lease) { l.Until = w.steady + 100 })
	stream := w.take("stream", "a/1")
	w.tick(60)
	w.do("unary", Command{Verb: Extend, Token: unary, Until: w.steady + 100})
	w.do("stream", Command{Verb: Extend, Token: stream, Until: w.steady + 100})
	if got := w.jobs["unary"].Leases[0].Until; got != dawn+160 {
		t.Errorf("the unary lease ends at %d", got-dawn)
	}
	if got := w.jobs["stream"].Leases[0].Until; got != 0 {
		t.Errorf("a lease that follows its holder got an end of its own: %d", got)
	}
}

func TestOnlyALiveTokenExtends(t *testing.T) { // I2
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "h")
	w.refused(job.Superseded, "a", Command{Verb: Extend})
	w.refused(job.Superseded, "a", Command{Verb: Extend, Token: job.NewToken(3, w.random)})
	w.lose("a", "h", job.ByLapse)
	w.take("a", "other")
	w.refused(job.Superseded, "a", Command{Verb: Extend, Token: token})
}

func TestTheRunTimeoutCountsFromStartedIfTheHolderSaysSo(t *testing.T) { // core.md section 4, Timeouts
	w := newWorld(t, func(q *job.Queue) { q.RunTimeout, q.StartTimeout = 1000, 300 })
	w.put("a")
	token := w.take("a", "h")
	w.tick(200)
	w.do("a", Command{Verb: Extend, Token: token, Started: true})
	if l := w.jobs["a"].Leases[0]; l.Started != dawn+200 || l.StartBy != 0 || l.RunEnd != dawn+1200 {
		t.Fatalf("%+v", l)
	}
	w.tick(100)
	w.do("a", Command{Verb: Extend, Token: token, Started: true}) // said twice
	if l := w.jobs["a"].Leases[0]; l.Started != dawn+200 || l.RunEnd != dawn+1200 {
		t.Errorf("saying it again moved the end: %+v", l)
	}
	w.tick(900 - 1)
	w.refused(job.WrongState, "a", Command{Verb: Lapse})
	w.tick(1)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "scheduled due 15s attempts 1")
}

func TestTheRunTimeoutIsThatInForceWhenTheRunBegins(t *testing.T) { // core.md section 4, Timeouts
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "h")
	w.do("a", Command{Verb: Patch, Edit: func(j *job.Job) { j.RunTimeout = 500 }})
	w.tick(200)
	w.do("a", Command{Verb: Extend, Token: token, Started: true})
	if l := w.jobs["a"].Leases[0]; l.RunEnd != dawn+700 {
		t.Errorf("a timeout that came after the lease: %+v", l)
	}
	w.put("b", func(j *job.Job) { j.RunTimeout = 500 })
	token = w.take("b", "h")
	w.do("b", Command{Verb: Patch, Edit: func(j *job.Job) { j.RunTimeout = 0 }})
	w.do("b", Command{Verb: Extend, Token: token, Started: true})
	if l := w.jobs["b"].Leases[0]; l.RunEnd != 0 {
		t.Errorf("a timeout that was taken away: %+v", l)
	}
}

func TestPromoteComesAtItsTimeAndNotBefore(t *testing.T) { // I6
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.ReadyAt = dawn + 10 })
	w.tick(9)
	w.refused(job.WrongState, "a", Command{Verb: Promote})
	w.tick(1)
	if j := w.do("a", Command{Verb: Promote}); j.State != job.Ready || j.ReadyAt != dawn+10 {
		t.Errorf("%+v", j)
	}
}

func TestExpireComesAtItsTimeAndNotBefore(t *testing.T) { // I6
	w := newWorld(t)
	w.put("never")
	w.put("ready", func(j *job.Job) { j.ExpiresAt = dawn + 10 })
	w.put("scheduled", func(j *job.Job) { j.ExpiresAt, j.ReadyAt = dawn+10, dawn+100 })
	w.tick(9)
	w.refused(job.WrongState, "ready", Command{Verb: Expire})
	w.tick(1)
	w.do("ready", Command{Verb: Expire})
	w.do("scheduled", Command{Verb: Expire})
	w.expect("ready", "dead expired")
	w.expect("scheduled", "dead expired")
	w.tick(job.Day)
	w.refused(job.WrongState, "never", Command{Verb: Expire})
}

func TestOfferAsksForOneMoreCopyAndCountsAReschedule(t *testing.T) { // core.md section 5
	w := newWorld(t)
	w.put("a")
	w.take("a", "x")
	w.expectLine()
	w.do("a", Command{Verb: Offer})
	w.expect("a", "leased leases 1 reschedules 1")
	w.expectLine("a")
	w.refused(job.WrongState, "a", Command{Verb: Take, Lease: w.lease("x")}) // not to the same holder
	w.take("a", "y")
	w.expect("a", "leased leases 2 reschedules 1")
	w.expectLine()
	w.refused(job.WrongState, "a", Command{Verb: Take, Lease: w.lease("z")}) // I3
}

func TestOfferIsBounded(t *testing.T) {
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 255 })
	w.take("a", "x")
	w.refused(job.OverLimit, "a", Command{Verb: Offer})
}

func TestReviveStartsTheCountersAgainAndKeepsTheHistory(t *testing.T) { // I4, core.md section 6 point 4
	w := newWorld(t)
	w.put("a", retry(job.Retry{Limit: job.LimitOf(1), Curve: wait(10)}))
	w.fail("a", w.take("a", "x"), func(c *Command) { c.RetryAt = w.now + 1 })
	w.tick(1)
	w.do("a", Command{Verb: Promote})
	w.lose("a", heldBy(w.take("a", "x"), "x"), job.ByDisconnect)
	w.fail("a", w.take("a", "x"))
	w.expect("a", "dead exhausted attempts 2 overrides 1")
	w.tick(job.Minute)
	j := w.do("a", Command{Verb: Revive})
	w.expect("a", "ready")
	if j.Failures != 2 || j.Deliveries != 3 || j.RevivedAt != w.now || j.PurgeAt != 0 || j.ReadyAt != w.now || j.LastDelay != 0 {
		t.Errorf("%+v", j)
	}
}

// heldBy only makes the story read well: the token is not needed.
func heldBy(_ job.Token, holder string) string { return holder }

func TestReviveBringsAScheduledJobForwardAndChargesNothing(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	w.fail("a", w.take("a", "x"))
	w.expect("a", "scheduled due 15s attempts 1")
	j := w.do("a", Command{Verb: Revive})
	w.expect("a", "ready attempts 1")
	if j.RevivedAt != 0 || j.ReadyAt != w.now {
		t.Errorf("%+v", j)
	}
}

func TestAnExpiredJobThatIsRevivedMayRun(t *testing.T) {
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.ExpiresAt = dawn + 5 })
	w.tick(5)
	w.do("a", Command{Verb: Expire})
	if j := w.do("a", Command{Verb: Revive}); j.ExpiresAt != 0 {
		t.Errorf("it would expire at once: %d", j.ExpiresAt)
	}
	w.put("b", func(j *job.Job) { j.ExpiresAt = w.now + 50 })
	w.do("b", Command{Verb: SettleDead, Token: w.take("b", "x")})
	if j := w.do("b", Command{Verb: Revive}); j.ExpiresAt != w.now+50 {
		t.Errorf("an expiry still ahead was dropped")
	}
}

func TestAReviveWantsTheCopiesItWasPutWith(t *testing.T) {
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 2 }, retry(job.Retry{Limit: job.LimitOf(0)}))
	x, y := w.take("a", "x"), w.take("a", "y")
	w.fail("a", x)
	w.fail("a", y)
	w.expect("a", "dead exhausted attempts 2")
	if j := w.do("a", Command{Verb: Revive}); j.CopiesWanted != 2 {
		t.Errorf("%d copies wanted", j.CopiesWanted)
	}
}

func TestCancelVoidsEveryTokenAndChargesNothing(t *testing.T) { // core.md section 4
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	x, y := w.take("a", "x"), w.take("a", "y")
	w.do("a", Command{Verb: Cancel})
	w.expect("a", "dead cancelled")
	if len(w.last.Voided) != 2 {
		t.Errorf("voided %+v", w.last.Voided)
	}
	for _, token := range []job.Token{x, y} {
		w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: token})
		w.refused(job.Superseded, "a", Command{Verb: SettleRetry, Token: token})
	}
}

func TestCancelNotesWhyIfTold(t *testing.T) { // I9
	w := newWorld(t)
	w.put("a")
	w.do("a", Command{Verb: Cancel, Reason: job.Evicted, Failure: job.Failure{Type: "Evicted", Message: "full"}})
	w.expect("a", "dead evicted")
	if f := w.failure(); f == nil || f.Number != 1 || f.Message != "full" || f.Failed != w.now {
		t.Errorf("noted %+v", f)
	}
}

func TestPatchMovesAWaitingJobToWhereItsNewDueTimePutsIt(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	later := func(j *job.Job) { j.ReadyAt = dawn + job.Hour }
	w.do("a", Command{Verb: Patch, Edit: later})
	w.expect("a", "scheduled due 1h")
	w.do("a", Command{Verb: Patch, Edit: func(j *job.Job) { j.ReadyAt = 0 }})
	w.expect("a", "ready")
	w.take("a", "x")
	if j := w.do("a", Command{Verb: Patch, Edit: later}); j.State != job.Leased || len(j.Leases) != 1 {
		t.Errorf("patching a running job stopped it: %+v", j)
	}
}

func TestRetentionIsTheJobsThenTheQueuesThenTheServers(t *testing.T) { // retry.md section 2
	for _, x := range []struct{ own, queue, server, want job.Millis }{
		{job.Unset, job.Unset, 30, 30},
		{job.Unset, 20, 30, 20},
		{10, 20, 30, 10},
		{0, 20, 30, 0},
		{job.Unset, 0, 30, 0},
		{job.Unset, job.Unset, 0, 0},
	} {
		for _, verb := range []Verb{SettleOK, SettleDead} {
			w := newWorld(t, func(q *job.Queue) { q.RetainDone, q.RetainDead = x.queue, x.queue })
			w.server.RetainDone, w.server.RetainDead = x.server, x.server
			w.put("a", func(j *job.Job) { j.RetainDone, j.RetainDead = x.own, x.own })
			w.do("a", Command{Verb: verb, Token: w.take("a", "h")})
			j, gone := w.jobs["a"], w.last.Gone
			switch {
			case x.want == 0 && (j != nil || gone == job.None):
				t.Errorf("%s %+v: it is still there", verb, x)
			case x.want > 0 && (j == nil || j.PurgeAt != dawn+x.want || gone != job.None):
				t.Errorf("%s %+v: %+v", verb, x, j)
			}
		}
	}
}

func TestPurgeTellsWhatLeft(t *testing.T) { // I9
	w := newWorld(t)
	w.put("a")
	w.ok("a", w.take("a", "h"))
	w.do("a", Command{Verb: Purge})
	w.expect("a", "gone")
	if w.last.Gone != job.Done {
		t.Errorf("gone as %s", w.last.Gone)
	}
}

func TestTheServersDefaultsAreThoseOfTheSpecification(t *testing.T) {
	s := DefaultServer()
	limit, bounded := s.Retry.LimitValue()
	if s.RetainDead != 7*job.Day || s.RetainDone != 0 || s.GraceDelay != 6*job.Second ||
		!bounded || limit != 25 || s.Retry.LossLimitValue() != 20 {
		t.Errorf("%+v", s)
	}
}

func TestARevivedJobTakesTheOrderItsQueueHasNow(t *testing.T) { // core.md section 2: all members have the same
	w := newWorld(t)
	w.put("a", grouped("g"))
	w.do("a", Command{Verb: Cancel})
	w.queue.Order = job.OrderStrict
	if j := w.do("a", Command{Verb: Revive}); j.Order != job.OrderStrict {
		t.Errorf("it came back with order %s", j.Order)
	}
}
