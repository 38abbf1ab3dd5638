package main

// cronFoldFaults break entries of cron whose job has a batch: each tick is
// folded exactly once, whatever happens while that goes on.
var cronFoldFaults = []fault{
	{
		name: "cron-fold-passed-over", breaks: "docs/cron.md, batches and unique keys",
		does:  "a tick that is left to be folded is one that was dealt with",
		file:  "internal/part/cron/tick.go",
		old:   "c.Next, c.Retry = tick, tx.Moment().Now.Add(foldAgain)",
		new:   "c.Retry = tx.Moment().Now.Add(foldAgain)",
		first: []suite{in("internal/sim", "TestSimulation")},
	},
	{
		name: "cron-fold-one-a-second", breaks: "docs/cron.md, batches and unique keys",
		does:  "of several ticks that are to be folded, the next waits for the clock to look again",
		file:  "internal/part/cron/fold.go",
		old:   "\t\t\tif w.next[key] != nil {\n",
		new:   "\t\t\tif false {\n",
		first: []suite{in(cronPartPkg, "TestManyMissedTicksFoldOneAfterAnother")},
	},
	{
		name: "cron-fold-refused-twice", breaks: "docs/cron.md, jobs that are refused",
		does:  "a fold that took long and failed is tried again at once, and counted as two",
		file:  "internal/part/cron/fold.go",
		old:   "c.Next == f.entry.Next && c.Failures == f.entry.Failures && sameTemplate(c, f.entry)",
		new:   "c.Next == f.entry.Next && sameTemplate(c, f.entry)",
		first: []suite{in(cronPartPkg, "TestAFoldThatTakesLongAndFailsIsOneRefusal")},
	},
	{
		name: "cron-fold-plan-for-all", breaks: "docs/cron.md: each tick enqueues one job",
		does:  "what was planned for one tick is done for those behind it too",
		file:  "internal/part/cron/fold.go",
		old:   "case f == nil || f.entry.Next != tick:",
		new:   "case f == nil:",
		first: []suite{in(cronPartPkg, "TestManyMissedTicksFoldOneAfterAnother"), in("internal/sim", "TestSimulation")},
	},
	{
		name: "cron-fold-counted", breaks: "I9",
		does:  "a tick that went into a job that waits counts as a job of cron",
		file:  "internal/part/cron/tick.go",
		old:   "if !added.Duplicate && !added.Folded {",
		new:   "if !added.Duplicate {",
		first: []suite{in("internal/sim", "TestSimulation")},
	},
}
