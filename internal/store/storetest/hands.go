package storetest

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var hands = []subject{
	{"point soonest first, ties by id", handsOrder},
	{"follow a job through its life", handsFollow},
}

// due returns the names of what a hand points at.
func (x *site) due(h rule.Hand, until job.Millis, n int) string {
	x.Helper()
	return x.ids(func(r store.Reader) ([]job.ID, error) { return r.IDs(store.Due(h, until), n) })
}

func (x *site) next(h rule.Hand) (at job.Millis) {
	x.view(func(r store.Reader) error {
		at = r.Next(h)
		return nil
	})
	return at
}

func handsOrder(x *site) {
	x.put("q", "c", readyAt(x.now+30))
	x.put("q", "a", readyAt(x.now+10))
	x.put("q2", "b1", readyAt(x.now+20))
	x.put("q", "b2", readyAt(x.now+20))
	x.put("q", "now")
	for _, c := range []struct {
		until job.Millis
		n     int
		want  string
	}{
		{x.now + 9, 10, ""},
		{x.now + 10, 10, "a"},
		{x.now + 20, 10, "a b1 b2"},
		{x.now + 20, 2, "a b1"},
		{job.MaxMillis, 10, "a b1 b2 c"},
		{job.MaxMillis, 0, ""},
	} {
		x.expect("due", x.due(rule.HandDue, c.until, c.n), c.want)
	}
	if at := x.next(rule.HandDue); at != x.now+10 {
		x.Errorf("next: got %d", at)
	}
}

func handsFollow(x *site) {
	expect := func(when string, due, timeout, expire, purge job.Millis) {
		x.Helper()
		for h, want := range []job.Millis{due, timeout, 0, expire, purge} {
			if got := x.next(rule.Hand(h)); got != want {
				x.Errorf("%s: the hand %s points at %d, want %d", when, rule.Hand(h), got, want)
			}
		}
	}
	t := x.now
	a := x.put("q", "a", readyAt(t+10), expiresAt(t+100), kept(50, 60),
		edit(func(j *job.Job) { j.RunTimeout, j.StartTimeout = 40, 20 }))
	expect("scheduled", t+10, 0, t+100, 0)
	x.now += 10
	a = x.do(a, rule.Command{Verb: rule.Promote})
	expect("ready", 0, 0, t+100, 0)
	a = x.take(a, "h")
	expect("leased", 0, t+30, 0, 0)
	a = x.do(a, rule.Command{Verb: rule.Extend, Token: a.Leases[0].Token, Started: true})
	expect("started", 0, t+50, 0, 0)
	x.reopen()
	expect("started, reopened", 0, t+50, 0, 0)
	x.now = t + 50
	a = x.do(a, rule.Command{Verb: rule.Lapse})
	expect("timed out", a.ReadyAt, 0, t+100, 0)
	a = x.do(a, rule.Command{Verb: rule.Cancel})
	expect("dead", 0, 0, 0, x.now+60)
	x.now += 60
	x.expect("to purge", x.due(rule.HandPurge, x.now, 10), "a")
	x.do(a, rule.Command{Verb: rule.Purge})
	expect("gone", 0, 0, 0, 0)
}
