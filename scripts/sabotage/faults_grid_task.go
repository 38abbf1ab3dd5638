package main

// gridTaskFaults break attempts as records, try_commit, fences, clients that die
// and budgets of tasks.
var gridTaskFaults = []fault{
	{
		name: "grid-mute-lives-blame-nobody", breaks: "grid.md 1: a lost engine is charged",
		does:  "a task that ends each engine before it began has no limit",
		file:  "internal/part/grid/fleet.go",
		old:   "unbegun := job.ByLapse ",
		new:   "unbegun := job.ByUndelivered ",
		first: []suite{in(enginePkg, "TestATaskThatEachEngineComesBackWithoutIsLost")},
	},
	{
		name: "attempt-charge-untold", breaks: "gridserver.md A3",
		does:  "the history of a task does not say what a loss was charged as",
		file:  "internal/rule/attempt.go",
		old:   "case noted && j.Attempts > v.Job.Attempts:",
		new:   "case noted && how != job.ByLapse && j.Attempts > v.Job.Attempts:",
		first: []suite{in(rulePkg, "TestEveryEndOfAnAttemptIsToldWithItsReason")},
	},
	{
		name: "commit-twice", breaks: "gridserver.md A19",
		does:  "a run that gets the word to commit leaves the others running",
		file:  "internal/rule/attempt.go",
		old:   "	i = endOthers(j, i, e)\n",
		new:   "	_ = e\n",
		first: []suite{in(rulePkg, "TestOneRunOfATaskGetsTheWordToCommit")},
	},
	{
		name: "commit-overruled", breaks: "gridserver.md A19",
		does:  "a late result is accepted over a run whose effects count",
		file:  "internal/rule/settle.go",
		old:   "	if j.Committed() { // by another run, whose effects count",
		new:   "	if false {",
		first: []suite{in(rulePkg, "TestLateResultsAreAnsweredAsTheTableSays")},
	},
	{
		name: "fence-forgotten", breaks: "gridserver.md A18",
		does:  "a task that must not run twice runs again at once when its engine is lost",
		file:  "internal/rule/step.go",
		old:   "		return fenced(v, e), err",
		new:   "		return e, err",
		first: []suite{in(rulePkg, "TestATaskThatMustNotRunTwiceWaitsBehindItsFence")},
	},
	{
		name: "client-missed-when-all-is-submitted", breaks: "gridserver.md A33",
		does:  "a fully submitted session that may be collected later dies with its client",
		file:  "internal/rule/session.go",
		old:   "s.State <= job.SessionClosed && !alone",
		new:   "s.State <= job.SessionClosed && (!alone || alone)",
		first: []suite{in(enginePkg, "TestA33TheSessionsOfADeadClientEndUnlessTheyMayBeCollectedLater")},
	},
	{
		name: "client-unheard", breaks: "gridserver.md A33",
		does:  "submitting is no sign of life",
		file:  "internal/part/grid/clients.go",
		old:   "if j.Door != job.DoorGrid || i > 0",
		new:   "if j.Door == job.DoorGrid || i > 0",
		first: []suite{in(enginePkg, "TestA33AClientThatComesBackInTimeGoesOn")},
	},
	{
		name: "task-budget-ignored", breaks: "gridserver.md A39",
		does:  "tasks run whether their budget has units or not",
		file:  "internal/part/grid/feed.go",
		old:   "\t\tcase !aside:",
		new:   "\t\tcase aside || !aside:",
		first: []suite{in(enginePkg, "TestA39NoMoreAttemptsRunThanABudgetAllowsAndALostEngineGivesItBack")},
	},
}
