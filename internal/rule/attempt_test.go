package rule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// attemptsTold holds the history of a task against its counters: every run that
// ended is in it, once, and what was charged is what the counters rose by.
func (w *world) attemptsTold(v Verb, old, j *job.Job, e Effect) error {
	if w.queue.Grid == nil {
		if j.History() != nil {
			return fmt.Errorf("a job of a queue that is no session has a history")
		}
		return nil
	}
	if j.State == job.None {
		return nil
	}
	was, is := old.History(), j.History()
	if most := job.AttemptsFirst + job.AttemptsLast; len(is) > most || len(is) < min(most, len(was)+len(e.Ended)) {
		return fmt.Errorf("%d attempts are kept, there were %d, and %d ended", len(is), len(was), len(e.Ended))
	}
	charged := map[job.Charge]uint32{}
	for i, l := range e.Ended {
		a := is[len(is)-len(e.Ended)+i]
		if a.Token != l.Token.Hash() || a.Holder != l.Holder || a.Number != l.Number || a.Ended != w.now {
			return fmt.Errorf("the run %+v is told as %+v", l, a)
		}
		charged[a.Charged]++
	}
	for charge, rose := range map[job.Charge]uint32{
		job.ChargedRetry: j.Attempts - old.Attempts, job.ChargedEviction: j.Evictions - old.Evictions, job.ChargedLoss: max(j.Losses, old.Losses) - old.Losses,
	} {
		if charged[charge] != rose && v != Revive {
			return fmt.Errorf("%d attempts are charged as %s, the counter rose by %d", charged[charge], charge, rose)
		}
	}
	return nil
}

// seedGrid are the settings of a session as GridServer is documented.
func seedGrid(q *job.Queue) {
	q.Retry = job.Retry{Limit: job.LimitOf(3), Place: job.PlaceFront, Curve: &job.Curve{Kind: job.CurveImmediate}, LossLimit: job.LimitOf(5)}
	q.RetainDone, q.RetainDead = job.Day, job.Day
	q.Grid = &job.Grid{
		Weight: 5, LossesCharged: true, EvictedPlace: job.PlaceBack, CopyPlace: job.PlaceBack, MaxCopies: 2, MaxReschedules: 9,
	}
}

func on(host string) func(*job.Lease) { return func(l *job.Lease) { l.Host = host } }

// history tells the attempts of a job in words: "2 e2@h2 copy error retry #1".
func (w *world) history(name string) string {
	var out []string
	for _, a := range w.jobs[name].History() {
		words := []string{fmt.Sprint(a.Number), a.Holder}
		if a.Host != "" {
			words[1] += "@" + a.Host
		}
		if a.Copy {
			words = append(words, "copy")
		}
		if a.Committed {
			words = append(words, "committed")
		}
		words = append(words, a.Why.String())
		if a.Charged != job.ChargedNothing {
			words = append(words, a.Charged.String())
		}
		if a.Failure > 0 {
			words = append(words, fmt.Sprint("#", a.Failure))
		}
		out = append(out, strings.Join(words, " "))
	}
	return strings.Join(out, ", ")
}

func (w *world) tells(name, want string) {
	w.Helper()
	if got := w.history(name); got != want {
		w.Errorf("%s: %s\nwant %s", name, got, want)
	}
}

func TestEveryEndOfAnAttemptIsToldWithItsReason(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world, x job.Token)
		want string
		edit func(*job.Queue)
	}{
		{"ok", func(w *world, x job.Token) { w.ok("a", x) }, "1 e1@h1 ok", nil},
		{"error", func(w *world, x job.Token) { w.fail("a", x) }, "1 e1@h1 error retry #1", nil},
		{"given up", func(w *world, x job.Token) { w.do("a", Command{Verb: SettleDead, Token: x}) }, "1 e1@h1 error retry #1", nil},
		{"released", func(w *world, x job.Token) { w.do("a", Command{Verb: SettleRelease, Token: x}) }, "1 e1@h1 released eviction", nil},
		{"lost", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByLapse) }, "1 e1@h1 lost retry #1", nil},
		{"lost, counted apart", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByLapse) }, "1 e1@h1 lost loss", func(q *job.Queue) { q.Grid.LossesCharged = false }},
		{"restarted", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByRestart) }, "1 e1@h1 restarted", nil},
		{"evicted", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByEvict) }, "1 e1@h1 evicted eviction", nil},
		{"preempted", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByPreempt) }, "1 e1@h1 preempted eviction", nil},
		{"withdrawn", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByWithdraw) }, "1 e1@h1 withdrawn eviction", nil},
		{"cancelled", func(w *world, _ job.Token) { w.do("a", Command{Verb: Cancel}) }, "1 e1@h1 cancelled", nil},
		{"timeout", func(w *world, x job.Token) {
			w.do("a", Command{Verb: Extend, Token: x, Started: true})
			w.tick(job.Minute)
			w.do("a", Command{Verb: Lapse})
		}, "1 e1@h1 timeout retry #1", func(q *job.Queue) { q.RunTimeout = job.Minute }},
		{"timeout, which its engine tells", func(w *world, x job.Token) {
			w.do("a", Command{Verb: Extend, Token: x, Started: true})
			w.do("a", Command{Verb: SettleRetry, Token: x, Match: noMessage, Failure: job.Failure{Type: "timeout", Timeout: true}})
		}, "1 e1@h1 timeout retry #1", nil},
		{"undelivered", func(w *world, _ job.Token) {
			w.tick(job.Second)
			w.do("a", Command{Verb: Lapse})
		}, "1 e1@h1 undelivered eviction", func(q *job.Queue) { q.StartTimeout = job.Second }},
		{"late", func(w *world, x job.Token) {
			w.lose("a", "e1", job.ByLapse)
			w.take("a", "e2", on("h2"))
			w.ok("a", x)
		}, "1 e1@h1 late retry #1, 2 e2@h2 superseded", nil},
		{"late, of a token that a crash forgot", func(w *world, _ job.Token) {
			w.lose("a", "e1", job.ByRestart)
			w.start++
			w.ok("a", job.NewToken(w.start-1, w.random))
		}, "1 e1@h1 restarted, 0  late", nil},
		{"superseded", func(w *world, _ job.Token) {
			w.do("a", Command{Verb: Offer})
			w.ok("a", w.take("a", "e2", on("h2")))
		}, "1 e1@h1 superseded, 2 e2@h2 copy ok", nil},
		{"two that overran at once", func(w *world, x job.Token) {
			w.do("a", Command{Verb: Offer})
			y := w.take("a", "e2", on("h2"))
			w.do("a", Command{Verb: Extend, Token: x, Started: true})
			w.do("a", Command{Verb: Extend, Token: y, Started: true})
			w.tick(job.Minute)
			w.do("a", Command{Verb: Lapse})
		}, "1 e1@h1 timeout retry #1, 2 e2@h2 copy timeout retry #2", func(q *job.Queue) { q.RunTimeout = job.Minute }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, seedGrid)
			if c.edit != nil {
				c.edit(w.queue)
			}
			w.put("a")
			x := w.take("a", "e1", on("h1"))
			w.tick(5)
			c.end(w, x)
			w.tells("a", c.want)
			a := w.jobs["a"].History()[0]
			if a.Since != dawn || a.Ended != w.now || a.Why == job.AttemptTimeout && a.Started != dawn+5 {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestTheHistoryOfATaskIsBounded(t *testing.T) {
	w := newWorld(t, seedGrid)
	w.put("a")
	for range 40 {
		w.take("a", "e1")
		w.lose("a", "e1", job.ByEvict)
	}
	var numbers []uint32
	for _, a := range w.jobs["a"].History() {
		numbers = append(numbers, a.Number)
	}
	want := []uint32{1, 2, 3, 4, 5, 6, 7, 8}
	for n := uint32(17); n <= 40; n++ {
		want = append(want, n)
	}
	if !slices.Equal(numbers, want) {
		t.Errorf("kept %v", numbers)
	}
}

func TestOneRunOfATaskGetsTheWordToCommit(t *testing.T) { // A19
	w := newWorld(t, seedGrid)
	w.put("a")
	x := w.take("a", "e1", on("h1"))
	w.do("a", Command{Verb: Offer})
	y := w.take("a", "e2", on("h2"))
	ask := func(token job.Token) Command { return Command{Verb: Extend, Token: token, Commit: true} }
	w.do("a", ask(y))
	if len(w.last.Voided) != 1 || w.last.Voided[0].Lease.Token != x || w.last.Voided[0].How != job.BySupersede {
		t.Fatalf("told %+v", w.last.Voided)
	}
	w.refused(job.Superseded, "a", ask(x))
	w.do("a", ask(y)) // again
	w.refused(job.OverLimit, "a", Command{Verb: Offer})
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: x})

	w.lose("a", "e2", job.ByLapse) // then it is open again
	z := w.take("a", "e3", on("h3"))
	w.do("a", ask(z))
	w.refused(job.Superseded, "a", Command{Verb: SettleOK, Token: y}) // the effects of another one count
	w.ok("a", z)
	w.tells("a", "1 e1@h1 superseded, 2 e2@h2 copy committed lost retry #1, 3 e3@h3 committed ok")
}

func TestACopyThatWaitsLeavesTheLineWhenARunCommits(t *testing.T) {
	w := newWorld(t, seedGrid)
	w.put("a")
	x := w.take("a", "e1")
	w.do("a", Command{Verb: Offer})
	w.do("a", Command{Verb: Extend, Token: x, Commit: true})
	w.refused(job.WrongState, "a", Command{Verb: Take, Lease: w.lease("e2")})
	if j := w.jobs["a"]; j.CopiesWanted != 1 || EntriesOf(j).Wants {
		t.Errorf("%+v", j)
	}
}

func TestOnlyTheRunThatFailedIsCharged(t *testing.T) {
	w := newWorld(t, seedGrid)
	w.put("a")
	w.take("a", "e1")
	w.do("a", Command{Verb: Offer})
	w.fail("a", w.take("a", "e2"))
	w.lose("a", "e1", job.ByRestart)
	w.tells("a", "2 e2 copy error retry #1, 1 e1 restarted")
	w.put("b")
	x := w.take("b", "e1")
	w.do("b", Command{Verb: Offer})
	w.take("b", "e2")
	w.do("b", Command{Verb: SettleDead, Token: x})
	w.tells("b", "2 e2 copy superseded, 1 e1 error retry #1")
}

func TestALateResultLeavesWhatWasRememberedAsItIs(t *testing.T) {
	w := newWorld(t, seedGrid)
	w.put("a")
	x := w.take("a", "e1")
	w.lose("a", "e1", job.ByLapse)
	before := w.jobs["a"].History()
	w.ok("a", x)
	if before[0].Why != job.AttemptLost {
		t.Errorf("the job as it was says now: %+v", before[0])
	}
	w.tells("a", "1 e1 late retry #1")
}

func TestAnEngineTellsWhenTheRunBegan(t *testing.T) {
	w := newWorld(t, seedGrid)
	w.put("a")
	x := w.take("a", "e1")
	w.do("a", Command{Verb: Offer})
	w.take("a", "e2")
	w.do("a", Command{Verb: SettleOK, Token: x, RunStart: 1})
	for i, want := range []job.Millis{0, 1} { // who spoke stands last
		if a := w.jobs["a"].History()[i]; a.Started != want {
			t.Errorf("%+v started at %d", a, want)
		}
	}
}

func TestATaskThatMustNotRunTwiceWaitsBehindItsFence(t *testing.T) { // A18
	const fence = 30 * job.Second
	for _, c := range []struct {
		name   string
		end    func(w *world, x job.Token)
		waits  job.Millis
		by     job.WaitBy
		edit   func(*job.Queue)
		allows bool // idempotent
	}{
		{"lost", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByLapse) }, fence, job.WaitFence, nil, false},
		{"lost, counted apart", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByLapse) }, fence, job.WaitFence, func(q *job.Queue) { q.Grid.LossesCharged = false }, false},
		{"restarted", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByRestart) }, fence, job.WaitFence, nil, false},
		{"logged off", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByEvict) }, fence, job.WaitFence, nil, false},
		{"lost, and its curve waits longer", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByLapse) }, job.Minute, job.WaitCurve, func(q *job.Queue) {
			q.Retry.Curve = &job.Curve{Kind: job.CurveConstant, Delay: job.Minute}
		}, false},
		{"its engine failed", func(w *world, x job.Token) { w.fail("a", x) }, 0, job.WaitCurve, nil, false},
		{"its engine gave it back", func(w *world, x job.Token) { w.do("a", Command{Verb: SettleRelease, Token: x}) }, 0, job.WaitNobody, nil, false},
		{"it may run twice", func(w *world, _ job.Token) { w.lose("a", "e1", job.ByLapse) }, 0, job.WaitCurve, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, seedGrid, func(q *job.Queue) { q.NonIdempotent, q.Grid.FenceWait = !c.allows, fence })
			if c.edit != nil {
				c.edit(w.queue)
			}
			w.put("a")
			x := w.take("a", "e1")
			w.tick(5)
			c.end(w, x)
			j := w.jobs["a"]
			if c.waits == 0 {
				if j.State != job.Ready || j.Wait.By != c.by {
					t.Errorf("%s, waits by %s", j.State, j.Wait.By)
				}
				return
			}
			if j.State != job.Scheduled || j.ReadyAt != w.now+c.waits || j.Wait.By != c.by {
				t.Errorf("%s until %d, by %s", j.State, j.ReadyAt-w.now, j.Wait.By)
			}
			if c.name != "logged off" {
				w.ok("a", x) // its engine comes back in time
			}
		})
	}
}
