package rule

import (
	"reflect"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

var settles = []Verb{SettleOK, SettleRetry, SettleRelease, SettleDead}

func TestAnOKCompletesTheJob(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "x")
	w.tick(7)
	j := w.ok("a", token)
	if j.State != job.Done || j.CompletedAt != w.now || w.last.Late || len(w.last.Voided) != 0 || len(w.last.Ended) != 1 {
		t.Errorf("%+v, %+v", j, w.last)
	}
}

func TestTheFirstOKWinsAndVoidsEveryOtherCopy(t *testing.T) { // I3
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 3 })
	x, y := w.take("a", "x"), w.take("a", "y")
	w.ok("a", x)
	w.expect("a", "done")
	if len(w.last.Voided) != 1 || w.last.Voided[0] != (Void{w.last.Voided[0].Lease, job.BySupersede}) || w.last.Voided[0].Lease.Token != y || len(w.last.Ended) != 2 {
		t.Errorf("%+v", w.last)
	}
	for _, verb := range settles {
		w.refused(job.Superseded, "a", Command{Verb: verb, Token: y})
	}
}

func TestTheSameTokenWithTheSameOutcomeGetsTheSameAnswer(t *testing.T) { // core.md section 4, Late OK
	for _, verb := range settles {
		w := newWorld(t)
		w.put("a")
		token := w.take("a", "x")
		w.do("a", Command{Verb: verb, Token: token})
		first := w.tell("a")
		w.do("a", Command{Verb: verb, Token: token})
		if !w.last.Repeat {
			t.Errorf("%s was done twice", verb)
		}
		w.expect("a", first)
		for _, other := range settles {
			if other != verb {
				w.refused(job.Superseded, "a", Command{Verb: other, Token: token})
			}
		}
	}
}

func TestTheWinnerOfManyCopiesIsRememberedAmongTheLosers(t *testing.T) { // core.md section 4: same token, same outcome
	for _, verb := range []Verb{SettleOK, SettleDead} {
		w := newWorld(t)
		w.put("a", func(j *job.Job) { j.Copies = 9 })
		var tokens []job.Token
		for _, holder := range []string{"1", "2", "3", "4", "5", "6", "7"} {
			tokens = append(tokens, w.take("a", holder))
		}
		w.loose = true // seven tokens end at once, four are remembered
		w.do("a", Command{Verb: verb, Token: tokens[2]})
		w.do("a", Command{Verb: verb, Token: tokens[2]})
		if !w.last.Repeat {
			t.Errorf("%s: the second answer is another one", verb)
		}
	}
}

func TestARepeatIsHonouredWhileAnotherHolderRunsTheJob(t *testing.T) { // core.md section 4
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "x")
	w.fail("a", token)
	w.due("a", "y")
	w.fail("a", token)
	if !w.last.Repeat {
		t.Error("the second telling of one failure was taken for another failure")
	}
	w.expect("a", "leased leases 1 attempts 1")
}

func TestALateOKTwiceIsTheSameAnswerTwice(t *testing.T) { // core.md section 4: same token, same outcome
	for name, end := range map[string]func(*world){
		"lapse":              func(w *world) { w.lose("a", "x", job.ByLapse) },
		"unknown of a start": func(w *world) { w.lose("a", "x", job.ByRestart); w.jobs["a"].Ended = nil; w.start++ },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("a")
			token := w.take("a", "x")
			end(w)
			w.ok("a", token)
			w.ok("a", token)
			if !w.last.Repeat {
				t.Error("the second answer is another one")
			}
			w.refused(job.Superseded, "a", Command{Verb: SettleRetry, Token: token})
		})
	}
}

func TestALateOKIsHonouredAfterLapseDisconnectAndRestart(t *testing.T) { // core.md section 4, Late OK
	for _, how := range []job.Ending{job.ByLapse, job.ByDisconnect, job.ByRestart} {
		for name, then := range map[string]func(*world){
			"waiting":        func(*world) {},
			"held by others": func(w *world) { w.take("a", "y") },
			"put off":        func(w *world) { w.fail("a", w.take("a", "y")) },
		} {
			t.Run(how.String()+" "+name, func(t *testing.T) {
				w := newWorld(t)
				w.put("a")
				token := w.take("a", "x")
				w.lose("a", "x", how)
				then(w)
				others := len(w.jobs["a"].Leases)
				j := w.ok("a", token)
				if j.State != job.Done || !w.last.Late || len(w.last.Voided) != others || j.Losses != 0 {
					t.Errorf("%+v %+v", j, w.last)
				}
			})
		}
	}
}

func TestOnlyAnOKIsEverHonouredLate(t *testing.T) { // core.md section 4
	for _, how := range []job.Ending{job.ByLapse, job.ByDisconnect, job.ByRestart} {
		for _, verb := range []Verb{SettleRetry, SettleRelease, SettleDead} {
			w := newWorld(t)
			w.put("a")
			token := w.take("a", "x")
			w.lose("a", "x", how)
			w.refused(job.Superseded, "a", Command{Verb: verb, Token: token})
			w.take("a", "y")
			w.refused(job.Superseded, "a", Command{Verb: verb, Token: token})
		}
	}
}

func TestTokensEndedByReleaseRetryCancelOrSupersedeNeverSettleAgain(t *testing.T) { // core.md section 4
	for name, end := range map[string]func(w *world, token job.Token){
		"release": func(w *world, token job.Token) { w.do("a", Command{Verb: SettleRelease, Token: token}) },
		"retry":   func(w *world, token job.Token) { w.fail("a", token) },
		"timeout": func(w *world, _ job.Token) { w.tick(job.Hour); w.do("a", Command{Verb: Lapse}) },
		"cancel":  func(w *world, _ job.Token) { w.do("a", Command{Verb: Cancel}); w.do("a", Command{Verb: Revive}) },
		"supersede": func(w *world, _ job.Token) {
			w.do("a", Command{Verb: Offer})
			w.do("a", Command{Verb: SettleDead, Token: w.take("a", "y")})
			w.do("a", Command{Verb: Revive})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(q *job.Queue) { q.RunTimeout = job.Hour })
			w.put("a")
			token := w.take("a", "x")
			end(w, token)
			if !w.jobs["a"].State.Open() {
				t.Fatal("the job must be open, or nothing is shown")
			}
			w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: token})
		})
	}
}

func TestATerminalJobIsNotSettledLate(t *testing.T) { // core.md section 4: while the job is not terminal
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "x")
	w.lose("a", "x", job.ByDisconnect)
	w.do("a", Command{Verb: SettleDead, Token: w.take("a", "y")})
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: token})
	w.refused(job.NotFound, "a", Command{Verb: SettleOK})
}

func TestLateOKNeverRefusesItWithAndWithoutAToken(t *testing.T) { // core.md section 4, late_ok
	w := newWorld(t, func(q *job.Queue) { q.LateOKNever = true })
	w.put("a")
	token := w.take("a", "x")
	w.lose("a", "x", job.ByDisconnect)
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: token})
	w.refused(job.NotFound, "a", Command{Verb: SettleOK})
	w.start++
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: job.NewToken(1, w.random)})
	w.ok("a", w.take("a", "x")) // a live token settles as ever
}

func TestAnUnknownTokenOfAnEarlierStartCountsAsEndedByRestart(t *testing.T) { // core.md section 4
	w := newWorld(t)
	w.put("a")
	forgotten := job.NewToken(w.start, w.random) // its unsynced take was lost in a crash
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: forgotten})
	w.start++
	w.refused(job.Superseded, "a", Command{Verb: SettleRetry, Token: forgotten})
	w.take("a", "y")
	w.ok("a", forgotten)
	w.expect("a", "done")
}

func TestAJobRemembersTheLastFourTokens(t *testing.T) { // core.md section 4
	w := newWorld(t)
	w.put("a")
	var tokens []job.Token
	for range 6 {
		tokens = append(tokens, w.take("a", "x"))
		w.lose("a", "x", job.ByLapse)
		w.jobs["a"].Isolated = false // not the matter of this test
	}
	if n := len(w.jobs["a"].Ended); n != 4 {
		t.Errorf("%d tokens are remembered", n)
	}
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: tokens[1]})
	w.ok("a", tokens[2])
	w.expect("a", "done")
}

func TestInAStrictGroupALateOKIsHonouredOnlyBeforeANewerTurn(t *testing.T) { // core.md section 4, I7
	w := newWorld(t, strict)
	w.put("a", grouped("g"))
	first := w.take("a", "x")
	w.lose("a", "x", job.ByLapse)
	second := w.take("a", "y")
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: first})
	w.lose("a", "y", job.ByDisconnect)
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: first})
	w.refused(job.TokenNeeded, "a", Command{Verb: SettleOK})
	w.ok("a", second)
	w.expect("a", "done")
}

func TestInAStrictGroupAnUnknownTokenIsNeverHonoured(t *testing.T) { // its takes are synced, so none was forgotten
	w := newWorld(t, strict)
	w.put("a", grouped("g"))
	w.start++
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: job.NewToken(1, w.random)})
}

func TestATurnIsNeverGrantedTwiceEvenWhenItsGroupWasEmptyInBetween(t *testing.T) { // core.md section 4, fencing tokens
	w := newWorld(t, strict)
	w.put("a", grouped("g"))
	w.ok("a", w.take("a", "x"))
	first := w.gates["g"].Turn
	delete(w.gates, "g") // the row of a group without members is forgotten
	w.put("b", grouped("g"))
	w.take("b", "x")
	if second := w.gates["g"].Turn; second <= first {
		t.Errorf("turn %d came after turn %d", second, first)
	}
}

// Settles without a token.

func TestWithoutATokenOnlyAJobWithOneAnonymousLeaseIsSettled(t *testing.T) { // core.md section 4
	for _, verb := range settles {
		w := newWorld(t)
		w.put("a")
		w.take("a", "a/1", of(job.Anonymous))
		w.do("a", Command{Verb: verb})
		for _, kind := range []job.HolderKind{job.Named, job.Unary} {
			w := newWorld(t)
			w.put("a")
			w.take("a", "x", of(kind))
			w.refused(job.TokenNeeded, "a", Command{Verb: verb})
			w.expect("a", "leased leases 1")
		}
	}
}

// A task is settled with the token of its run, whatever became of that run; what
// has no token changes nothing.
func TestTasksAreNeverSettledWithoutAToken(t *testing.T) {
	for name, then := range map[string]func(w *world){
		"runs":             func(*world) {},
		"runs with a copy": func(w *world) { w.do("a", Command{Verb: Offer}) },
		"was brought back by a crash": func(w *world) {
			w.start++
			w.lose("a", "e/1", job.ByRestart)
		},
		"its copies are gone": func(w *world) {
			w.do("a", Command{Verb: Offer})
			w.take("a", "e/2")
			w.lose("a", "e/2", job.ByRestart)
			w.lose("a", "e/1", job.ByRestart)
		},
	} {
		for _, kind := range []job.HolderKind{job.Named, job.Anonymous} {
			w := newWorld(t, seedGrid)
			w.put("a")
			token := w.take("a", "e/1", of(kind))
			then(w)
			before := *w.jobs["a"]
			for _, verb := range settles {
				kind := job.TokenNeeded
				if verb != SettleOK && before.State != job.Leased { // nothing else is ever late
					kind = job.NotFound
				}
				w.refused(kind, "a", Command{Verb: verb})
				w.refused(job.Superseded, "a", Command{Verb: verb, Token: job.NewToken(w.start, w.random)})
			}
			if !reflect.DeepEqual(before, *w.jobs["a"]) {
				t.Errorf("%s: it changed", name)
			}
			if before.State == job.Leased || forgiven[before.Ended[0].How] {
				w.ok("a", token)
			}
		}
	}
}

func TestCopiesStrictOrderAndRequireTokenRefuseSettlesWithoutOne(t *testing.T) { // core.md section 4
	for name, x := range map[string]struct {
		queue func(*job.Queue)
		job   func(*job.Job)
		then  func(*world)
	}{
		"copies": {func(*job.Queue) {}, func(j *job.Job) { j.Copies = 2 }, func(*world) {}},
		"one of two copies left": {func(*job.Queue) {}, func(j *job.Job) { j.Copies = 2 }, func(w *world) {
			w.fail("a", w.take("a", "a/2"))
		}},
		"a copy asked for":      {func(*job.Queue) {}, func(*job.Job) {}, func(w *world) { w.do("a", Command{Verb: Offer}) }},
		"strict order":          {strict, grouped("g"), func(*world) {}},
		"require_token":         {func(q *job.Queue) { q.RequireToken = true }, func(*job.Job) {}, func(*world) {}},
		"require_token is live": {func(*job.Queue) {}, func(*job.Job) {}, func(w *world) { w.queue.RequireToken = true }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, x.queue)
			w.put("a", x.job)
			w.take("a", "a/1")
			x.then(w)
			for _, verb := range settles {
				w.refused(job.TokenNeeded, "a", Command{Verb: verb})
			}
			if w.lose("a", "a/1", job.ByDisconnect); w.jobs["a"].Reschedules == 0 { // else one copy is wanted again
				w.refused(job.TokenNeeded, "a", Command{Verb: SettleOK})
			}
		})
	}
}

func TestAnUngroupedJobOfAStrictQueueIsSettledWithoutAToken(t *testing.T) { // core.md section 2: it has no gate
	w := newWorld(t, strict)
	w.put("a")
	w.take("a", "a/1")
	w.do("a", Command{Verb: SettleOK})
	w.expect("a", "done")
}

func TestWithoutATokenALateOKIsHonouredAfterDisconnectAndRestart(t *testing.T) { // core.md section 4
	for _, how := range []job.Ending{job.ByDisconnect, job.ByRestart} {
		w := newWorld(t)
		w.put("a")
		w.take("a", "a/1")
		w.lose("a", "a/1", how)
		w.do("a", Command{Verb: SettleOK})
		w.expect("a", "done")
		if !w.last.Late {
			t.Errorf("%s: not told as late", how)
		}
	}
}

func TestWithoutATokenAnOKDoesNotReachALapsedLease(t *testing.T) { // core.md section 4: stream lease, disconnect or restart
	for _, kind := range []job.HolderKind{job.Named, job.Unary} {
		w := newWorld(t)
		w.put("a")
		w.take("a", "x", of(kind))
		w.lose("a", "x", job.ByLapse) // only named and unary leases lapse, and those settle by token
		w.refused(job.NotFound, "a", Command{Verb: SettleOK})
		w.expect("a", "ready losses 1")
	}
}

func TestWithoutATokenAFailureForALeaseThatIsGoneChargesNothing(t *testing.T) { // core.md section 4
	for _, verb := range []Verb{SettleRetry, SettleRelease, SettleDead} {
		w := newWorld(t)
		w.put("a")
		w.refused(job.NotFound, "a", Command{Verb: verb})
		w.take("a", "a/1")
		w.lose("a", "a/1", job.ByDisconnect)
		w.refused(job.NotFound, "a", Command{Verb: verb})
		w.expect("a", "ready losses 1")
	}
}

func TestWithoutATokenAnOKForAJobNobodyRanIsNotFound(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	w.refused(job.NotFound, "a", Command{Verb: SettleOK})
	w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "a/1")})
	w.refused(job.NotFound, "a", Command{Verb: SettleOK}) // given back: what it did is undone
}

func TestASettleOfNothingIsNotFound(t *testing.T) {
	w := newWorld(t)
	for _, verb := range settles {
		_, err := Step(w.view(nil), Command{Verb: verb, Token: job.NewToken(1, w.random)})
		if job.KindOf(err) != job.NotFound {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

// Release.

func TestReleaseGivesBackWithoutBlame(t *testing.T) { // core.md section 5
	w := newWorld(t)
	w.put("a")
	j := w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "x")})
	w.expect("a", "ready evictions 1")
	if j.ReadyAt != dawn || j.FailedAt != 0 || j.Failures != 0 {
		t.Errorf("%+v", j)
	}
	w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "x"), After: 30})
	w.expect("a", "scheduled due 30ms evictions 2")
}

func TestReleaseWhileACopyLivesLeavesTheJobLeased(t *testing.T) { // DESIGN section 2, Settle Release
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	x, y := w.take("a", "x"), w.take("a", "y")
	w.do("a", Command{Verb: SettleRelease, Token: x, After: job.Hour})
	w.expect("a", "leased leases 1 evictions 1")
	w.expectLine("a") // the copy that was given back is wanted still
	w.do("a", Command{Verb: SettleRelease, Token: y})
	w.expect("a", "ready evictions 2")
}

func TestACopyThatWasAskedForIsNotWantedOnceAllAreBack(t *testing.T) { // I3
	w := newWorld(t)
	w.put("a")
	x := w.take("a", "x")
	w.do("a", Command{Verb: Offer})
	y := w.take("a", "y")
	w.do("a", Command{Verb: SettleRelease, Token: x})
	w.do("a", Command{Verb: SettleRelease, Token: y})
	w.take("a", "x")
	w.expectLine()
}

func TestWhatATargetGivesBackWithoutATimeWaitsForTheGrace(t *testing.T) { // core.md section 6, inbox.md 7
	for _, c := range []struct {
		grace, after job.Millis
		byTarget     bool
		want         string
	}{
		{0, 0, true, "scheduled due 6s evictions 1"},
		{job.Second, 0, true, "scheduled due 1s evictions 1"}, // it is polled
		{0, 2 * job.Second, true, "scheduled due 2s evictions 1"},
		{0, 0, false, "ready evictions 1"}, // by its worker
	} {
		w := newWorld(t, func(q *job.Queue) { q.GraceDelay = c.grace })
		w.put("a")
		w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "x"), After: c.after, ByTarget: c.byTarget})
		w.expect("a", c.want)
	}
}
