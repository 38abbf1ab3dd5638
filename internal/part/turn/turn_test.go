package turn_test

import (
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/turn"
)

// inbox is a scenario with a queue in each of the two modes.
func inbox(t *testing.T, modes map[string]func(*job.Queue), f func(r *rig)) {
	t.Helper()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) { r.SetQueue("in", mode); f(r) })
		})
	}
}

func TestATurnHasTheMembersOfAGroupThatAreThereInOrder(t *testing.T) { // inbox.md 1 and 4
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "b1", "a2", "a3", "b2")
		r.Took(turn.Options{Local: true}, "a: a1")
		r.Took(turn.Options{Local: true, Members: 2, Turns: 2}, "b: b1 b2")
		r.Members("a4", "b3", "c1")
		r.Took(whole, "c: c1") // one live turn of a group
	})
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "b1", "a2")
		held := r.Took(whole, "a: a1 a2; b: b1")
		r.Member("a3")
		r.Settled(held["a1"], job.OK)
		r.Took(whole, "")
		r.Settled(held["a2"], job.OK)
		r.Took(whole, "a: a3")
	})
}

// What a failure means for those behind it is decided before they are settled, also where
// its message must be matched first.
func TestAFailureWhoseMessageIsMatchedEndsItsTurnBeforeTheNextEntry(t *testing.T) { // inbox.md 3, core.md 9
	scenario(t, func(r *rig) {
		r.SetQueue("in", func(q *job.Queue) {
			failFirst(q)
			q.Retry = policy(r, `{"rules": [{"when": {"error_type": "A", "message": "x"}, "do": "retry"}]}`)
		})
		r.Members("a1", "a2", "a3")
		held := r.Took(whole, "a: a1 a2 a3")
		var list []engine.Settle
		for name, s := range map[string]engine.Settle{
			"a1": {Outcome: job.Retried, Failure: job.Failure{Type: "A", Message: "x"}},
			"a2": {Outcome: job.Retried, Failure: job.Failure{Type: "B"}},
			"a3": {Outcome: job.OK},
		} {
			s.ID, s.Token = r.IDs[name], held[name].Lease.Token
			list = append(list, s)
		}
		slices.SortFunc(list, func(a, b engine.Settle) int { return a.ID.Compare(b.ID) })
		verdicts, err := r.Settle(r.Context(), list)
		if err != nil || verdicts[0].Err != nil || !verdicts[0].Cut || len(verdicts[0].Recalled) != 2 {
			r.Fatalf("%+v, %v", verdicts, err)
		}
		for i, name := range []string{"a2", "a3"} {
			if j := r.Expect(name, job.Ready); job.KindOf(verdicts[i+1].Err) != job.Superseded || verdicts[i+1].Cut || j.Attempts != 0 {
				r.Errorf("%s went back as %+v: %v", name, j, verdicts[i+1].Err)
			}
		}
	})
}

func TestAFailureEndsTheTurnOfAStrictGroup(t *testing.T) { // inbox.md 3, reference 2.6 rows 2 and 3
	scenario(t, func(r *rig) {
		r.SetQueue("in", failFirst)
		r.Members("a1", "a2", "a3")
		held := r.Took(whole, "a: a1 a2 a3")
		r.Settled(held["a1"], job.OK)
		r.Settled(held["a2"], job.Retried)
		if j := r.Expect("a3", job.Ready); j.Evictions+j.Losses+j.Attempts != 0 || len(j.Leases) != 0 {
			r.Errorf("a3 was not left untouched: %+v", j)
		}
		r.Refused(job.Superseded, engine.Settle{ID: r.IDs["a3"], Token: held["a3"].Lease.Token})
		r.Settled(held["a3"], job.Released) // says what happened already
		r.Took(whole, "")
		r.Pass(10 * job.Second)
		r.Took(whole, "a: a2 a3")
	})
}

func TestAGroupWithoutOrderGoesOnToTheEndOfItsTurn(t *testing.T) { // reference 2.6 rows 1, 5 and 8
	scenario(t, func(r *rig) {
		r.SetQueue("in", toTheEnd)
		r.Members("a1", "a2", "a3")
		held := r.Took(whole, "a: a1 a2 a3")
		r.Settled(held["a1"], job.OK)
		r.Settled(held["a2"], job.Retried)
		r.Settled(held["a3"], job.OK)
		r.Member("a4")
		r.Took(whole, "") // a2 is the head, and is not due
		r.Pass(10 * job.Second)
		held = r.Took(whole, "a: a2 a4")
		r.Settled(held["a2"], job.OK)
		r.Settled(held["a4"], job.Retried)
		r.Members("a5")
		r.Took(whole, "")
	})
}

func TestMembersOfAStrictTurnAreDoneInOrder(t *testing.T) { // I7
	scenario(t, func(r *rig) {
		r.SetQueue("in", failFirst)
		r.Members("a1", "a2")
		held := r.Took(whole, "a: a1 a2")
		r.Refused(job.WrongState, engine.Settle{ID: r.IDs["a2"], Token: held["a2"].Lease.Token})
		r.Settled(held["a1"], job.OK)
		r.Settled(held["a2"], job.OK)
	})
}

func TestARunVisitsEachGroupAtMostOnce(t *testing.T) { // inbox.md 4 and 5
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "b1", "a2", "b2")
		round, err := r.Part.Turns.Round(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		one := turn.Options{Turns: 1, Local: true, Before: round}
		for _, name := range []string{"a1", "b1"} {
			held := r.Took(one, name[:1]+": "+name)
			r.Settled(held[name], job.OK)
		}
		r.Members("c1") // after the run began
		r.Took(one, "")
		if one.Before, err = r.Part.Turns.Round(r.Context()); err != nil {
			r.Fatal(err)
		}
		for _, name := range []string{"a2", "b2", "c1"} {
			r.Took(one, name[:1]+": "+name)
		}
		r.Took(one, "")
	})
}

func TestALocalTurnEndsWithTheProcessAndBlamesNobody(t *testing.T) { // core.md 4
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "a2", "a3")
		held := r.Took(whole, "a: a1 a2 a3")
		r.Settled(held["a1"], job.OK)
		r.Pass(2 * job.Hour) // nothing lapses
		r.Took(whole, "")
		r.PowerCut()
		for _, name := range []string{"a2", "a3"} {
			if j := r.Expect(name, job.Ready); j.Losses+j.Evictions+j.Attempts != 0 {
				r.Errorf("%s was blamed: %+v", name, j)
			}
		}
		r.Took(whole, "a: a2 a3")
	})
}

func TestAWaitingCallGetsTheTurnOfWhatComes(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		got := make(chan []turn.Turn)
		go func() {
			list, err := r.Part.Turns.Lease(r.Context(), turn.Options{Queue: "in", Members: -1})
			if err != nil {
				r.Error(err)
			}
			got <- list
		}()
		r.Pass(job.Minute)
		r.Members("a1")
		if list := <-got; len(list) != 1 || list[0].Group != "a" || list[0].Deliveries[0].Lease.Until == 0 {
			r.Errorf("got %+v", list)
		}
	})
}

func TestOnlyTurnsAreTakenFromAnInbox(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1")
		r.AddAll("q", "x")
		r.Anonymous(9).Gets("x")
		r.Anonymous(9, "in").Gets()
		_, err := r.Part.Turns.Lease(r.Context(), turn.Options{Queue: "q"})
		if job.KindOf(err) != job.WrongState {
			r.Errorf("a queue without turns answers %v", err)
		}
		r.Took(whole, "a: a1")
	})
}

// The holder works in order, so of a turn whose holder vanished only the first
// member that was not settled may be what killed it.
func TestOnlyTheMemberAtWorkIsLostWithItsHolder(t *testing.T) { // core.md 2 and 5
	ranked := func(n int64) func(*engine.NewJob) {
		return func(j *engine.NewJob) { j.Job.Ranked, j.Job.Rank = true, n }
	}
	scenario(t, func(r *rig) {
		r.SetQueue("in", failFirst)
		r.Member("a2", ranked(2)) // the timers go by id, the group does not
		r.Member("a3", ranked(3))
		r.Member("a1", ranked(1))
		held := r.Took(turn.Options{Members: -1, For: 10 * job.Second}, "a: a1 a2 a3")
		r.Pass(10 * job.Second)
		for name, losses := range map[string]uint32{"a1": 1, "a2": 0, "a3": 0} {
			if j := r.Expect(name, job.Ready); j.Losses != losses || j.Evictions+j.Attempts != 0 {
				r.Errorf("%s: %d losses, want %d: %+v", name, j.Losses, losses, j)
			}
		}
		late := func(name string) engine.Settle { return engine.Settle{ID: r.IDs[name], Token: held[name].Lease.Token} }
		r.Refused(job.Superseded, late("a2")) // not before the one before it
		r.Settled(held["a1"], job.OK)
		r.Settled(held["a2"], job.OK)
		r.Took(turn.Options{}, "a: a3")
		r.Refused(job.Superseded, late("a3")) // a newer turn
	})
}

func TestAWorkerThatStopsReleasesItsTurn(t *testing.T) { // core.md 5
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "a2", "a3")
		held := r.Took(turn.Options{Members: -1}, "a: a1 a2 a3")
		for _, name := range []string{"a1", "a2", "a3"} {
			r.Settled(held[name], job.Released)
		}
		r.Took(whole, "a: a1 a2 a3")
	})
}

func TestLimitsHoldInsideATurn(t *testing.T) { // retry.md 4
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", func(q *job.Queue) { q.Protection.MaxRunning = 3 })
		r.Members("a1", "a2", "b1", "b2")
		held := r.Took(whole, "a: a1 a2; b: b1")
		r.Settled(held["a1"], job.OK)
		r.Settled(held["b1"], job.OK)
		r.Took(whole, "b: b2")
	})
	scenario(t, func(r *rig) {
		r.SetQueue("in", toTheEnd)
		r.Members("a1", "a2", "a3", "b1")
		r.Took(whole, "a: a1 a2")
	}, func(r *rig) { r.Opts.InFlightMax = 2 })
}

func TestAMemberThatNeedsAnotherHolderOrNobodyBesideItHasItsOwnTurn(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("in", toTheEnd)
		r.SetQueue("in", func(q *job.Queue) { q.Retry.LossLimit = job.LimitOf(2) })
		r.Members("a1", "a2", "a3")
		r.Took(turn.Options{For: job.Second}, "a: a1")
		r.Pass(job.Second) // lost once of two: from now on it is delivered alone
		held := r.Took(whole, "a: a1")
		if d := held["a1"]; !d.Lease.Exclusive {
			r.Errorf("a1 came as %+v", d.Lease)
		}
		r.Settled(held["a1"], job.OK)
		r.Took(whole, "a: a2 a3")
	})
}
