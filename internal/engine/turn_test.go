package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/turn"
)

// failFirst and all are the settings of an inbox in its two modes.
func failFirst(q *job.Queue) {
	q.Order, q.Turns, q.OnDead = job.OrderStrict, true, job.DeadBlock
	q.Protection.Fair = &job.FairShare{}
	q.Retry.Curve = wait(10 * job.Second)
}

func toTheEnd(q *job.Queue) {
	failFirst(q)
	q.Order, q.Concurrency = job.OrderStart, 1
}

// inbox is a scenario with a queue in each of the two modes.
func inbox(t *testing.T, modes map[string]func(*job.Queue), f func(r *rig)) {
	t.Helper()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) { r.queue("in", mode); f(r) })
		})
	}
}

var bothModes = map[string]func(*job.Queue){"fail_first": failFirst, "all": toTheEnd}

// member puts a message whose group is the first letter of its name.
func (r *rig) member(name string, edits ...func(*engine.NewJob)) {
	r.Helper()
	r.put("in", name, append([]func(*engine.NewJob){grouped(name[:1])}, edits...)...)
}

func (r *rig) members(names ...string) {
	r.Helper()
	for _, name := range names {
		r.member(name)
	}
}

// turns takes what is there now.
func (r *rig) turns(o turn.Options) []turn.Turn {
	r.Helper()
	o.Queue, o.Once = "in", true
	list, err := r.part.Turns.Lease(r.Context(), o)
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// took wants these turns, written "a: a1 a2; b: b1", and returns what was given.
func (r *rig) took(o turn.Options, want string) map[string]engine.Delivery {
	r.Helper()
	held, got := map[string]engine.Delivery{}, []string(nil)
	for _, turn := range r.turns(o) {
		text := turn.Group + ":"
		for _, d := range turn.Deliveries {
			name := r.names[d.Job.ID]
			text += " " + name
			held[name] = d
			if string(d.Payload) != name || d.Lease.Turn != turn.Number || turn.Number == 0 || d.Job.LeaseOf(d.Lease.Token) < 0 {
				r.Errorf("%s came as %+v in turn %d", name, d.Lease, turn.Number)
			}
		}
		got = append(got, text)
	}
	if list := strings.Join(got, "; "); list != want {
		r.Fatalf("took %q, want %q", list, want)
	}
	return held
}

var whole = turn.Options{Members: -1, Turns: 9, Local: true}

func TestATurnHasTheMembersOfAGroupThatAreThereInOrder(t *testing.T) { // inbox.md 1 and 4
	inbox(t, bothModes, func(r *rig) {
		r.members("a1", "b1", "a2", "a3", "b2")
		r.took(turn.Options{Local: true}, "a: a1")
		r.took(turn.Options{Local: true, Members: 2, Turns: 2}, "b: b1 b2")
		r.members("a4", "b3", "c1")
		r.took(whole, "c: c1") // one live turn of a group
	})
	inbox(t, bothModes, func(r *rig) {
		r.members("a1", "b1", "a2")
		held := r.took(whole, "a: a1 a2; b: b1")
		r.member("a3")
		r.settle(held["a1"], job.OK)
		r.took(whole, "")
		r.settle(held["a2"], job.OK)
		r.took(whole, "a: a3")
	})
}

// What a failure means for those behind it is decided before they are settled, also where
// its message must be matched first.
func TestAFailureWhoseMessageIsMatchedEndsItsTurnBeforeTheNextEntry(t *testing.T) { // inbox.md 3, core.md 9
	scenario(t, func(r *rig) {
		r.queue("in", func(q *job.Queue) {
			failFirst(q)
			q.Retry = policy(r, `{"rules": [{"when": {"error_type": "A", "message": "x"}, "do": "retry"}]}`)
		})
		r.members("a1", "a2", "a3")
		held := r.took(whole, "a: a1 a2 a3")
		var list []engine.Settle
		for name, s := range map[string]engine.Settle{
			"a1": {Outcome: job.Retried, Failure: job.Failure{Type: "A", Message: "x"}},
			"a2": {Outcome: job.Retried, Failure: job.Failure{Type: "B"}},
			"a3": {Outcome: job.OK},
		} {
			s.ID, s.Token = r.ids[name], held[name].Lease.Token
			list = append(list, s)
		}
		slices.SortFunc(list, func(a, b engine.Settle) int { return a.ID.Compare(b.ID) })
		verdicts, err := r.Settle(r.Context(), list)
		if err != nil || verdicts[0].Err != nil || !verdicts[0].Cut || len(verdicts[0].Recalled) != 2 {
			r.Fatalf("%+v, %v", verdicts, err)
		}
		for i, name := range []string{"a2", "a3"} {
			if j := r.expect(name, job.Ready); job.KindOf(verdicts[i+1].Err) != job.Superseded || verdicts[i+1].Cut || j.Attempts != 0 {
				r.Errorf("%s went back as %+v: %v", name, j, verdicts[i+1].Err)
			}
		}
	})
}

func TestAFailureEndsTheTurnOfAStrictGroup(t *testing.T) { // inbox.md 3, reference 2.6 rows 2 and 3
	scenario(t, func(r *rig) {
		r.queue("in", failFirst)
		r.members("a1", "a2", "a3")
		held := r.took(whole, "a: a1 a2 a3")
		r.settle(held["a1"], job.OK)
		r.settle(held["a2"], job.Retried)
		if j := r.expect("a3", job.Ready); j.Evictions+j.Losses+j.Attempts != 0 || len(j.Leases) != 0 {
			r.Errorf("a3 was not left untouched: %+v", j)
		}
		r.refused(job.Superseded, engine.Settle{ID: r.ids["a3"], Token: held["a3"].Lease.Token})
		r.settle(held["a3"], job.Released) // says what happened already
		r.took(whole, "")
		r.Pass(10 * job.Second)
		r.took(whole, "a: a2 a3")
	})
}

func TestAGroupWithoutOrderGoesOnToTheEndOfItsTurn(t *testing.T) { // reference 2.6 rows 1, 5 and 8
	scenario(t, func(r *rig) {
		r.queue("in", toTheEnd)
		r.members("a1", "a2", "a3")
		held := r.took(whole, "a: a1 a2 a3")
		r.settle(held["a1"], job.OK)
		r.settle(held["a2"], job.Retried)
		r.settle(held["a3"], job.OK)
		r.member("a4")
		r.took(whole, "") // a2 is the head, and is not due
		r.Pass(10 * job.Second)
		held = r.took(whole, "a: a2 a4")
		r.settle(held["a2"], job.OK)
		r.settle(held["a4"], job.Retried)
		r.members("a5")
		r.took(whole, "")
	})
}

func TestMembersOfAStrictTurnAreDoneInOrder(t *testing.T) { // I7
	scenario(t, func(r *rig) {
		r.queue("in", failFirst)
		r.members("a1", "a2")
		held := r.took(whole, "a: a1 a2")
		r.refused(job.WrongState, engine.Settle{ID: r.ids["a2"], Token: held["a2"].Lease.Token})
		r.settle(held["a1"], job.OK)
		r.settle(held["a2"], job.OK)
	})
}

func TestARunVisitsEachGroupAtMostOnce(t *testing.T) { // inbox.md 4 and 5
	inbox(t, bothModes, func(r *rig) {
		r.members("a1", "b1", "a2", "b2")
		round, err := r.part.Turns.Round(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		one := turn.Options{Turns: 1, Local: true, Before: round}
		for _, name := range []string{"a1", "b1"} {
			held := r.took(one, name[:1]+": "+name)
			r.settle(held[name], job.OK)
		}
		r.members("c1") // after the run began
		r.took(one, "")
		if one.Before, err = r.part.Turns.Round(r.Context()); err != nil {
			r.Fatal(err)
		}
		for _, name := range []string{"a2", "b2", "c1"} {
			r.took(one, name[:1]+": "+name)
		}
		r.took(one, "")
	})
}

func TestALocalTurnEndsWithTheProcessAndBlamesNobody(t *testing.T) { // core.md 4
	inbox(t, bothModes, func(r *rig) {
		r.members("a1", "a2", "a3")
		held := r.took(whole, "a: a1 a2 a3")
		r.settle(held["a1"], job.OK)
		r.Pass(2 * job.Hour) // nothing lapses
		r.took(whole, "")
		r.PowerCut()
		for _, name := range []string{"a2", "a3"} {
			if j := r.expect(name, job.Ready); j.Losses+j.Evictions+j.Attempts != 0 {
				r.Errorf("%s was blamed: %+v", name, j)
			}
		}
		r.took(whole, "a: a2 a3")
	})
}

func TestAWaitingCallGetsTheTurnOfWhatComes(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		got := make(chan []turn.Turn)
		go func() {
			list, err := r.part.Turns.Lease(r.Context(), turn.Options{Queue: "in", Members: -1})
			if err != nil {
				r.Error(err)
			}
			got <- list
		}()
		r.Pass(job.Minute)
		r.members("a1")
		if list := <-got; len(list) != 1 || list[0].Group != "a" || list[0].Deliveries[0].Lease.Until == 0 {
			r.Errorf("got %+v", list)
		}
	})
}

func TestOnlyTurnsAreTakenFromAnInbox(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		r.members("a1")
		r.puts("q", "x")
		r.anonymous(9).gets("x")
		r.anonymous(9, "in").gets()
		_, err := r.part.Turns.Lease(r.Context(), turn.Options{Queue: "q"})
		if job.KindOf(err) != job.WrongState {
			r.Errorf("a queue without turns answers %v", err)
		}
		r.took(whole, "a: a1")
	})
}

// The holder works in order, so of a turn whose holder vanished only the first
// member that was not settled may be what killed it.
func TestOnlyTheMemberAtWorkIsLostWithItsHolder(t *testing.T) { // core.md 2 and 5
	ranked := func(n int64) func(*engine.NewJob) {
		return func(j *engine.NewJob) { j.Job.Ranked, j.Job.Rank = true, n }
	}
	scenario(t, func(r *rig) {
		r.queue("in", failFirst)
		r.member("a2", ranked(2)) // the timers go by id, the group does not
		r.member("a3", ranked(3))
		r.member("a1", ranked(1))
		held := r.took(turn.Options{Members: -1, For: 10 * job.Second}, "a: a1 a2 a3")
		r.Pass(10 * job.Second)
		for name, losses := range map[string]uint32{"a1": 1, "a2": 0, "a3": 0} {
			if j := r.expect(name, job.Ready); j.Losses != losses || j.Evictions+j.Attempts != 0 {
				r.Errorf("%s: %d losses, want %d: %+v", name, j.Losses, losses, j)
			}
		}
		late := func(name string) engine.Settle { return engine.Settle{ID: r.ids[name], Token: held[name].Lease.Token} }
		r.refused(job.Superseded, late("a2")) // not before the one before it
		r.settle(held["a1"], job.OK)
		r.settle(held["a2"], job.OK)
		r.took(turn.Options{}, "a: a3")
		r.refused(job.Superseded, late("a3")) // a newer turn
	})
}

func TestAWorkerThatStopsReleasesItsTurn(t *testing.T) { // core.md 5
	inbox(t, bothModes, func(r *rig) {
		r.members("a1", "a2", "a3")
		held := r.took(turn.Options{Members: -1}, "a: a1 a2 a3")
		for _, name := range []string{"a1", "a2", "a3"} {
			r.settle(held[name], job.Released)
		}
		r.took(whole, "a: a1 a2 a3")
	})
}

func TestLimitsHoldInsideATurn(t *testing.T) { // retry.md 4
	inbox(t, bothModes, func(r *rig) {
		r.queue("in", func(q *job.Queue) { q.Protection.MaxRunning = 3 })
		r.members("a1", "a2", "b1", "b2")
		held := r.took(whole, "a: a1 a2; b: b1")
		r.settle(held["a1"], job.OK)
		r.settle(held["b1"], job.OK)
		r.took(whole, "b: b2")
	})
	scenario(t, func(r *rig) {
		r.queue("in", toTheEnd)
		r.members("a1", "a2", "a3", "b1")
		r.took(whole, "a: a1 a2")
	}, func(r *rig) { r.Opts.InFlightMax = 2 })
}

func TestAMemberThatNeedsAnotherHolderOrNobodyBesideItHasItsOwnTurn(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("in", toTheEnd)
		r.queue("in", func(q *job.Queue) { q.Retry.LossLimit = job.LimitOf(2) })
		r.members("a1", "a2", "a3")
		r.took(turn.Options{For: job.Second}, "a: a1")
		r.Pass(job.Second) // lost once of two: from now on it is delivered alone
		held := r.took(whole, "a: a1")
		if d := held["a1"]; !d.Lease.Exclusive {
			r.Errorf("a1 came as %+v", d.Lease)
		}
		r.settle(held["a1"], job.OK)
		r.took(whole, "a: a2 a3")
	})
}
