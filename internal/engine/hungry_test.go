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
		list := []*stream{r.anonymous(9), r.anonymous(9), r.anonymous(9)}
		// Two of them get something before the round: the third is first now.
		for i, name := range []string{"a", "b"} {
			r.puts("q", name)
			list[i].gets(name)
		}
		for round, name := range []string{"c", "d", "e", "f", "g", "h"} {
			r.puts("q", name)
			for i, s := range list {
				if i == (round+2)%len(list) {
					s.gets(name)
				} else {
					s.gets()
				}
			}
		}
		list[0].close() // what it had, c, a and f among it, goes on to the others; it gets nothing more
		list[1].read()
		list[2].read()
		r.puts("q", "i", "j")
		if n := len(list[1].read()) + len(list[2].read()); n != 2 {
			r.Errorf("the two that are left got %d", n)
		}
	})
}

func TestHoldersThatGotRoomInOneBatchAreServedInTheirOrder(t *testing.T) {
	scenario(t, func(r *rig) {
		first, second := r.anonymous(1), r.anonymous(1)
		r.puts("q", "a", "b", "c", "d")
		first.gets("a")
		second.gets("b")
		list := []engine.Settle{ // the other way round: it is not their order that counts
			{ID: r.ids["b"], Token: second.held["b"].Lease.Token},
			{ID: r.ids["a"], Token: first.held["a"].Lease.Token},
		}
		if _, err := r.Settle(r.Context(), list); err != nil {
			r.Fatal(err)
		}
		first.gets("c")
		second.gets("d")
	})
}

func TestACallThatWasAnsweredWaitsNoMore(t *testing.T) {
	scenario(t, func(r *rig) {
		r.puts("q", "a")
		got := r.lease(engine.LeaseOptions{For: job.Minute}, "a")
		r.settle(got["a"], job.OK)
		r.puts("q", "b")
		synctest.Wait()
		r.expect("b", job.Ready)
		if n := r.part.Meter.Measure(r.Context()).Holders[job.Unary]; n != 0 {
			r.Errorf("%d calls wait", n)
		}
	})
}
