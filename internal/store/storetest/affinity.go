package storetest

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// reserved makes a job one of an affinity tag that is kept for some holders.
func reserved(holders ...string) with {
	return edit(func(j *job.Job) { j.Extras = j.WithAffinity(&job.Affinity{Tag: "t", For: holders}) })
}

func keptForSome(x *site) {
	x.session("s")
	x.put("s", "anyone")
	one := x.put("s", "one", reserved("e1"))
	two := x.put("s", "two", reserved("e1", "e2"))
	x.put("s", "three", reserved("e2", "e3"))
	seek := func(holder string) rule.Seeker { return rule.Seeker{Holder: holder, Engine: true} }
	for _, when := range []string{"", ", reopened"} {
		x.expect("the first"+when, x.line(seek("e1"), 9, "s"), "anyone one two")
		x.expect("the second"+when, x.line(seek("e2"), 9, "s"), "anyone two three")
		x.expect("the third"+when, x.line(seek("e3"), 9, "s"), "anyone three")
		x.expect("another"+when, x.line(seek("e"), 9, "s"), "anyone")
		x.reopen()
	}
	free := func(j *job.Job) *job.Job {
		return x.do(j, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) { n.Extras = n.WithAffinity(&job.Affinity{Tag: "t"}) }})
	}
	free(two)
	one = x.take(one, "e1")
	x.expect("given out, and free for all", x.line(seek("e"), 9, "s"), "anyone two")
	x.settle(one, rule.SettleRelease)
	x.expect("back", x.line(seek("e"), 9, "s"), "anyone one two")
	x.expect("as before", x.line(seek("e3"), 9, "s"), "anyone one two three")
}
