package job

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
)

func TestEveryStateIsEitherOpenOrTerminalOrNone(t *testing.T) { // I1
	for s := None; s < States; s++ {
		kinds := 0
		for _, is := range []bool{s == None, s.Open(), s.Terminal()} {
			if is {
				kinds++
			}
		}
		if kinds != 1 {
			t.Errorf("%s is of %d kinds", s, kinds)
		}
	}
}

func TestStatesAndReasonsAreNamedAsTheDesignDoes(t *testing.T) {
	for got, want := range map[string]string{
		fmt.Sprint(None, Scheduled, Ready, Leased, Done, Dead):                                  "none scheduled ready leased done dead",
		fmt.Sprint(Alive, Exhausted, Killed, Expired, Lost, Rejected, Evicted, ReasonCancelled): " exhausted killed expired lost rejected evicted cancelled",
		fmt.Sprint(OrderNone, OrderStart, OrderStrict):                                          "none start strict",
		fmt.Sprint(DeadSkip, DeadBlock, DeadPark):                                               "skip block park",
		fmt.Sprint(FrontBySeq, FrontLIFO):                                                       "by_seq lifo",
		fmt.Sprint(FullReject, FullDropOldest):                                                  "reject drop_oldest",
		fmt.Sprint(Alive.String() == "", Order(0) == OrderNone, OnDead(0) == DeadSkip):          "true true true",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestACloneSharesNothingThatAStepChanges(t *testing.T) {
	j := &Job{
		Leases: []Lease{{Holder: "a"}, {Holder: "b"}},
		Ended:  []Ended{{Hash: 1}},
	}
	c := j.Clone()
	if !reflect.DeepEqual(j, c) {
		t.Fatalf("the clone is %+v", c)
	}
	c.Leases[0].Holder, c.Ended[0].How = "x", ByCancel
	c.Leases, c.State = append(c.Leases[:1], c.Leases[2:]...), Dead
	if j.Leases[0].Holder != "a" || j.Ended[0].How != ByLapse || len(j.Leases) != 2 || j.State != None {
		t.Errorf("changing the clone changed the original: %+v", j)
	}
}

func TestMaxAgeCountsFromCreationOrTheLatestRevive(t *testing.T) { // core.md section 6, point 4
	if got := (&Job{Created: 5}).Born(); got != 5 {
		t.Errorf("born %d", got)
	}
	if got := (&Job{Created: 5, RevivedAt: 9}).Born(); got != 9 {
		t.Errorf("revived, born %d", got)
	}
}

func TestALeaseIsFoundByTokenAndByHolder(t *testing.T) {
	a, b := NewToken(1, dice(1)), NewToken(1, dice(2))
	j := &Job{Leases: []Lease{{Token: a, Holder: "w/a"}}}
	if j.LeaseOf(a) != 0 || j.LeaseOf(b) != -1 || j.LeaseOf(Token{}) != -1 {
		t.Error("found by the wrong token")
	}
	if !j.HeldBy("w/a") || j.HeldBy("w/b") || j.HeldBy("") {
		t.Error("held by the wrong holder")
	}
}

func TestAnErrorHasOneKindHoweverItIsWrapped(t *testing.T) {
	e := &Error{Kind: OverLimit, Field: "queue", Text: "full", Cause: io.ErrUnexpectedEOF}
	wrapped := fmt.Errorf("settling item 7: %w", e)
	if KindOf(wrapped) != OverLimit || !errors.Is(wrapped, io.ErrUnexpectedEOF) || e.Error() != "full: unexpected EOF" {
		t.Errorf("%v: %v", KindOf(wrapped), wrapped)
	}
	if KindOf(io.EOF) != Internal || KindOf(Errorf(NotFound, "no %s", "job")) != NotFound {
		t.Error("kinds are mixed up")
	}
}

func TestAddSaturatesAtBothEnds(t *testing.T) {
	for _, x := range []struct{ a, b, want Millis }{
		{1, 2, 3},
		{5, -7, 0},
		{MaxMillis, 1, MaxMillis},
		{MaxMillis, MaxMillis, MaxMillis},
		{-MaxMillis, -MaxMillis, 0},
		{-5, 3, 0},
		{MaxMillis, -1, MaxMillis - 1},
	} {
		if got := x.a.Add(x.b); got != x.want {
			t.Errorf("%d + %d = %d, want %d", x.a, x.b, got, x.want)
		}
	}
}

func TestRowsHaveTheirTableTheirKeyAndTheirTime(t *testing.T) {
	for _, x := range []struct {
		row   Row
		table Table
		key   string
		due   Millis
	}{
		{&Queue{Name: "q", HoldUntil: 7}, Queues, "q", 7},
		{NewQueue("q"), Queues, "q", 0},
		{&Gate{Queue: "q", Group: "g", Hold: 8}, Gates, "q\x00g", 8},
		{&Holder{Name: "w/a", Until: 9}, Holders, "w/a", 9},
		{&Receipt{Hash: [16]byte{1}, Expires: 10}, Receipts, "\x01" + string(make([]byte, 15)), 10},
		{&Reserve{Name: "seq", Next: 11}, Reserves, "seq", 0},
	} {
		if x.row.Table() != x.table || x.row.Key() != x.key || x.row.Due() != x.due {
			t.Errorf("%T: table %d key %q due %d", x.row, x.row.Table(), x.row.Key(), x.row.Due())
		}
	}
}

func TestANewQueueLeavesRetentionToTheServer(t *testing.T) {
	q := NewQueue("q")
	if q.RetainDone != Unset || q.RetainDead != Unset || *q != (Queue{Name: "q", RetainDone: Unset, RetainDead: Unset}) {
		t.Errorf("%+v", q)
	}
}

func TestAGateIsBlankOnlyWithoutAnythingToRemember(t *testing.T) {
	for _, g := range []Gate{{Hold: 1}, {Park: "pause"}, {Turn: 1}, {LastSeq: 1}} {
		if g.Blank() {
			t.Errorf("%+v is not blank", g)
		}
	}
	if !(&Gate{Queue: "q", Group: "g"}).Blank() {
		t.Error("a gate of a name only is blank")
	}
}
