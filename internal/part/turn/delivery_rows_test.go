package turn_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/turn"
)

// deliveryRow is a row of table 2.6 of the reference with our decisions: what the
// engine makes of it, and where else it is proved. What a setting or a message must
// not be, the door refuses; the engine's part is then that nobody else is concerned.
type deliveryRow struct {
	number int
	what   string
	prove  func(t *testing.T)
	also   string // "file Test"; "" = nowhere else
}

const (
	courierTests = "../../door/inbox/courier_test.go"
	readTests    = "../../door/inbox/read_test.go"
	messageTests = "../../door/inbox/message_test.go"
	httpTests    = "../../httpapi/inbox_test.go"
)

var deliveryRows = []deliveryRow{
	{1, "all goes on to the end", runsOf("all", -1, "", "m2 > m1 m2 m3", "> ", "wait", "> m2"), courierTests + " TestDeliveryStopsOrGoesOnBehindAFailure"},
	{2, "fail_first stops, the rest is untouched", runsOf("fail_first", -1, "", "m2 > m1 m2"), courierTests + " TestDeliveryStopsOrGoesOnBehindAFailure"},
	{3, "until the failed head is due nobody of its group goes", func(t *testing.T) {
		runsOf("fail_first", -1, "", "m2 > m1 m2", "> ", "wait", "> m2 m3")(t)
		runsOf("all", -1, "", "m1 > m1 m2 m3", "> ", "wait", "> m1")(t)
	}, courierTests + " TestDeliveryStopsOrGoesOnBehindAFailure"},
	{4, "one a run: the mode does not matter", func(t *testing.T) {
		for mode := range bothModes {
			runsOf(mode, 1, "", "m2 > m1", "m2 > m2", "> ", "wait", "> m2", "> m3", "> ")(t)
		}
	}, courierTests + " TestDeliveryStopsOrGoesOnBehindAFailure"},
	{5, "at most two, all", runsOf("all", 2, "", "m1 > m1 m2", "> ", "wait", "> m1 m3"), courierTests + " TestDeliveryStopsOrGoesOnBehindAFailure"},
	{6, "a batch of none is refused; a take that does not say is of one", takesOf(0, "g: m1"), readTests + " TestBadSettingsAreRefusedByName"},
	{7, "a negative batch other than -1 is refused; to the engine it is all", takesOf(-2, "g: m1 m2 m3"), readTests + " TestBadSettingsAreRefusedByName"},
	{8, "two fail, the first one opens", runsOf("all", -1, "", "m1 m2 > m1 m2 m3", "> ", "wait", "> m1 m2"), courierTests + " TestDeliveryStopsOrGoesOnBehindAFailure"},
	{9, "who delivers breaks at m2: m1 stays done, m2 is to blame", proveBrokenHolder, messageTests + " TestTooManyHeadersConcernTheirMessage"},
	{10, "inside the time to live, fail_first", runsOf("fail_first", -1, "m1", "m1 > m1", "m1 > m1", "> m1 m2 m3"), ""},
	{11, "inside the time to live, all", runsOf("all", -1, "m1", "m1 > m1 m2 m3", "m1 > m1", "> m1"), ""},
	{12, "a message without a group is refused; a bad one stops its group only", proveOneBadGroup, messageTests + " TestWhereTheGroupOfAMessageStands"},
	{13, "a message that never works is charged when it is tried, and not by each run", proveChargedWhenTried, httpTests + " TestABadMessageConcernsOnlyItself"},
	{14, "a page of blocked groups hides nobody", proveNobodyHidden, "turn_bench_test.go TestBlockedGroupsStarveNobody"},
	{15, "a crash repeats only what was not acknowledged", proveCrash, "../../../test/e2e/inbox_test.go TestOrderIsKeptThroughKillNine"},
	{16, "an acknowledgement that cannot be kept repeats its message only", proveLostAcknowledgement, courierTests + " TestAnAcknowledgementThatIsLostRepeatsItsMessageOnly"},
}

func TestTheDeliveryVectorsOfTheReference(t *testing.T) { // inbox.md 3 to 7 and 12, reference 2.6
	for i, row := range deliveryRows {
		if row.number != i+1 {
			t.Fatalf("row %d stands at %d", row.number, i+1)
		}
		t.Run(fmt.Sprint(row.number, " ", row.what), row.prove)
		if file, name, is := strings.Cut(row.also, " "); is {
			if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "func "+name+"(t *testing.T)") {
				t.Errorf("row %d is said to be proved by %s of %s, which is not there (%v)", row.number, name, file, err)
			}
		}
	}
	if len(deliveryRows) != 16 {
		t.Errorf("the table has %d rows", len(deliveryRows))
	}
}

// runsOf proves what each run of a polled inbox tries of m1, m2 and m3: a step is
// "what fails > what is tried", or "wait" until what failed is due. graced are inside
// their time to live.
func runsOf(mode string, members int, graced string, steps ...string) func(*testing.T) {
	return func(t *testing.T) {
		scenario(t, func(r *rig) {
			r.SetQueue("in", polled(bothModes[mode]))
			for _, m := range []string{"m1", "m2", "m3"} {
				r.Add("in", m, grouped("g"), func(n *engine.NewJob) {
					if strings.Contains(graced, m) {
						n.Job.GraceUntil = r.Clock.Wall() + job.Hour
					}
				})
			}
			for at, step := range steps {
				if step == "wait" {
					r.Pass(10 * job.Second)
					continue
				}
				r.Pass(100)
				fails, want, _ := strings.Cut(step, ">")
				if got := r.run(members, fails); strings.Join(got, " ") != strings.TrimSpace(want) {
					t.Fatalf("%s: run %d tried %v, want %q", mode, at+1, got, want)
				}
			}
		})
	}
}

func (r *rig) threeOf(group string) {
	r.Helper()
	for _, m := range []string{"m1", "m2", "m3"} {
		r.Add("in", m, grouped(group))
	}
}

func takesOf(members int, want string) func(*testing.T) {
	return func(t *testing.T) {
		inbox(t, bothModes, func(r *rig) {
			r.threeOf("g")
			r.Took(turn.Options{Members: members, Turns: 9}, want)
		})
	}
}

// blamed holds messages to what was noted of them: "m1 2" is two attempts, "m1 +1"
// one loss.
func (r *rig) blamed(want ...string) {
	r.Helper()
	for _, text := range want {
		name, n, _ := strings.Cut(text, " ")
		j, got := r.Job(name), ""
		if got = fmt.Sprint(j.Attempts); j.Losses > 0 {
			got = fmt.Sprint("+", j.Losses)
		}
		if got != n {
			r.Errorf("%s has %d attempts and %d losses, want %s", name, j.Attempts, j.Losses, n)
		}
	}
}

func proveBrokenHolder(t *testing.T) {
	keep := func(q *job.Queue) { q.RetainDone = job.Hour }
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", keep)
		r.threeOf("g")
		held := r.Took(turn.Options{Members: -1, For: 5 * job.Second}, "g: m1 m2 m3")
		r.Settled(held["m1"], job.OK)
		r.Pass(5 * job.Second) // and nothing more is heard
		r.Expect("m1", job.Done)
		r.blamed("m1 0", "m2 +1")
		if r.Job("m3").Order == job.OrderStrict {
			r.blamed("m3 0") // it is never tried before m2
		}
		r.runs("", "m2 m3")
	})
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", keep)
		r.threeOf("g")
		held := r.Took(whole, "g: m1 m2 m3")
		r.Settled(held["m1"], job.OK)
		r.Settled(held["m2"], job.Retried)
		r.Expect("m1", job.Done)
		r.blamed("m1 0", "m2 1", "m3 0")
		r.runs("", "")
	})
}

func proveOneBadGroup(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(0) })
		r.Members("a1", "b1", "c1", "a2", "b2", "c2")
		if got := r.run(-1, "b1"); len(got) < 5 || !slices.Contains(got, "c2") || !slices.Contains(got, "a2") {
			r.Errorf("tried %v: group b stalls the others", got)
		}
		r.Expect("b1", job.Dead)
		r.Members("a3", "b3", "c3")
		r.runs("", "a3 c3")
	})
}

func proveChargedWhenTried(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", polled(func(q *job.Queue) { q.Retry.Limit = job.LimitOf(2) }))
		r.Members("a1")
		tries := 0
		for range 60 { // every second, and it is due every ten
			tries += len(r.run(-1, "a1"))
			r.blamed(fmt.Sprint("a1 ", tries))
			r.Pass(job.Second)
		}
		if r.Expect("a1", job.Dead); tries != 3 {
			r.Errorf("tried %d times, its limit is 3", tries)
		}
	})
}

func proveNobodyHidden(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "b1", "c1", "a2", "b2", "c2")
		page := turn.Options{Turns: 3, Members: 1, Local: true}
		for _, d := range r.Took(page, "a: a1; b: b1; c: c1") {
			r.Settled(d, job.Retried)
		}
		r.Members("d1")
		r.Took(page, "d: d1")
	})
}

func proveCrash(t *testing.T) {
	inbox(t, bothModes, func(r *rig) {
		r.threeOf("g")
		r.Settled(r.Took(whole, "g: m1 m2 m3")["m1"], job.OK)
		r.PowerCut()
		r.blamed("m2 0", "m3 0")
		r.runs("", "m2 m3")
	})
}

// Whether a commit that failed took effect is known when the store is open again: m2
// is done, or it is delivered once more. Nobody is blamed, and m1 is not repeated.
func proveLostAcknowledgement(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(8) {
		for name, mode := range bothModes {
			scenario(t, func(r *rig) {
				r.SetQueue("in", mode)
				r.threeOf("g")
				held := r.Took(whole, "g: m1 m2 m3")
				r.Settled(held["m1"], job.OK)
				r.Mem.FailNextCommit(errDisk)
				d := held["m2"]
				if _, err := r.Settle(r.Context(), []engine.Settle{{ID: d.Job.ID, Token: d.Lease.Token}}); job.KindOf(err) != job.Unavailable {
					r.Fatalf("%s: the acknowledgement was answered %v", name, err)
				}
				r.Recovered()
				r.blamed("m3 0")
				rest := "m3"
				if j, _, err := r.Get(r.Context(), r.IDs["m2"]); err == nil && j.State == job.Ready {
					r.blamed("m2 0")
					rest = "m2 m3"
				}
				seen[rest] = true
				r.runs("", rest)
			}, func(r *rig) { r.Seed = seed })
		}
	}
	if len(seen) != 2 {
		t.Errorf("seen is only %v", seen)
	}
}
