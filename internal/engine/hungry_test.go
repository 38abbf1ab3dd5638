package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Who waits is served in the order in which each last got something.

func TestTheHolderThatGotSomethingGoesBehindAllOthers(t *testing.T) {
	scenario(t, func(r *rig) {
		list := []*stream{r.Anonymous(9), r.Anonymous(9), r.Anonymous(9)}
		// Two of them get something before the round: the third is first now.
		for i, name := range []string{"a", "b"} {
			r.AddAll("q", name)
			list[i].Gets(name)
		}
		for round, name := range []string{"c", "d", "e", "f", "g", "h"} {
			r.AddAll("q", name)
			for i, s := range list {
				if i == (round+2)%len(list) {
					s.Gets(name)
				} else {
					s.Gets()
				}
			}
		}
		list[0].End() // what it had, c, a and f among it, goes on to the others; it gets nothing more
		list[1].Read()
		list[2].Read()
		r.AddAll("q", "i", "j")
		if n := len(list[1].Read()) + len(list[2].Read()); n != 2 {
			r.Errorf("the two that are left got %d", n)
		}
	})
}

func TestHoldersThatGotRoomInOneBatchAreServedInTheirOrder(t *testing.T) {
	scenario(t, func(r *rig) {
		first, second := r.Anonymous(1), r.Anonymous(1)
		r.AddAll("q", "a", "b", "c", "d")
		first.Gets("a")
		second.Gets("b")
		list := []engine.Settle{ // the other way round: it is not their order that counts
			{ID: r.IDs["b"], Token: second.Held["b"].Lease.Token},
			{ID: r.IDs["a"], Token: first.Held["a"].Lease.Token},
		}
		if _, err := r.Settle(r.Context(), list); err != nil {
			r.Fatal(err)
		}
		first.Gets("c")
		second.Gets("d")
	})
}

func TestACallThatWasAnsweredWaitsNoMore(t *testing.T) {
	scenario(t, func(r *rig) {
		r.AddAll("q", "a")
		got := r.Leased(engine.LeaseOptions{For: job.Minute}, "a")
		r.Settled(got["a"], job.OK)
		r.AddAll("q", "b")
		synctest.Wait()
		r.Expect("b", job.Ready)
		if n := r.Part.Meter.Measure(r.Context()).Holders[job.Unary]; n != 0 {
			r.Errorf("%d calls wait", n)
		}
	})
}
