package main

// holdFaults break what parks a group or a queue on behalf of its target.
var holdFaults = []fault{
	{
		name: "retry-after-holds-nobody", breaks: "retry.md 4",
		does:  "a target's Retry-After delays only the job that met it",
		file:  "internal/rule/failure.go",
		old:   "	span := c.After",
		new:   "	span := job.Millis(0)",
		first: []suite{in(rulePkg, "TestARetryAfterHoldsTheQueueOrTheGroup")},
	},
	{
		name: "kill-holds-nobody", breaks: "retry.md 4",
		does:  "the Retry-After of a job that its worker gives up is not heard",
		file:  "internal/rule/settle.go",
		old:   "		hold(v, c.After, &e)",
		new:   "		hold(v, 0, &e)",
		first: []suite{in(rulePkg, "TestAKillHoldsToo")},
	},
	{
		name: "hold-always-the-queue", breaks: "retry.md 4",
		does:  "a target of one group holds all groups of its queue",
		file:  "internal/rule/hold.go",
		old:   `	if g := v.Gate; g != nil && g.Group != "" {`,
		new:   `	if g := v.Gate; g != nil && g.Group == "*" {`,
		first: []suite{in(rulePkg, "TestARetryAfterHoldsTheQueueOrTheGroup")},
	},
	{
		name: "shorter-hold-wins", breaks: "retry.md 4",
		does:  "a second target's wish ends the hold of the first",
		file:  "internal/rule/hold.go",
		old:   "	held.HoldUntil = max(q.HoldUntil, until)",
		new:   "	held.HoldUntil = until",
		first: []suite{in(rulePkg, "TestAHoldNeverEndsSooner")},
	},
	{
		name: "held-queue-wakes-nobody", breaks: "core.md 5",
		does:  "who is emptied for a job waits on although a failure held its queue",
		file:  "internal/engine/batch.go",
		old:   "		r.woken[eff.Queue.Name] = true // who is emptied for a job of it goes on",
		new:   "		_ = r.woken[eff.Queue.Name]",
		first: []suite{in(enginePkg, "TestAHolderThatIsEmptiedGoesOnWhenAFailureHoldsTheQueue")},
	},
}
