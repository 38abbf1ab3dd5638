package storetest

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var lines = []subject{
	{"stands by priority, band, seq", lineOrder},
	{"equal places stand by id", lineTies},
	{"several queues are one line", severalQueues},
	{"n limits, and no job is offered twice", lineLimit},
	{"a class has its own line", classLines},
	{"a job that changes its class keeps its place", changedClass},
	{"a retried job stays in its place", retriedLine},
	{"a job that is delivered alone", aloneLine},
	{"a paused or held queue is out of line", closedQueues},
	{"every change of state moves a job in or out", lineMoves},
}

func lineOrder(x *site) {
	x.put("q", "late", priority(9))
	x.put("q", "c")
	x.put("q", "d")
	x.put("q", "b", atFront())
	x.put("q", "early", priority(1))
	x.put("q", "earliest", priority(1), atFront())
	x.offered("one queue", "earliest early late b c d")
	last := x.put("q", "last", priority(65535))
	x.queue("q", func(q *job.Queue) { q.FrontOrder = job.FrontLIFO })
	x.put("q", "a", atFront())
	x.offered("front last in, first out", "earliest early late a b c d last")
	x.do(last, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Priority = 0 }})
	x.offered("a new priority", "last earliest early late a b c d")
}

func lineTies(x *site) {
	for _, name := range []string{"a", "b", "c"} {
		x.seq = 0
		x.put("q", name)
	}
	x.offered("same seq", "a b c")
}

func severalQueues(x *site) {
	x.put("q1", "a")
	x.put("q2", "b")
	x.put("q3", "c")
	x.put("q1", "d")
	x.put("q2", "first", priority(1))
	all := rule.Seeker{Holder: "h"}
	for _, c := range []struct {
		queues []string
		want   string
	}{
		{nil, "first a b c d"},
		{[]string{"q1", "q2", "q3"}, "first a b c d"},
		{[]string{"q3", "q1"}, "a c d"},
		{[]string{"q2"}, "first b"},
		{[]string{"q2", "q2"}, "first b"},
		{[]string{"unheard of"}, ""},
		{[]string{"unheard of", "q3"}, "c"},
	} {
		x.expect("queues", x.line(all, 10, c.queues...), c.want)
	}
}

func lineLimit(x *site) {
	for _, name := range []string{"a", "b", "c"} {
		x.put("q", name)
	}
	for n, want := range []string{"", "a", "a b", "a b c", "a b c"} {
		x.expect("limited", x.line(rule.Seeker{Holder: "h"}, n), want)
	}
}

func classLines(x *site) {
	x.put("q", "linux1", needs("os", "linux"))
	x.put("q", "any1")
	x.put("q", "plan9", needs("os", "plan9"))
	x.put("q", "any2")
	x.put("q", "linux2", needs("os", "linux"))
	x.put("q", "big", requires(
		job.Requirement{Property: "os", Op: "=", Value: "linux"}, job.Requirement{Property: "cpu", Op: ">", Value: "8"}))
	for _, c := range []struct {
		properties map[string]string
		want       string
	}{
		{nil, "any1 any2"},
		{map[string]string{"os": "linux"}, "linux1 any1 any2 linux2"},
		{map[string]string{"os": "plan9"}, "any1 plan9 any2"},
		{map[string]string{"os": "linux", "cpu": "16"}, "linux1 any1 any2 linux2 big"},
	} {
		s := rule.Seeker{Holder: "h", Properties: c.properties}
		x.expect("properties", x.line(s, 10), c.want)
		x.expect("properties, two", x.line(s, 2), firstTwo(c.want))
	}
}

func changedClass(x *site) {
	a := x.put("q", "a")
	linux := rule.Seeker{Holder: "h", Properties: map[string]string{"os": "linux"}}
	b := x.newJob("q", "b", needs("os", "linux"))
	x.offered("to begin with", "a")
	x.update(func(tx store.Tx) error { // its new line changes before its old one
		if _, err := x.world.put(tx, b); err != nil {
			return err
		}
		_, err := x.step(tx, a.ID, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Requires = b.New.Requires }})
		return err
	})
	x.expect("one class now", x.line(linux, 9), "a b")
	x.offered("nobody else", "")
	x.do(a, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Requires = nil }})
	x.expect("two again", x.line(linux, 9), "a b")
	x.offered("anybody again", "a")
}

func firstTwo(s string) string {
	for i, spaces := 0, 0; i < len(s); i++ {
		if s[i] == ' ' {
			if spaces++; spaces == 2 {
				return s[:i]
			}
		}
	}
	return s
}

func retriedLine(x *site) {
	a := x.put("q", "a")
	x.put("q", "b")
	a = x.take(a, "h")
	x.do(a, rule.Command{Verb: rule.SettleRetry, Token: a.Leases[0].Token, RetryAt: x.now})
	x.offered("waiting", "b")
	a = x.do(a, rule.Command{Verb: rule.Promote})
	x.offered("kept its place", "a b")
	a = x.take(a, "h")
	x.do(a, rule.Command{Verb: rule.SettleRelease, Token: a.Leases[0].Token, Place: job.PlaceBack})
	x.offered("behind all", "b a")
}

func aloneLine(x *site) {
	a := x.put("q", "a", edit(func(j *job.Job) { j.Retry = &job.Retry{LossLimit: job.LimitOf(3)} }))
	x.put("q", "b")
	for range 2 {
		x.do(x.take(a, "h"), rule.Command{Verb: rule.Lapse, Holder: "h", Ending: job.ByLapse})
	}
	x.expect("a free holder", x.line(rule.Seeker{Holder: "h"}, 10), "a b")
	x.expect("a busy holder", x.line(rule.Seeker{Holder: "h", Held: 1}, 10), "b")
	x.expect("a holder of a lonely job", x.line(rule.Seeker{Holder: "h", Held: 1, HasIsolated: true}, 10), "")
}

func closedQueues(x *site) {
	x.put("q1", "a")
	x.put("q2", "b")
	x.put("q2", "grouped", group("g"))
	x.queue("q2", func(q *job.Queue) { q.Paused = true })
	x.offered("paused", "a")
	x.expect("paused and named", x.line(rule.Seeker{Holder: "h"}, 5, "q2"), "")
	x.put("q2", "c")
	x.queue("q2", func(q *job.Queue) { q.Paused, q.HoldUntil = false, 1 })
	x.offered("held, until the clock wakes it", "a")
	x.queue("q2", func(q *job.Queue) { q.HoldUntil = 0 })
	x.offered("open again", "a b grouped c")
	x.queue("q2", func(q *job.Queue) { q.Paused = true })
	x.reopen()
	x.offered("still paused", "a")
}

func lineMoves(x *site) {
	a := x.put("q", "a", readyAt(x.now+10), expiresAt(x.now+1000))
	x.put("q", "z")
	x.offered("scheduled", "z")
	x.now += 10
	a = x.do(a, rule.Command{Verb: rule.Promote})
	x.offered("promoted", "a z")
	a = x.do(a, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park = "fingerprint/f" }})
	x.offered("parked", "z")
	a = x.do(a, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park = "" }})
	a = x.take(a, "h")
	x.offered("taken", "z")
	a = x.settle(a, rule.SettleRelease)
	x.offered("released", "a z")
	a = x.do(a, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Queue = "other" }})
	x.expect("moved away", x.line(rule.Seeker{Holder: "h"}, 5, "q"), "z")
	x.expect("moved there", x.line(rule.Seeker{Holder: "h"}, 5, "other"), "a")
	x.now += 1000
	a = x.do(a, rule.Command{Verb: rule.Expire})
	x.offered("dead", "z")
	a = x.do(a, rule.Command{Verb: rule.Revive})
	x.offered("revived", "a z")
	x.settle(x.take(a, "h"), rule.SettleOK)
	x.offered("done", "z")
}
