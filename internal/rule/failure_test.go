package rule

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reprisehq/reprise/internal/job"
)

func limited(n uint32, c *job.Curve) func(*job.Job) {
	return retry(job.Retry{Limit: job.LimitOf(n), Curve: c})
}

func TestAFailureIsChargedAndWaitsByItsCurve(t *testing.T) {
	w := newWorld(t)
	w.dice = 0.5
	w.put("a")
	j := w.fail("a", w.take("a", "x"))
	w.expect("a", "scheduled due 15s attempts 1") // the first retry of Zizq's curve has no jitter
	if j.FailedAt != dawn || j.LastDelay != 15*job.Second {
		t.Errorf("%+v", j)
	}
	w.fail("a", w.due("a", "x"))
	w.expect("a", "scheduled due 31s attempts 2") // 15 s + 1^4 s + 1 * 0.5 * 30 s
}

func TestTheLimitIsTheNumberOfRetriesAfterTheFirstAttempt(t *testing.T) { // retry.md section 1
	for _, limit := range []uint32{0, 1, 3} {
		w := newWorld(t)
		w.put("a", limited(limit, wait(job.Second)))
		for range limit {
			if w.fail("a", w.due("a", "x")); w.jobs["a"].State != job.Scheduled {
				t.Fatalf("limit %d: %s", limit, w.tell("a"))
			}
		}
		j := w.fail("a", w.due("a", "x"))
		if j.State != job.Dead || j.Reason != job.Exhausted || j.Attempts != limit+1 {
			t.Errorf("limit %d: %s", limit, w.tell("a"))
		}
	}
}

func TestUnlimitedRetriesNeverEnd(t *testing.T) {
	w := newWorld(t)
	w.put("a", retry(job.Retry{Limit: job.Unlimited(), Curve: wait(1)}))
	for range 500 {
		w.fail("a", w.due("a", "x"))
	}
	w.expect("a", "scheduled due 1ms attempts 500")
}

func TestTheMostSpecificPolicyWinsFieldByFieldAndTheCurveWhole(t *testing.T) { // retry.md section 1
	w := newWorld(t, func(q *job.Queue) {
		q.Retry = job.Retry{Limit: job.LimitOf(9), Curve: &job.Curve{Kind: job.CurveLinear, Base: 100, Step: 50}}
	})
	w.put("a", retry(job.Retry{Curve: &job.Curve{Kind: job.CurveLinear, Base: 7}}))
	w.put("b", retry(job.Retry{Limit: job.LimitOf(0)}))
	w.put("c")
	w.fail("a", w.take("a", "x"))
	w.fail("b", w.take("b", "x"))
	w.fail("c", w.take("c", "x"))
	w.expect("a", "scheduled due 7ms attempts 1")
	w.expect("b", "dead exhausted attempts 1")
	w.expect("c", "scheduled due 100ms attempts 1")
	w.fail("a", w.due("a", "x"))
	w.expect("a", "scheduled due 7ms attempts 2") // its own curve has no step; the queue's is not mixed in
}

func TestAChangedQueuePolicyHoldsForJobsThatDidNotOverrideIt(t *testing.T) { // retry.md section 1
	w := newWorld(t)
	w.put("a")
	w.queue.Retry.Limit = job.LimitOf(0)
	w.fail("a", w.take("a", "x"))
	w.expect("a", "dead exhausted attempts 1")
}

// Point 1: grace.

func TestInsideGraceNothingIsChargedAndTheJobComesBackAfterGraceDelay(t *testing.T) { // core.md section 6, point 1
	w := newWorld(t)
	w.put("a", limited(0, nil), func(j *job.Job) { j.GraceUntil = dawn + 10*job.Second })
	w.fail("a", w.take("a", "x"))
	w.expect("a", "scheduled due 6s suppressed 1")
	w.fail("a", w.due("a", "x"))
	w.expect("a", "scheduled due 6s suppressed 2")
	w.fail("a", w.due("a", "x")) // 12 s: grace is over
	w.expect("a", "dead exhausted attempts 1 suppressed 2")
}

func TestGraceEndsExactlyAtItsTime(t *testing.T) { // I6
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.GraceUntil = dawn + 10 })
	w.put("b", func(j *job.Job) { j.GraceUntil = dawn + 10 })
	a, b := w.take("a", "x"), w.take("b", "y")
	w.tick(9)
	w.fail("a", a)
	w.tick(1)
	w.fail("b", b)
	w.expect("a", "scheduled due 5.999s suppressed 1")
	w.expect("b", "scheduled due 15s attempts 1")
}

func TestGraceComesBeforeLimitAndMaxAge(t *testing.T) { // core.md section 6, points 1 and 4
	w := newWorld(t)
	w.put("a", retry(job.Retry{Limit: job.LimitOf(0), MaxAge: 1}), func(j *job.Job) { j.GraceUntil = dawn + job.Hour })
	w.tick(job.Minute)
	w.fail("a", w.take("a", "x"))
	w.expect("a", "scheduled due 6s suppressed 1")
}

func TestARunTimeoutInsideGraceIsSuppressedToo(t *testing.T) { // core.md section 5: always charged except inside grace
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.GraceUntil, j.RunTimeout = dawn+job.Hour, job.Second })
	w.take("a", "x")
	w.tick(job.Second)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "scheduled due 6s suppressed 1")
}

// Point 2: kill.

func TestAKillInsideGraceIsDead(t *testing.T) { // docs/adr/0005
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.GraceUntil = dawn + job.Hour })
	w.do("a", Command{Verb: SettleDead, Token: w.take("a", "x"), Failure: job.Failure{Type: "E", Message: "no"}})
	w.expect("a", "dead killed attempts 1")
}

func TestAKillIsDeadAtOnceWhateverTheLimit(t *testing.T) { // core.md section 6, point 2
	w := newWorld(t)
	w.put("a", retry(job.Retry{Limit: job.Unlimited()}))
	w.do("a", Command{Verb: SettleDead, Token: w.take("a", "x"), Failure: job.Failure{Type: "E", Message: "no"}})
	w.expect("a", "dead killed attempts 1")
	if f := w.failure(); f == nil || f.Message != "no" || f.Attempt != 1 || f.Holder != "x" {
		t.Errorf("%+v", f)
	}
}

// Point 4: limit and max_age.

func TestMaxAgeIsMeasuredAtTheNextDueTime(t *testing.T) { // core.md section 6, point 4
	for _, x := range []struct {
		age  job.Millis
		want string
	}{
		{30*job.Second - 1, "dead exhausted attempts 2"},
		{30 * job.Second, "scheduled due 10s attempts 2"},
	} {
		w := newWorld(t)
		w.put("a", retry(job.Retry{MaxAge: x.age, Curve: wait(10 * job.Second)}))
		w.fail("a", w.take("a", "x"))
		w.tick(10 * job.Second)
		w.fail("a", w.due("a", "x"), func(*Command) { w.tick(10 * job.Second) })
		w.expect("a", x.want)
	}
}

func TestMaxAgeCountsFromTheLatestRevive(t *testing.T) { // core.md section 6, point 4
	w := newWorld(t)
	w.put("a", retry(job.Retry{MaxAge: job.Minute, Curve: wait(40 * job.Second)}))
	w.fail("a", w.take("a", "x"))
	w.fail("a", w.due("a", "x"))
	w.expect("a", "dead exhausted attempts 2")
	w.tick(job.Day)
	w.do("a", Command{Verb: Revive})
	w.fail("a", w.take("a", "x"))
	w.expect("a", "scheduled due 40s attempts 1")
}

func TestMaxAgeLooksAtTheRetryAfterOfATargetToo(t *testing.T) { // core.md section 6, points 4 and 6
	w := newWorld(t)
	w.put("a", retry(job.Retry{MaxAge: job.Minute, Curve: wait(1)}))
	w.fail("a", w.take("a", "x"), func(c *Command) { c.After = job.Hour })
	w.expect("a", "dead exhausted attempts 1")
}

// Point 5: the worker's own time.

func TestAWorkersOwnTimeWinsOverTheCurveEvenPastTheLimit(t *testing.T) { // core.md section 6, point 5
	w := newWorld(t)
	w.put("a", retry(job.Retry{Limit: job.LimitOf(0), MaxAge: 1}))
	own := func(c *Command) { c.RetryAt = w.now + 77 }
	w.fail("a", w.take("a", "x"), own)
	w.expect("a", "scheduled due 77ms attempts 1 overrides 1")
	w.fail("a", w.due("a", "x"), own)
	w.expect("a", "scheduled due 77ms attempts 2 overrides 2")
	w.fail("a", w.due("a", "x"))
	w.expect("a", "dead exhausted attempts 3 overrides 2")
}

func TestAWorkersOwnTimeCountsAThousandTimesAJob(t *testing.T) { // core.md section 6, point 5
	w := newWorld(t)
	w.put("a", limited(0, nil))
	own := func(c *Command) { c.RetryAt = w.now + 1 }
	for n := range 1000 {
		if w.fail("a", w.due("a", "x"), own); w.jobs["a"].State != job.Scheduled {
			t.Fatalf("override %d: %s", n+1, w.tell("a"))
		}
	}
	w.fail("a", w.due("a", "x"), own)
	w.expect("a", "dead exhausted attempts 1001 overrides 1000")
	w.put("b", limited(9, nil))
	w.jobs["b"].Overrides = 1000
	if j := w.fail("b", w.due("b", "x"), own); j.Wait.By != job.WaitCurve || j.ReadyAt == w.now+1 || j.Overrides != 1000 {
		t.Errorf("a worker chose the time once more: %+v", j)
	}
	w.put("c")
	past := func(c *Command) { c.RetryAt = 1 }
	if j := w.fail("c", w.due("c", "x"), past); j.Wait.By != job.WaitWorker {
		t.Errorf("a time that is over is not the worker's: %+v", j)
	}
}

func TestAWorkersOwnTimeInThePastIsDueAtOnce(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	j := w.fail("a", w.take("a", "x"), func(c *Command) { c.RetryAt = 5 })
	if j.State != job.Scheduled || EntriesOf(j).Timer[HandDue] > w.now {
		t.Errorf("%+v", j)
	}
	w.do("a", Command{Verb: Promote})
}

func TestAWorkersOwnTimeInsideGraceIsNotCountedAsAnOverride(t *testing.T) { // core.md section 6: grace is decided first
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.GraceUntil = dawn + job.Hour })
	w.fail("a", w.take("a", "x"), func(c *Command) { c.RetryAt = w.now + 77 })
	w.expect("a", "scheduled due 6s suppressed 1")
}

// Point 6: floors.

func TestRetryAfterIsAFloorUnderEveryOtherTime(t *testing.T) { // core.md section 6, point 6
	for name, x := range map[string]struct {
		edit  func(*Command)
		grace bool
		want  string
	}{
		"under the curve":    {func(c *Command) { c.After = 5 * job.Second }, false, "scheduled due 15s attempts 1"},
		"above the curve":    {func(c *Command) { c.After = 50 * job.Second }, false, "scheduled due 50s attempts 1"},
		"above an own time":  {func(c *Command) { c.After, c.RetryAt = 50, dawn+20 }, false, "scheduled due 50ms attempts 1 overrides 1"},
		"below an own time":  {func(c *Command) { c.After, c.RetryAt = 50, dawn+90 }, false, "scheduled due 90ms attempts 1 overrides 1"},
		"above grace's wait": {func(c *Command) { c.After = 50 * job.Second }, true, "scheduled due 50s suppressed 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("a", func(j *job.Job) {
				if x.grace {
					j.GraceUntil = dawn + job.Hour
				}
			})
			w.fail("a", w.take("a", "x"), x.edit)
			w.expect("a", x.want)
		})
	}
}

func TestAFarRetryTimeDoesNotOverflow(t *testing.T) { // retry.md section 1: arithmetic saturates
	w := newWorld(t)
	w.put("a", retry(job.Retry{Curve: wait(job.MaxMillis), MaxAge: job.MaxMillis}))
	j := w.fail("a", w.take("a", "x"), func(c *Command) { c.After = job.MaxMillis })
	if j.State != job.Scheduled || j.ReadyAt != job.MaxMillis {
		t.Errorf("%+v", j)
	}
}

// Expiry.

func TestExpiryWhileLeasedDoesNotStopTheRun(t *testing.T) { // core.md section 4, Timeouts
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.ExpiresAt = dawn + 5 })
	w.put("b", func(j *job.Job) { j.ExpiresAt = dawn + 5 })
	a, b := w.take("a", "x"), w.take("b", "y")
	w.tick(10)
	w.refused(job.WrongState, "a", Command{Verb: Expire})
	if at := EntriesOf(w.jobs["a"]).Timer[HandExpire]; at != 0 {
		t.Errorf("the clock looks at a running job at %d", at)
	}
	w.ok("a", a)
	w.expect("a", "done")
	w.fail("b", b, func(c *Command) { c.RetryAt = w.now + 1 })
	w.expect("b", "dead expired attempts 1")
}

// Copies.

func TestAFailedCopyIsChargedAndTheLastLiveCopyDecides(t *testing.T) { // core.md section 5, attempts
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 3 }, limited(1, nil))
	x, y, z := w.take("a", "x"), w.take("a", "y"), w.take("a", "z")
	w.fail("a", x)
	w.expect("a", "leased leases 2 attempts 1")
	w.fail("a", y)
	w.expect("a", "leased leases 1 attempts 2") // past its limit, and not dead
	w.expectLine()                              // not put in line
	w.fail("a", z)
	w.expect("a", "dead exhausted attempts 3")
}

func TestALastCopyThatSucceedsSavesAJobPastItsLimit(t *testing.T) { // core.md section 5, attempts
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 2 }, limited(0, nil))
	x, y := w.take("a", "x"), w.take("a", "y")
	w.fail("a", x)
	w.ok("a", y)
	w.expect("a", "done attempts 1")
}

func TestAfterAllCopiesFailedAsManyAreWantedAgain(t *testing.T) {
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	x, y := w.take("a", "x"), w.take("a", "y")
	w.fail("a", x)
	w.fail("a", y)
	w.due("a", "x")
	w.expectLine("a")
}

// Places (core.md section 1).

func TestAPolicysPlaceIsWhereARetryStands(t *testing.T) {
	now := &job.Curve{Kind: job.CurveConstant}
	for place, want := range map[job.Place][]string{
		job.PlaceKeep: {"a", "b"}, job.PlaceFront: {"a", "b"}, job.PlaceBack: {"b", "a"},
	} {
		w := newWorld(t)
		w.put("a", retry(job.Retry{Place: place, Curve: now}))
		w.put("b")
		w.fail("a", w.take("a", "x"))
		w.expectLine(want...)
	}
}

func TestTheSettlesPlaceWinsOverThePolicys(t *testing.T) {
	w := newWorld(t)
	w.put("a", retry(job.Retry{Place: job.PlaceBack, Curve: &job.Curve{Kind: job.CurveConstant}}))
	w.put("b")
	w.fail("a", w.take("a", "x"), func(c *Command) { c.Place = job.PlaceKeep })
	w.expectLine("a", "b")
}

func TestAnImmediateRetryStandsAtTheFrontUnlessToldOtherwise(t *testing.T) { // retry.md section 1, kind immediate
	immediate := &job.Curve{Kind: job.CurveImmediate}
	for name, x := range map[string]struct {
		queue, own job.Retry
		band       uint8
	}{
		"of the job":           {own: job.Retry{Curve: immediate}, band: job.BandFront},
		"of the queue":         {queue: job.Retry{Curve: immediate}, band: job.BandFront},
		"place keep":           {own: job.Retry{Curve: immediate, Place: job.PlaceKeep}, band: job.BandNormal},
		"place keep, by queue": {queue: job.Retry{Place: job.PlaceKeep}, own: job.Retry{Curve: immediate}, band: job.BandNormal},
		"another curve":        {own: job.Retry{Curve: wait(0)}, band: job.BandNormal},
	} {
		w := newWorld(t, func(q *job.Queue) { q.Retry = x.queue })
		w.put("a", retry(x.own))
		if j := w.fail("a", w.take("a", "x")); j.State != job.Ready || j.Band != x.band {
			t.Errorf("%s: %s in band %d", name, j.State, j.Band)
		}
	}
}

// Failure records.

func TestAFailureRecordSaysWhatWhoAndWhen(t *testing.T) { // retry.md section 2
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "w/1")
	w.tick(100)
	w.do("a", Command{
		Verb: SettleRetry, Token: token, RunStart: dawn + 30,
		Failure: job.Failure{Type: "IOError", Message: "m", Backtrace: "b", Status: 503, Number: 9, Holder: "forged", Failed: 1},
	})
	want := job.Failure{
		Number: 1, Attempt: 1, Type: "IOError", Message: "m", Backtrace: "b", Status: 503,
		Holder: "w/1", Started: dawn + 30, Failed: dawn + 100,
	}
	if got := w.failure(); got == nil || *got != want {
		t.Errorf("%+v", got)
	}
}

func TestARunThatNobodySaidHasStartedStartedWithItsLease(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	w.tick(10)
	token := w.take("a", "x")
	w.tick(10)
	w.fail("a", token)
	if got := w.failure().Started; got != dawn+10 {
		t.Errorf("started %d", got-dawn)
	}
}

func TestTheFirstAndTheLastFiftyFailureRecordsAreKept(t *testing.T) { // retry.md section 2
	w := newWorld(t)
	w.put("a", retry(job.Retry{Limit: job.Unlimited(), Curve: wait(1)}))
	kept := map[uint32]bool{}
	for n := uint32(1); n <= 130; n++ {
		w.fail("a", w.due("a", "x"))
		kept[w.failure().Number] = true
		delete(kept, OutdatedBy(w.failure().Number))
		if want := min(n, 51); len(kept) != int(want) || !kept[1] || !kept[n] || !kept[max(1, n-min(n, 50)+1)] {
			t.Fatalf("after %d failures %d are kept: %v", n, len(kept), kept)
		}
	}
}

func TestMessageAndBacktraceAreBoundedTogether(t *testing.T) { // retry.md section 2, error_bytes_max
	const most = job.ErrorBytesMax
	for _, x := range []struct{ message, backtrace, wantMessage, wantBacktrace int }{
		{10, 20, 10, 20},
		{10, most, 10, most - 10},
		{most, 5, most, 0},
		{most + 5, 5, most, 0},
		{0, most + 1, 0, most},
	} {
		w := newWorld(t)
		w.put("a")
		w.fail("a", w.take("a", "x"), func(c *Command) {
			c.Failure = job.Failure{Message: strings.Repeat("m", x.message), Backtrace: strings.Repeat("b", x.backtrace)}
		})
		if f := w.failure(); len(f.Message) != x.wantMessage || len(f.Backtrace) != x.wantBacktrace {
			t.Errorf("%+v: %d and %d bytes", x, len(f.Message), len(f.Backtrace))
		}
	}
}

func TestABoundedTextIsStillText(t *testing.T) {
	long := "x" + strings.Repeat("é", job.ErrorBytesMax)
	for _, f := range []job.Failure{{Message: long}, {Message: "m", Backtrace: "y" + long}} {
		w := newWorld(t)
		w.put("a")
		w.fail("a", w.take("a", "x"), func(c *Command) { c.Failure = f })
		if got := w.failure(); !utf8.ValidString(got.Message) || !utf8.ValidString(got.Backtrace) {
			t.Errorf("it was cut inside a character: %q", got.Message[len(got.Message)-1:])
		}
	}
}
