package main

// gridSlackFaults break when runs of tasks end and are looked at, what is remembered
// of that, and where a task goes that failed or was not begun.
var gridSlackFaults = []fault{
	{
		name: "slack-forgotten", breaks: "gridserver.md A10",
		does:  "the server ends a run at its time, when its engine is about to say so",
		file:  "internal/rule/task.go",
		old:   "			return v.Steady.Add(t).Add(g.TimeoutSlack)",
		new:   "			return v.Steady.Add(t)",
		first: []suite{in(rulePkg, "TestA10AnEngineEndsARunByItselfAndTheServerAfterTheSlack")},
	},
	{
		name: "engine-ends-what-is-to-run-on", breaks: "gridserver.md A11",
		does:  "engines end runs by themselves where an overrun runs on beside a copy",
		file:  "internal/rule/task.go",
		old:   "g == nil || g.OnTimeout != job.TimeoutRetry || g.PollPeriod > 0 {",
		new:   "g == nil || g.PollPeriod > 0 {",
		first: []suite{in(rulePkg, "TestA10AnEngineEndsARunByItselfAndTheServerAfterTheSlack")},
	},
	{
		name: "overrun-copied-at-each-look", breaks: "gridserver.md A11",
		does:  "a run that runs on is looked at again and again, and gets a copy each time",
		file:  "internal/rule/task.go",
		old:   "	l.RunEnd = 0 // once for each attempt",
		new:   "	l.RunEnd = v.Steady.Add(job.Second)",
		first: []suite{in("internal/sim", "TestSimulation")},
	},
	{
		name: "told-timeout-is-an-error", breaks: "gridserver.md A3 and A10",
		does:  "the history takes a run that its engine ended in time for one that failed",
		file:  "internal/rule/attempt.go",
		old:   "	if a.Why == job.AttemptError && c.Failure.Timeout {",
		new:   "	if a.Why == job.AttemptError && c.Failure.Timeout && how == job.ByDead {",
		first: []suite{in(enginePkg, "TestA10AnEngineThatEndsItsRunIsFreeAndAMuteOneIsEndedAfterTheSlack")},
	},
	{
		name: "unbegun-like-failed", breaks: "gridserver.md A37",
		does:  "a task goes back to the engine that did not begin it where it failed on the others",
		file:  "internal/rule/exclude.go",
		old:   "		return 3\n",
		new:   "		return 2\n",
		first: []suite{in(enginePkg, "TestATaskThatWasNotBegunGoesElsewhereWhereverItFailed")},
	},
	{
		name: "unbegun-asks-the-session", breaks: "gridserver.md A37",
		does:  "a task that its engine did not begin goes elsewhere only where failed ones do",
		file:  "internal/part/grid/elsewhere.go",
		old:   "!q.Grid.RetryElsewhere && !rule.Undelivered(j) {",
		new:   "!q.Grid.RetryElsewhere {",
		first: []suite{in(enginePkg, "TestA37ATaskThatItsEngineDoesNotBeginGoesElsewhere")},
	},
	{
		name: "elsewhere-asks-the-excluded", breaks: "docs/grid.md, retry_elsewhere; gridserver.md A26",
		does:  "a task that failed is handed on to an engine that its session excludes",
		file:  "internal/part/grid/elsewhere.go",
		old:   "if is == mayRun {",
		new:   "if is == mayRun || is == excluded {",
		first: []suite{in(enginePkg, "TestATaskThatFailedDoesNotGoToAnExcludedEngine")},
	},
}
