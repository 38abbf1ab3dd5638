package main

// lookFaults break what reads tell of queues and jobs: rates and waits.
var lookFaults = []fault{
	{
		name: "rates-never-forget", breaks: "jobs.md, rates",
		does:  "what happened a minute ago is counted once more when its slot comes round",
		file:  "internal/engine/rates.go",
		old:   "\t\tl.slots[l.last%ratesSlots] = happened{}\n",
		new:   "",
		first: []suite{in(enginePkg, "TestRatesAreWhatTheEventsSay")},
	},
	{
		name: "rates-over-a-minute-always", breaks: "jobs.md, rates",
		does:  "right after a start the rates are as low as if a minute had been counted",
		file:  "internal/engine/rates.go",
		old:   "steady-max(since, oldest*job.Second)",
		new:   "steady-oldest*job.Second",
		first: []suite{in(enginePkg, "TestRatesAreWhatTheEventsSay")},
	},
	{
		name: "rates-of-idle-queues-stay", breaks: "bounded memory",
		does:  "queues in which nothing happens keep their place, and new ones are not told of",
		file:  "internal/engine/rates.go",
		old:   "\t\tif l.over(steady) {",
		new:   "\t\tif l.over(steady) && r.max < 0 {",
		first: []suite{in(enginePkg, "TestRatesOfTooManyQueuesAreNotKnown")},
	},
	{
		name: "rates-without-timeouts", breaks: "core.md 9: a run timeout is a failure",
		does:  "a run that took too long is not counted as failed",
		file:  "internal/engine/rates.go",
		old:   "n(SettledRetry, SettledDead, EndedRunTimeout)",
		new:   "n(SettledRetry, SettledDead)",
		first: []suite{in(enginePkg, "TestRatesAreThoseOfTheLastMinuteOrSinceTheStart")},
	},
	{
		name: "wait-asks-the-committer-always", breaks: "a list costs nobody else anything",
		does:  "every ready job of a list is looked at in a transaction",
		file:  "internal/engine/obstacle.go",
		old:   "\t\t\tif saturated || allowed(&s) {",
		new:   "\t\t\tif saturated || allowed(&s) || true {",
		first: []suite{in(enginePkg, "TestAPageOfWaitsAsksTheCommitterForAllowancesOnly")},
	},
	{
		name: "wait-without-allowances", breaks: "operations.md, wait",
		does:  "a list does not tell that a rate is used up",
		file:  "internal/engine/obstacle.go",
		old:   "\t\t\tif saturated || allowed(&s) {",
		new:   "\t\t\tif saturated {",
		first: []suite{in(enginePkg, "TestAPageOfWaitsAsksTheCommitterForAllowancesOnly")},
	},
	{
		name: "wait-forgets-blockers", breaks: "operations.md, wait",
		does:  "a list does not tell that a dead member blocks its group",
		file:  "internal/engine/obstacle.go",
		old:   "\tif d.Blockers > 0 {\n",
		new:   "\tif false {\n",
		first: []suite{in("internal/httpapi", "TestADeadMemberThatBlocksIsWhatTheOthersWaitFor")},
	},
	{
		name: "take-names-unchecked", breaks: "zizq.md 1.4",
		does:  "a take waits for queues whose names no queue can have",
		file:  "internal/httpapi/take.go",
		old:   "if o.Queues, err = jobs.QueueNames(values.Get(\"queue\")); err != nil {",
		new:   "if o.Queues = jobs.Names(values.Get(\"queue\")); err != nil {",
		first: []suite{in("internal/httpapi", "TestNamesThatNoQueueCanHaveAreRefusedInQueries")},
	},
}
