package storetest

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var sessions = []subject{
	{"stand in line for engines only, by name", sessionLines},
	{"a host is offered no copy of what runs there", copyOfTheHost},
	{"the finished come in the order in which they finished", finishedInOrder},
	{"what wants a holder is counted", wantingCounted},
	{"what is kept for some holders is offered to no other", keptForSome},
}

// session makes a queue one.
func (x *site) session(name string) {
	x.Helper()
	q := job.NewQueue(name)
	q.RetainDone, q.Grid = job.Hour, &job.Grid{Weight: 5, MaxCopies: 3, MaxReschedules: 9}
	x.set(q)
}

func sessionLines(x *site) {
	engine := rule.Seeker{Holder: "e", Engine: true}
	x.put("q", "a")
	x.put("s", "b")
	x.expect("a queue like the others", x.line(rule.Seeker{Holder: "w"}, 9), "a b")
	x.session("s")
	for _, when := range []string{"", ", reopened"} {
		x.expect("a worker for all"+when, x.line(rule.Seeker{Holder: "w"}, 9), "a")
		x.expect("a worker by name"+when, x.line(rule.Seeker{Holder: "w"}, 9, "s", "q"), "a")
		x.expect("an engine for all"+when, x.line(engine, 9), "")
		x.expect("an engine by name"+when, x.line(engine, 9, "s", "q"), "b")
		x.reopen()
	}
	x.set(job.NewQueue("s"))
	x.expect("a queue again", x.line(rule.Seeker{Holder: "w"}, 9), "a b")
}

func copyOfTheHost(x *site) {
	x.session("s")
	a := x.put("s", "a")
	x.put("s", "b")
	a = x.do(a, rule.Command{Verb: rule.Take, Lease: &job.Lease{Token: x.token(), Holder: "e1", Kind: job.Named, Host: "h"}})
	a = x.do(a, rule.Command{Verb: rule.Offer, Place: job.PlaceFront})
	seek := func(holder, host string) rule.Seeker { return rule.Seeker{Holder: holder, Host: host, Engine: true} }
	for _, when := range []string{"", ", reopened"} {
		x.expect("itself"+when, x.line(seek("e1", "h"), 9, "s"), "b")
		x.expect("its neighbour"+when, x.line(seek("e2", "h"), 9, "s"), "b")
		x.expect("another host"+when, x.line(seek("e3", "g"), 1, "s"), "a")
		x.reopen()
	}
	x.settle(a, rule.SettleRelease)
	x.expect("not running", x.line(seek("e2", "h"), 9, "s"), "a b")
}

func finishedInOrder(x *site) {
	x.session("s")
	var list []*job.Job
	for _, name := range []string{"a", "b", "c", "d"} {
		list = append(list, x.take(x.put("s", name, func(c *rule.Command) { c.New.Door = job.DoorGrid }), "e"))
	}
	for _, i := range []int{2, 0, 3} {
		verb := rule.SettleOK
		if i == 0 {
			verb = rule.SettleDead
		}
		list[i] = x.settle(list[i], verb)
	}
	ask := func(after int64, n int) string {
		return x.ids(func(r store.Reader) ([]job.ID, error) { return r.IDs(store.Finished("s", after), n) })
	}
	for _, when := range []string{"", ", reopened"} {
		x.expect("all"+when, ask(0, 9), "c a d")
		x.expect("two"+when, ask(0, 2), "c a")
		x.expect("behind the first"+when, ask(list[2].Finished, 9), "a d")
		x.expect("behind the last"+when, ask(list[3].Finished, 9), "")
		x.expect("none"+when, ask(0, 0), "")
		x.reopen()
	}
	x.do(list[0], rule.Command{Verb: rule.Revive})
	x.expect("one runs again", ask(0, 9), "c d")
	x.do(list[2], rule.Command{Verb: rule.Purge})
	x.expect("one is forgotten", ask(0, 9), "d")
}

func wantingCounted(x *site) {
	want := func(what string, n int64) {
		x.Helper()
		x.view(func(r store.Reader) error {
			x.expect(what, fmt.Sprint(r.Depth("q").Wanting), fmt.Sprint(n))
			return nil
		})
	}
	want("an empty queue", 0)
	a, b := x.put("q", "a", copied(2)), x.put("q", "b")
	want("two", 2)
	a = x.take(a, "h1")
	want("one runs, of which another is wanted", 2)
	x.take(a, "h2")
	x.do(b, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park = "p" }})
	want("one is out of line", 0)
	x.reopen()
	want("reopened", 0)
}
