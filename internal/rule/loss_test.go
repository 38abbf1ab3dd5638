package rule

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func lossLimited(n uint32) func(*job.Job) {
	return retry(job.Retry{LossLimit: job.LimitOf(n), Limit: job.LimitOf(0)})
}

// loseOnce takes the job, alone if it asks for that, and loses it.
func (w *world) loseOnce(name string, how job.Ending) {
	w.Helper()
	alone := w.jobs[name].Isolated
	w.take(name, "x", func(l *job.Lease) { l.Exclusive = alone })
	w.lose(name, "x", how)
}

func TestOnlyLapseAndDisconnectAreLosses(t *testing.T) { // core.md section 5
	for how, want := range map[job.Ending]string{
		job.ByLapse: "ready losses 1", job.ByDisconnect: "ready losses 1", job.ByRestart: "ready",
	} {
		w := newWorld(t)
		w.put("a")
		w.loseOnce("a", how)
		w.expect("a", want)
	}
}

func TestALossChargesNoAttempt(t *testing.T) { // I4: the limit is 0, and the job lives
	w := newWorld(t)
	w.put("a", lossLimited(100))
	for range 40 {
		w.loseOnce("a", job.ByDisconnect)
	}
	w.expect("a", "ready losses 40")
	if j := w.jobs["a"]; j.Failures != 0 || j.FailedAt != 0 || j.Band != job.BandNormal || j.Seq != 1 {
		t.Errorf("%+v", j)
	}
}

func TestAnySettleResetsTheLosses(t *testing.T) { // core.md section 5
	for verb, want := range map[Verb]string{
		SettleRetry:   "scheduled due 15s attempts 1",
		SettleRelease: "ready evictions 1",
		SettleOK:      "done",
		SettleDead:    "dead killed attempts 1",
	} {
		w := newWorld(t)
		w.put("a", retry(job.Retry{LossLimit: job.LimitOf(4)}))
		for range 3 {
			w.loseOnce("a", job.ByLapse)
		}
		w.expect("a", "ready losses 3 alone")
		w.do("a", Command{Verb: verb, Token: w.take("a", "y", func(l *job.Lease) { l.Exclusive = true })})
		w.expect("a", want)
	}
}

func TestAtTheLossLimitTheJobIsDeadWithReasonLost(t *testing.T) { // core.md section 5
	for _, limit := range []uint32{1, 2, 3, 20} {
		w := newWorld(t)
		w.put("a", lossLimited(limit))
		for n := uint32(1); n < limit; n++ {
			w.loseOnce("a", job.ByDisconnect)
			if got := w.jobs["a"]; got.State != job.Ready || got.Losses != n {
				t.Fatalf("limit %d: %s", limit, w.tell("a"))
			}
		}
		w.loseOnce("a", job.ByDisconnect)
		j := w.jobs["a"]
		if j.State != job.Dead || j.Reason != job.Lost || j.Losses != limit || j.Attempts != 0 {
			t.Errorf("limit %d: %s", limit, w.tell("a"))
		}
		if f := w.failure(); f == nil || f.Type != "Lost" || f.Holder != "x" {
			t.Errorf("its record is %+v", f)
		}
	}
}

func TestACrashLoopIsOnRecordFromHalfOfTheLimit(t *testing.T) { // issue 4: dead with reason lost and its history
	w := newWorld(t)
	w.put("a", lossLimited(4))
	for n, worker := range []string{"w/1", "w/2", "w/3", "w/4"} {
		w.tick(job.Second)
		alone := w.jobs["a"].Isolated
		w.take("a", worker, func(l *job.Lease) { l.Exclusive = alone })
		w.lose("a", worker, job.ByLapse)
		f := w.failure()
		if n == 0 {
			if f != nil {
				t.Errorf("the first loss may be anybody's fault, and left the record %+v", f)
			}
			continue
		}
		if f == nil || f.Number != uint32(n) || f.Type != "Lost" || f.Holder != worker || f.Attempt != 0 || f.Failed != w.now || f.Started != w.now {
			t.Errorf("loss %d left the record %+v", n+1, f)
		}
	}
	w.expect("a", "dead lost losses 4 alone")
}

func TestFromHalfOfTheLimitTheJobAsksToBeAlone(t *testing.T) { // core.md section 5
	for limit, half := range map[uint32]int{20: 10, 4: 2, 5: 3, 2: 1} {
		w := newWorld(t)
		w.put("a", lossLimited(limit))
		for range half - 1 {
			w.loseOnce("a", job.ByDisconnect)
		}
		if w.jobs["a"].Isolated {
			t.Errorf("limit %d: alone after %d losses", limit, half-1)
		}
		w.loseOnce("a", job.ByDisconnect)
		if !w.jobs["a"].Isolated {
			t.Errorf("limit %d: not alone after %d losses", limit, half)
		}
	}
}

func TestFromHalfOfTheLimitOnlyLossesWhileAloneCount(t *testing.T) { // core.md section 5
	w := newWorld(t)
	w.put("a", lossLimited(4))
	w.loseOnce("a", job.ByDisconnect)
	w.loseOnce("a", job.ByDisconnect)
	w.expect("a", "ready losses 2 alone")
	for range 10 { // a holder that had more than this job
		w.take("a", "x")
		w.lose("a", "x", job.ByDisconnect)
	}
	w.expect("a", "ready losses 2 alone")
	w.loseOnce("a", job.ByDisconnect)
	w.loseOnce("a", job.ByDisconnect)
	w.expect("a", "dead lost losses 4 alone")
}

func TestOnePoisonJobBehindAPrefetchOfAHundredDiesAlone(t *testing.T) { // core.md section 5
	w := newWorld(t)
	names := make([]string, 100)
	for i := range names {
		names[i] = string(rune('A'+i/10)) + string(rune('0'+i%10))
		w.put(names[i])
	}
	poison := names[37]
	for round := 0; w.jobs[poison].State != job.Dead; round++ {
		if round > 100 {
			t.Fatal("the poison job never dies")
		}
		taken := prefetch(w, 100)
		for _, name := range taken { // the worker dies of the poison, else it would have finished
			if w.jobs[poison].HeldBy("w") || name == poison {
				w.lose(name, "w", job.ByDisconnect)
			} else {
				w.ok(name, w.jobs[name].Leases[0].Token)
			}
		}
	}
	for _, name := range names {
		if j := w.jobs[name]; name != poison && j.State == job.Dead {
			t.Errorf("%s died with it: %s", name, w.tell(name))
		}
	}
	w.expect(poison, "dead lost losses 20 alone")
}

// prefetch gives a worker up to n jobs, in line order, as the engine does.
func prefetch(w *world, n int) (taken []string) {
	s := Seeker{Holder: "w"}
	for len(taken) < n {
		line := w.line(s)
		if len(line) == 0 {
			return taken
		}
		alone := w.jobs[line[0]].Isolated
		w.take(line[0], "w", func(l *job.Lease) { l.Exclusive = alone })
		taken = append(taken, line[0])
		s.Held, s.HasIsolated = len(taken), alone
	}
	return taken
}

func TestWhileACopyLivesALossKillsNobody(t *testing.T) { // core.md section 5: the end of the last live copy decides
	w := newWorld(t)
	w.put("a", lossLimited(1), func(j *job.Job) { j.Copies = 2 })
	w.take("a", "x")
	y := w.take("a", "y")
	w.lose("a", "x", job.ByLapse)
	w.expect("a", "leased leases 1 losses 1 alone")
	w.expectLine("a") // the lost copy is wanted again
	w.ok("a", y)
	w.expect("a", "done")
}

func TestAJobThatWasPutOffWhileItRanComesBackAtItsTime(t *testing.T) { // I6
	w := newWorld(t)
	w.put("a")
	w.take("a", "x")
	due := w.now + 100
	w.do("a", Command{Verb: Patch, Edit: func(j *job.Job) { j.ReadyAt = due }})
	w.do("a", Command{Verb: Lapse, Holder: "x", Ending: job.ByDisconnect})
	if j := w.jobs["a"]; j.State != job.Scheduled || j.ReadyAt != due {
		t.Errorf("%s, due at %d", j.State, j.ReadyAt)
	}
	w.expectLine()
}

func TestALapseOfSomebodyElseIsNotOurs(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	w.take("a", "x")
	w.refused(job.WrongState, "a", Command{Verb: Lapse, Holder: "y", Ending: job.ByLapse})
	w.refused(job.WrongState, "a", Command{Verb: Lapse}) // no timer of its own: it follows its holder
	w.expect("a", "leased leases 1")
}

func TestAUnaryLeaseLapsesAtItsEndAndNotBefore(t *testing.T) { // I6
	w := newWorld(t)
	w.put("a")
	w.take("a", "u/1", of(job.Unary), func(l *job.Lease) { l.Until = w.steady + 100 })
	if at := EntriesOf(w.jobs["a"]).Timer[HandLapse]; at != dawn+100 {
		t.Errorf("the clock looks at it at %d", at-dawn)
	}
	w.tick(99)
	w.refused(job.WrongState, "a", Command{Verb: Lapse})
	w.tick(1)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "ready losses 1")
	if how := w.jobs["a"].Ended[0].How; how != job.ByLapse {
		t.Errorf("ended by %s", how)
	}
}

func TestAStepOfTheDateEndsNoLease(t *testing.T) { // core.md section 8: leases run on the steady clock
	w := newWorld(t, func(q *job.Queue) { q.RunTimeout = job.Minute })
	w.put("a")
	w.take("a", "u/1", func(l *job.Lease) { l.Until = w.steady + 100 })
	w.now += job.Day
	w.refused(job.WrongState, "a", Command{Verb: Lapse})
}

func TestARunTimeoutIsAChargedFailure(t *testing.T) { // core.md section 4, Timeouts
	w := newWorld(t, func(q *job.Queue) { q.RunTimeout = 90 * job.Second })
	w.put("a")
	token := w.take("a", "x")
	w.tick(90*job.Second - 1)
	w.refused(job.WrongState, "a", Command{Verb: Lapse})
	w.tick(1)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "scheduled due 15s attempts 1")
	f := w.failure()
	if f == nil || f.Type != "Timeout" || f.Holder != "x" || f.Started != dawn || f.Failed != w.now {
		t.Errorf("%+v", f)
	}
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: token})
}

func TestARunTimeoutPastTheLimitIsDead(t *testing.T) {
	w := newWorld(t)
	w.put("a", limited(0, nil), func(j *job.Job) { j.RunTimeout = 5 })
	w.take("a", "x")
	w.tick(5)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "dead exhausted attempts 1")
}

func TestARunTimeoutOfOneCopyLeavesTheOtherRunning(t *testing.T) { // core.md section 5
	w := newWorld(t, func(q *job.Queue) { q.RunTimeout = 100 })
	w.put("a", limited(0, nil), func(j *job.Job) { j.Copies = 2 })
	w.take("a", "x")
	w.tick(50)
	y := w.take("a", "y")
	w.tick(50)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "leased leases 1 attempts 1")
	w.ok("a", y)
}

func TestCopiesThatTimeOutTogetherAreChargedEach(t *testing.T) { // core.md section 5: a charged failure, always charged
	w := newWorld(t, func(q *job.Queue) { q.RunTimeout = 100 })
	w.put("a", limited(2, wait(job.Second)), func(j *job.Job) { j.Copies = 3 })
	for _, holder := range []string{"x", "y", "z"} {
		w.take("a", holder)
	}
	w.tick(100)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "dead exhausted attempts 3")
	var told []string
	for i, f := range w.last.Failures {
		if f.Number != uint32(i+1) || f.Attempt != f.Number || f.Type != "Timeout" {
			t.Errorf("%+v", f)
		}
		told = append(told, f.Holder)
	}
	if !slices.Equal(told, []string{"x", "y", "z"}) {
		t.Errorf("records of %v", told)
	}
}

func TestCopiesThatTimeOutTogetherInsideGraceAreSuppressedEach(t *testing.T) { // core.md sections 5 and 6
	w := newWorld(t, func(q *job.Queue) { q.RunTimeout = 100 })
	w.put("a", func(j *job.Job) { j.Copies, j.GraceUntil = 2, w.now+job.Hour })
	w.take("a", "x")
	w.take("a", "y")
	w.tick(100)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "scheduled due 6s suppressed 2")
}

func TestARunThatDidNotStartInTimeIsReturnedUncharged(t *testing.T) { // core.md section 4, start_timeout
	w := newWorld(t, func(q *job.Queue) { q.StartTimeout = 100 })
	w.put("a", limited(0, nil))
	token := w.take("a", "x")
	w.tick(99)
	w.refused(job.WrongState, "a", Command{Verb: Lapse})
	w.tick(1)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "ready evictions 1")
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: token})
}

func TestEachCopyThatDidNotStartInTimeIsAnEviction(t *testing.T) { // core.md section 5, whether in one moment or not
	w := newWorld(t, func(q *job.Queue) { q.StartTimeout = 100 })
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	w.take("a", "x")
	w.take("a", "y")
	w.tick(100)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "ready evictions 2")
}

func TestAStartThatWasMissedBesideARunTimeoutIsAnEvictionToo(t *testing.T) {
	w := newWorld(t, func(q *job.Queue) { q.StartTimeout, q.RunTimeout = 100, 150 })
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	x := w.take("a", "x")
	w.do("a", Command{Verb: Extend, Token: x, Started: true})
	w.tick(50)
	w.take("a", "y")
	w.tick(100)
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "scheduled due 15s attempts 1 evictions 1")
}

func TestWhatWasDueIsDueAfterAStepBack(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "x")
	w.put("b")
	w.take("b", "x")
	w.do("b", Command{Verb: Patch, Edit: func(j *job.Job) { j.ReadyAt = w.now + job.Hour }})
	w.now -= 10 * job.Hour
	w.do("a", Command{Verb: SettleRelease, Token: token})
	w.lose("b", "x", job.ByRestart)
	w.expect("a", "ready evictions 1")
	w.expect("b", "scheduled due 11h")
}

func TestTheSoonestTimerOfALeaseIsTheOneTheClockLooksAt(t *testing.T) {
	w := newWorld(t, func(q *job.Queue) { q.RunTimeout, q.StartTimeout = 300, 200 })
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	expect := func(when string, timeout, lapse job.Millis) {
		t.Helper()
		timer := EntriesOf(w.jobs["a"]).Timer
		if timer[HandTimeout] != dawn+timeout || timer[HandLapse] != dawn+lapse {
			t.Errorf("%s: %d and %d", when, timer[HandTimeout]-dawn, timer[HandLapse]-dawn)
		}
	}
	w.take("a", "x", func(l *job.Lease) { l.Until = w.steady + 400 })
	expect("start timeout", 200, 400)
	w.do("a", Command{Verb: Extend, Token: w.jobs["a"].Leases[0].Token, Started: true})
	expect("run timeout", 300, 400)
	w.take("a", "y", func(l *job.Lease) { l.Until = w.steady + 50 })
	expect("the other copy's end", 200, 50)
}

func TestATimeoutAloneLeavesSoftEndsBe(t *testing.T) { // core.md section 8: holders get extra time, timeouts do not
	w := newWorld(t, func(q *job.Queue) { q.RunTimeout = 100 })
	w.put("a", limited(9, nil), func(j *job.Job) { j.Copies = 2 })
	w.take("a", "x")
	w.tick(50)
	w.take("a", "y", of(job.Unary), func(l *job.Lease) { l.Until = w.steady + 10 })
	w.tick(50)
	w.do("a", Command{Verb: Lapse, Ending: job.ByTimeout})
	w.expect("a", "leased leases 1 attempts 1")
	w.refused(job.WrongState, "a", Command{Verb: Lapse, Ending: job.ByTimeout})
	w.do("a", Command{Verb: Lapse})
	w.expect("a", "ready attempts 1 losses 1")
}
