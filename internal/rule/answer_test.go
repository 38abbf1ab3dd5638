package rule

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/model/account"
)

// lateCase brings a task, and a run of it, into a pair of states.
type lateCase struct {
	run   account.RunState
	task  account.TaskState
	setup func(w *world) (token job.Token, failure Verb)
}

func lateCases() (list []lateCase) {
	ends := map[account.RunState]func(w *world, x job.Token){
		account.RunLive: func(*world, job.Token) {},
		account.RunLost: func(w *world, _ job.Token) { w.lose("a", "x", job.ByLapse) },
		account.RunOverran: func(w *world, _ job.Token) {
			w.tick(w.jobs["a"].Leases[0].RunEnd - w.steady)
			w.do("a", Command{Verb: Lapse})
		},
		account.RunErred: func(w *world, x job.Token) { w.fail("a", x) },
		account.RunGiven: func(w *world, x job.Token) { w.do("a", Command{Verb: SettleRelease, Token: x}) },
	}
	again := func(w *world) job.Token {
		if j := w.jobs["a"]; j.State == job.Scheduled {
			w.tick(max(j.ReadyAt-w.now, 0))
			w.do("a", Command{Verb: Promote})
		}
		return w.take("a", "y")
	}
	then := map[account.TaskState]func(w *world){
		account.TaskWaiting:    func(*world) {},
		account.TaskActive:     func(w *world) { again(w) },
		account.TaskCommitting: func(w *world) { w.do("a", Command{Verb: Extend, Token: again(w), Commit: true}) },
		account.TaskCompleted:  func(w *world) { w.ok("a", again(w)) },
		account.TaskFailed:     func(w *world) { w.do("a", Command{Verb: SettleDead, Token: again(w)}) },
		account.TaskGone: func(w *world) {
			w.do("a", Command{Verb: SettleDead, Token: again(w)})
			w.do("a", Command{Verb: Purge})
		},
	}
	for run, end := range ends {
		for task, next := range then {
			if run == account.RunLive && task != account.TaskActive {
				continue
			}
			list = append(list, lateCase{run, task, func(w *world) (job.Token, Verb) {
				x := w.take("a", "x", func(l *job.Lease) {})
				if end(w, x); run != account.RunLive {
					next(w)
				}
				return x, SettleRetry
			}})
		}
	}
	committed := func(w *world) (job.Token, Verb) {
		x := w.take("a", "x")
		w.do("a", Command{Verb: Extend, Token: x, Commit: true})
		return x, SettleRetry
	}
	won := func(w *world) (job.Token, Verb) {
		x := w.take("a", "x")
		w.ok("a", x)
		return x, SettleRetry
	}
	beside := func(settle Verb) func(w *world) (job.Token, Verb) {
		return func(w *world) (job.Token, Verb) {
			x := w.take("a", "x")
			w.do("a", Command{Verb: Offer})
			w.do("a", Command{Verb: settle, Token: w.take("a", "y")})
			return x, SettleRetry
		}
	}
	return append(list,
		lateCase{account.RunWon, account.TaskCompleted, won},
		lateCase{account.RunLive, account.TaskCommitting, committed},
		lateCase{account.RunStopped, account.TaskCompleted, beside(SettleOK)},
		lateCase{account.RunStopped, account.TaskFailed, beside(SettleDead)},
		lateCase{account.RunStopped, account.TaskFailed, func(w *world) (job.Token, Verb) {
			x := w.take("a", "x")
			w.do("a", Command{Verb: Cancel})
			return x, SettleRetry
		}},
		lateCase{account.RunErred, account.TaskFailed, func(w *world) (job.Token, Verb) {
			x := w.take("a", "x")
			w.do("a", Command{Verb: SettleDead, Token: x})
			return x, SettleDead
		}},
	)
}

func TestLateResultsAreAnsweredAsTheTableSays(t *testing.T) {
	seen := map[[3]any]bool{}
	for _, c := range lateCases() {
		for _, success := range []bool{true, false} {
			for _, never := range []bool{false, true} {
				t.Run(fmt.Sprintf("success %t, run %s, task %s, never %t", success, c.run, c.task, never), func(t *testing.T) {
					w := newWorld(t, func(q *job.Queue) {
						q.LateOKNever, q.RunTimeout, q.RetainDone = never, job.Minute, job.Day
					})
					w.put("a")
					token, verb := c.setup(w)
					before := w.jobs["a"]
					if before != nil && before.State == job.None {
						before = nil
					}
					if got := account.TaskStateOf(before); got != c.task {
						t.Fatalf("the task is %s", got)
					}
					if before != nil {
						if ended, known := endedOf(before, token); known && account.RunStateOf(ended.How) != c.run || known == (c.run == account.RunLive) {
							t.Fatalf("the run ended by %s", ended.How)
						}
					}
					if success {
						verb = SettleOK
					}
					e, err := Step(w.view(before), Command{Verb: verb, Token: token, Match: noMessage, Failure: job.Failure{Type: "E"}})
					got, ok := Answered(success, e, err)
					want, note := account.Late(success, c.run, c.task, never)
					if !ok || got.String() != want || note == "" {
						t.Errorf("answered %s (%v), the table says %s: %s", got, err, want, note)
					}
					if accepted := err == nil && !e.Repeat; accepted != (want == AnswerAccepted.String()) {
						t.Errorf("it changed something: %t, and the table says %s", accepted, want)
					}
				})
				seen[[3]any{success, c.run, c.task}] = true
			}
		}
	}
	for _, row := range account.LateTable {
		for _, run := range row.Run {
			some := false
			for _, task := range row.Task {
				some = some || seen[[3]any{row.Success, run, task}]
			}
			if !some {
				t.Errorf("no test comes to success %t, run %s, tasks %v", row.Success, run, row.Task)
			}
		}
	}
}

func TestBadInputIsNoAnswer(t *testing.T) {
	for _, err := range []error{job.Errorf(job.Invalid, "x"), job.Errorf(job.TokenNeeded, "x"), fmt.Errorf("x")} {
		if a, ok := Answered(true, Effect{}, err); ok {
			t.Errorf("%v: %s", err, a)
		}
	}
}
