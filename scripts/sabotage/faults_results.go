package main

// resultFaults break what is kept of what runs made.
var resultFaults = []fault{
	{
		name: "result-stays-behind", breaks: "I8",
		does:  "the result of a job that is gone stays on the disk",
		file:  "internal/store/embedded/index.go",
		old:   "\t\tif !was.IsZero() && x.dropRef(was) {",
		new:   "\t\tif !was.IsZero() && x.dropRef(was) && j != nil {",
		first: []suite{in(embeddedPkg, "TestExercise")},
	},
	{
		name: "result-of-what-left", breaks: "I8",
		does:  "a job that leaves at once is given a result that is nowhere",
		file:  "internal/rule/settle.go",
		old:   "\te.result = result\n\treturn e",
		new:   "\tj.Extras, e.result = j.WithOutcome(result, nil), result\n\treturn e",
		first: []suite{in(enginePkg, "TestAJobWithoutRetentionTakesItsResultWithIt")},
	},
	{
		name: "result-of-a-late-ok-lost", breaks: "core.md 4, late OK",
		does:  "a late OK completes its job without its result",
		file:  "internal/rule/settle.go",
		old:   "\tj.Losses = 0\n\treturn complete(v, j, c.Result, e), nil",
		new:   "\tj.Losses = 0\n\treturn complete(v, j, nil, e), nil",
		first: []suite{in(enginePkg, "TestALateOKBringsItsResult")},
	},
	{
		name: "result-is-an-orphan", breaks: "operations.md, doctor",
		does:  "doctor takes results for payloads that no job refers to",
		file:  "internal/store/embedded/inspect.go",
		old:   "\t\t\tif shared[ref] = true; missing(ref) {",
		new:   "\t\t\tif missing(ref) {",
		first: []suite{in(embeddedPkg, "TestAnInspectionKnowsResults")},
	},
	{
		name: "result-of-a-failure", breaks: "docs/protocol/jobs.md, results",
		does:  "a result is taken with any outcome",
		file:  "internal/door/jobs/settle.go",
		old:   "\tif s.Result != nil && s.Outcome != job.OK {",
		new:   "\tif s.Result != nil && s.Outcome > job.Released {",
		first: []suite{in(httpPkg, "TestAResultThatCannotBeIsRefusedAndChangesNothing")},
	},
}
