package rule

import (
	"errors"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestOrderNoneCarriesLimitsAndHoldsOnly(t *testing.T) { // core.md section 2
	w := newWorld(t, func(q *job.Queue) { q.Concurrency = 2 })
	for _, name := range []string{"a", "b", "c"} {
		w.put(name, grouped("g"))
	}
	w.put("other", grouped("h"))
	w.put("alone")
	w.expectLine("a", "other", "alone") // one member at a time stands for its group
	w.take("a", "1")
	w.expectLine("b", "other", "alone")
	w.take("b", "2")
	w.expectLine("other", "alone")
	w.fail("a", w.jobs["a"].Leases[0].Token)
	w.expectLine("c", "other", "alone") // a waiting retry holds no place of the limit
}

func TestOrderStartStartsInSequenceAndARetryBlocksNobody(t *testing.T) { // core.md section 2
	w := newWorld(t, func(q *job.Queue) { q.Order, q.Concurrency = job.OrderStart, 2 })
	w.put("a", grouped("g"))
	w.put("b", grouped("g"), func(j *job.Job) { j.Priority = 1 })
	w.put("c", grouped("g"))
	w.expectLine("a") // b's priority counts nothing inside the group
	w.fail("a", w.take("a", "1"))
	w.expectLine("b")
	w.take("b", "1")
	w.expectLine("c")
	w.take("c", "2")
	w.expectLine()
	w.tick(15 * job.Second)
	w.do("a", Command{Verb: Promote})
	w.expectLine() // two run
	w.ok("b", w.jobs["b"].Leases[0].Token)
	w.expectLine("a")
}

// atHead is a strict group of three, whose head is in some way not to be had.
func atHead(t *testing.T, edits ...func(*job.Queue)) *world {
	w := newWorld(t, append(edits, strict)...)
	for _, name := range []string{"a", "b", "c"} {
		w.put(name, grouped("g"))
	}
	w.put("other", grouped("h"))
	return w
}

func TestAStrictHeadBlocksItsGroupInEveryWaitAndOthersProceed(t *testing.T) { // core.md section 2, I7
	for name, stop := range map[string]func(*world){
		"leased":  func(w *world) { w.take("a", "x") },
		"backoff": func(w *world) { w.fail("a", w.take("a", "x")) },
		"released for later": func(w *world) {
			w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "x"), After: job.Hour})
		},
		"due later": func(w *world) {
			w.do("a", Command{Verb: Patch, Edit: func(j *job.Job) { j.ReadyAt = w.now + job.Hour }})
		},
		"paused": func(w *world) { w.do("a", Command{Verb: Patch, Edit: func(j *job.Job) { j.Park = "pause" }}) },
		"held":   func(w *world) { w.gates["g"] = HoldGate(w.gate("g"), w.now+job.Hour) },
		"parked": func(w *world) { g := *w.gate("g"); g.Park = "breaker"; w.gates["g"] = &g },
		"one copy of two wanted is out": func(w *world) {
			w.take("a", "x")
			w.do("a", Command{Verb: Offer})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := atHead(t)
			stop(w)
			w.expectLine("other")
		})
	}
}

func TestTheMembersOfAStrictGroupLeaveInSequence(t *testing.T) { // I7
	w := atHead(t)
	for _, name := range []string{"a", "b", "c"} {
		w.expectLine(name, "other")
		w.fail(name, w.take(name, "x"))
		w.lose(name, heldBy(w.due(name, "x"), "x"), job.ByDisconnect)
		w.expectLine(name, "other")
		token := w.take(name, "x")
		if w.last.OutOfOrder {
			t.Errorf("%s came out of order", name)
		}
		w.ok(name, token)
	}
}

func TestAStrictGroupStandsWithItsHeadsPriorityAndIgnoresPriorityAndPlaceInside(t *testing.T) { // core.md section 2
	w := newWorld(t, strict)
	low := func(j *job.Job) { j.Priority = 60_000 }
	w.put("a", grouped("g"), low)
	w.putAt(job.PlaceFront, "b", grouped("g"), func(j *job.Job) { j.Priority = 0 })
	w.put("plain")
	w.expectLine("plain", "a")
	if j := w.jobs["b"]; j.Band != job.BandNormal {
		t.Error("a place moved a member of a strict group")
	}
	for _, place := range []job.Place{job.PlaceFront, job.PlaceBack} {
		before := *w.jobs["a"]
		w.fail("a", w.due("a", "x"), func(c *Command) { c.Place = place })
		w.do("a", Command{Verb: Revive, Place: place})
		w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "x"), Place: place})
		if j := w.jobs["a"]; j.Seq != before.Seq || j.Band != before.Band {
			t.Errorf("%s moved it to band %d seq %d", place, j.Band, j.Seq)
		}
	}
	w.ok("a", w.take("a", "x"))
	w.expectLine("b", "plain") // the head's priority is the gate's
}

func TestEveryTakeOfAStrictGroupIsANewTurn(t *testing.T) { // core.md sections 2 and 4, fencing numbers
	w := atHead(t)
	var last int64
	for range 4 {
		w.take("a", "x")
		turn := w.jobs["a"].Leases[0].Turn
		if turn <= last || w.gates["g"].Turn != turn {
			t.Fatalf("turn %d after %d", turn, last)
		}
		last = turn
		w.lose("a", "x", job.ByRestart)
	}
}

// On dead.

func TestADeadHeadIsSkippedByDefault(t *testing.T) { // core.md section 2, on_dead
	w := atHead(t)
	w.do("a", Command{Verb: SettleDead, Token: w.take("a", "x")})
	w.expectLine("b", "other")
	if j := w.jobs["a"]; j.BlocksGroup || j.PurgeAt == 0 {
		t.Errorf("%+v", j)
	}
}

func TestABlockingDeadHeadHoldsItsGroupOutsideRetention(t *testing.T) { // core.md section 2, on_dead block
	for name, die := range map[string]func(*world){
		"killed":    func(w *world) { w.do("a", Command{Verb: SettleDead, Token: w.take("a", "x")}) },
		"exhausted": func(w *world) { w.queue.Retry.Limit = job.LimitOf(0); w.fail("a", w.take("a", "x")) },
		"lost": func(w *world) {
			w.queue.Retry.LossLimit = job.LimitOf(1)
			w.lose("a", heldBy(w.take("a", "x"), "x"), job.ByLapse)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := atHead(t, func(q *job.Queue) { q.OnDead = job.DeadBlock })
			w.server.RetainDead = 0
			die(w)
			w.put("late", grouped("g"))
			w.expectLine("other")
			if j := w.jobs["a"]; j == nil || !j.BlocksGroup || j.PurgeAt != 0 {
				t.Fatalf("%+v", j)
			}
			w.do("a", Command{Verb: Revive})
			w.expectLine("a", "other")
			w.ok("a", w.take("a", "x"))
			w.expectLine("b", "other")
		})
	}
}

func TestPurgingABlockingHeadFreesItsGroup(t *testing.T) {
	for _, onDead := range []job.OnDead{job.DeadBlock, job.DeadPark} {
		w := atHead(t, func(q *job.Queue) { q.OnDead = onDead })
		w.do("a", Command{Verb: SettleDead, Token: w.take("a", "x")})
		w.expectLine("other")
		w.do("a", Command{Verb: Purge})
		if got := w.line(Seeker{}); len(got) != 2 || got[0] != "b" {
			t.Errorf("on_dead %s: the group waits for a job that does not exist: %v", onDead, got)
		}
	}
}

func TestParkMovesTheHeadAndAllLaterMembersAsideAndReplayBringsThemBackInOrder(t *testing.T) { // core.md section 2, on_dead park
	w := atHead(t, func(q *job.Queue) { q.OnDead = job.DeadPark })
	w.do("a", Command{Verb: SettleDead, Token: w.take("a", "x")})
	w.put("late", grouped("g"))
	w.expectLine("other")
	w.do("a", Command{Verb: Revive}) // without allow_out_of_order: the group was parked
	w.expectLine("a", "other")
	for _, name := range []string{"a", "b", "c", "late"} {
		token := w.take(name, "x")
		if w.last.OutOfOrder {
			t.Errorf("%s came out of order", name)
		}
		w.ok(name, token)
	}
}

func TestAHeadThatDiesWaitingParksItsGroupAndWhatDiesBehindItDoesNot(t *testing.T) { // core.md section 2, on_dead park
	for name, want := range map[string]bool{"a": true, "b": false} {
		w := atHead(t, func(q *job.Queue) { q.OnDead = job.DeadPark })
		w.do(name, Command{Verb: Patch, Edit: func(j *job.Job) { j.ExpiresAt = w.now + 5 }})
		w.tick(5)
		w.do(name, Command{Verb: Expire})
		if got := w.gate("g").Park == deadHead(w.jobs[name].ID); got != want {
			t.Errorf("%s died: parked %t, want %t", name, got, want)
		}
		if want {
			w.expectLine("other")
			w.do(name, Command{Verb: Revive})
		}
		w.expectLine("a", "other")
	}
}

func TestACancelledHeadBlocksNobody(t *testing.T) {
	w := atHead(t, func(q *job.Queue) { q.OnDead = job.DeadBlock })
	w.do("a", Command{Verb: Cancel})
	w.expectLine("b", "other")
}

func TestAMemberThatDiesBehindALivingHeadDoesNotStopTheHead(t *testing.T) { // core.md section 2: on_dead is for heads
	w := newWorld(t, strict, func(q *job.Queue) { q.OnDead = job.DeadBlock })
	w.put("a", grouped("g"))
	w.put("b", grouped("g"), func(j *job.Job) { j.ExpiresAt = dawn + 5 })
	w.tick(5)
	w.do("b", Command{Verb: Expire})
	w.expectLine("a")
}

// Replays and late members.

func TestReplayingASingleMemberOfAStrictGroupMustBeAllowed(t *testing.T) { // core.md section 2
	w := atHead(t)
	w.do("a", Command{Verb: SettleDead, Token: w.take("a", "x")})
	w.ok("b", w.take("b", "x"))
	w.refused(job.WrongState, "a", Command{Verb: Revive})
	w.do("a", Command{Verb: Revive, Allow: true})
	w.expectLine("a", "other") // its sort position among those waiting
	w.take("a", "x")
	if !w.last.OutOfOrder {
		t.Error("it is not counted as out of order")
	}
	w.ok("a", w.jobs["a"].Leases[0].Token)
	w.take("c", "x")
	if w.last.OutOfOrder {
		t.Error("a member in its order is counted as out of order")
	}
}

func TestAMemberOfOtherOrdersIsReplayedWithoutAsking(t *testing.T) {
	for _, o := range []job.Order{job.OrderNone, job.OrderStart} {
		w := newWorld(t, func(q *job.Queue) { q.Order = o })
		w.put("a", grouped("g"))
		w.do("a", Command{Verb: SettleDead, Token: w.take("a", "x")})
		w.do("a", Command{Verb: Revive})
		w.expectLine("a")
	}
}

// Holds.

func TestAHoldEndsAtItsTimeAndALaterHoldWins(t *testing.T) { // I6, core.md section 2
	g := HoldGate(HoldGate(&job.Gate{Queue: "q", Group: "g", Turn: 4}, 50), 30)
	if g.Hold != 50 || g.Turn != 4 || g.Due() != 50 {
		t.Errorf("%+v", g)
	}
	if _, err := WakeGate(g, 49); job.KindOf(err) != job.WrongState {
		t.Errorf("awake early: %v", err)
	}
	if awake, err := WakeGate(g, 50); err != nil || awake.Hold != 0 || awake.Turn != 4 || g.Hold != 50 {
		t.Errorf("%+v, %v", awake, err)
	}
	if _, err := WakeGate(&job.Gate{}, 50); err == nil {
		t.Error("a gate that is not held was woken")
	}
}

func TestAQueueHoldEndsAtItsTime(t *testing.T) { // I6
	q := &job.Queue{Name: "q", HoldUntil: 50, Paused: true}
	if Open(q) || Open(&job.Queue{HoldUntil: 50}) || Open(&job.Queue{Paused: true}) || !Open(&job.Queue{}) {
		t.Error("Open is wrong")
	}
	if _, err := WakeQueue(q, 49); job.KindOf(err) != job.WrongState {
		t.Errorf("awake early: %v", err)
	}
	if awake, err := WakeQueue(q, 50); err != nil || awake.HoldUntil != 0 || !awake.Paused || q.HoldUntil != 50 {
		t.Errorf("%+v, %v", awake, err)
	}
	if _, err := WakeQueue(&job.Queue{}, 50); err == nil {
		t.Error("a queue that is not held was woken")
	}
}

func TestAPausedQueueStandsStillAndItsOldDueTimesAreKept(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	w.queue.Paused = true
	w.expectLine()
	w.queue.Paused = false
	w.expectLine("a")
	if w.jobs["a"].ReadyAt != dawn {
		t.Error("pausing a line touched its jobs")
	}
}

// Settings.

func TestStrictOrderMeansConcurrencyOne(t *testing.T) { // core.md section 2
	q := job.NewQueue("q")
	for concurrency, ok := range map[int]bool{0: true, 1: true, 2: false} {
		changed := *q
		changed.Order, changed.Concurrency = job.OrderStrict, concurrency
		if err := ChangeQueue(q, &changed, 0); (err == nil) != ok || err != nil && job.KindOf(err) != job.Invalid {
			t.Errorf("concurrency %d: %v", concurrency, err)
		}
	}
	start := *q
	start.Order, start.Concurrency = job.OrderStart, 9
	if err := ChangeQueue(q, &start, 0); err != nil {
		t.Errorf("order start: %v", err)
	}
}

func TestTheOrderOfAQueueIsFixedWhileGroupedJobsAreOpen(t *testing.T) {
	q, changed := job.NewQueue("q"), job.NewQueue("q")
	changed.Order = job.OrderStart
	if err := ChangeQueue(q, changed, 1); job.KindOf(err) != job.WrongState {
		t.Errorf("with an open member: %v", err)
	}
	if err := ChangeQueue(q, changed, 0); err != nil {
		t.Errorf("without: %v", err)
	}
	if err := ChangeQueue(q, q, 9); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

// Without its oldest, an ordered group has lost its head and a session a task.
func TestNeitherInboxNorSessionDropsItsOldest(t *testing.T) {
	inbox := job.NewQueue("in")
	inbox.Order, inbox.Turns, inbox.Protection.Fair = job.OrderStrict, true, &job.FairShare{}
	session := job.NewQueue("s")
	session.Grid = &job.Grid{}
	for _, q := range []*job.Queue{job.NewQueue("q"), inbox, session} {
		plain := !q.Turns && q.Grid == nil
		drops := *q
		drops.OnFull, drops.MaxJobs = job.FullDropOldest, 1
		err := ChangeQueue(q, &drops, 0)
		if bad, ok := errors.AsType[*job.Error](err); ok == plain || ok && (bad.Kind != job.Unprocessable || bad.Field != "on_full") {
			t.Errorf("%s: %v", q.Name, err)
		}
		more := drops // what an earlier version took stays, and drops nothing
		more.MaxJobs = 2
		if err := ChangeQueue(&drops, &more, 0); err != nil {
			t.Errorf("%s, which has it: %v", q.Name, err)
		}
		if evict, err := Admit(&drops, 1, 1, 1); evict != plain || (err == nil) != plain {
			t.Errorf("full, %s drops: %v, %v", q.Name, evict, err)
		}
	}
}
