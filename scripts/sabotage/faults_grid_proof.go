package main

// gridProofFaults break what only long random histories and crashes show.
var gridProofFaults = []fault{
	{
		name: "grid-past-its-limit", breaks: "gridserver.md A42 I2",
		does:  "a task past its limit runs again when its last copy is given back",
		file:  "internal/rule/fate.go",
		old:   "case x.does == nil && failedBeside(v, j):",
		new:   "case x.does == nil && v.Queue.Grid == nil && failedBeside(v, j):",
		first: []suite{in(enginePkg, "TestV8ATaskPastItsRetriesIsNotRunAgainWhenItsLastCopyIsGivenBack")},
	},
	{
		name: "grid-replay-past-its-limit", breaks: "gridserver.md V8",
		does:  "the replay of a history lets a task past its limit wait again",
		file:  "internal/rule/account/tally.go",
		old:   "	case t.Retries > r.MaxRetries:",
		new:   "	case t.Retries > r.MaxRetries && t.Runs == 0:",
		first: []suite{in(rulePkg, "TestCountersAreThoseOfTheReplay", "TestHistoriesOfTheVectors")},
	},
	{
		name: "grid-dependents-at-once", breaks: "grid.md 9",
		does:  "one transaction tells all dependents of a task, however many",
		file:  "internal/part/grid/needs.go",
		old:   "const dependentsMost = 500",
		new:   "const dependentsMost = 1 << 30",
		first: []suite{in(enginePkg, "TestManyDependentsAreToldPieceByPieceAndNoneIsForgotten")},
	},
	{
		name: "grid-dependents-forgotten", breaks: "I1",
		does:  "a start does not look for dependents that were not told yet",
		file:  "internal/part/grid/needs.go",
		old:   "\t\t\tif other == nil || other.State.Terminal() {",
		new:   "\t\t\tif other == nil {",
		first: []suite{in(enginePkg, "TestManyDependentsAreToldPieceByPieceAndNoneIsForgotten", "TestTenThousandDependentsOutliveAPowerCut")},
	},
	{
		name: "grid-dependents-page-lost", breaks: "I1",
		does:  "a start looks at the first tasks of a session only",
		file:  "internal/part/grid/needs.go",
		old:   "\t\tif len(list) < engine.TickMax {",
		new:   "\t\tif len(list) <= engine.TickMax {",
		first: []suite{in(enginePkg, "TestManyDependentsAreToldPieceByPieceAndNoneIsForgotten", "TestTenThousandDependentsOutliveAPowerCut")},
	},
	{
		name: "grid-dependents-of-a-revived", breaks: "grid.md 9",
		does:  "dependents are told that a task is over which was brought back",
		file:  "internal/part/grid/needs.go",
		old:   "\t\tif other != nil && other.State.Open() { // it was brought back: they wait for it again",
		new:   "\t\tif other != nil && other.State == job.None {",
		first: []suite{in(enginePkg, "TestDependentsOfATaskThatIsRevivedWaitForIt")},
	},
	{
		name: "grid-failed-forgotten", breaks: "gridserver.md A38",
		does:  "a session forgets a failed task that others need",
		file:  "internal/part/grid/session.go",
		old:   "\t\tq.RetainDead = job.MaxMillis // with",
		new:   "\t\t// with",
		first: []suite{in(enginePkg, "TestDependentsOfATaskThatLeavesAtOnceFailWithIt")},
	},
	{
		name: "grid-room-below-max", breaks: "gridserver.md A42 I8",
		does:  "an engine that waits is not served when another makes room below max_engines",
		file:  "internal/part/grid/shares.go",
		old:   "\tif err == nil && q.Grid != nil && q.Grid.MaxEngines > 0 {",
		new:   "\tif err == nil && q.Grid != nil && q.Grid.MaxEngines < 0 {",
		first: []suite{in(enginePkg, "TestAnEngineThatWaitsIsServedWhenAnotherMakesRoomBelowMaxEngines")},
	},
}
