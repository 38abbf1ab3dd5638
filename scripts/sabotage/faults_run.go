package main

// runFaults break what a worker hears and tells while it runs a job.
var runFaults = []fault{
	{
		name: "void-not-told", breaks: "spec/jobs.md, cancel",
		does:  "a named stream does not hear that a lease is over",
		file:  "internal/engine/batch.go",
		old:   "r.tellVoid(old, &eff.Voided[i]); err != nil",
		new:   "error(nil); err != nil",
		first: []suite{in(enginePkg, "TestANamedWorkerHearsWhatIsOverForIt")},
	},
	{
		name: "void-told-to-zizq", breaks: "spec/jobs.md, cancel",
		does:  "an anonymous stream is told too, and takes the news for a job",
		file:  "internal/engine/hold.go",
		old:   "if v.Lease.Kind != job.Named {",
		new:   "if false {",
		first: []suite{in(enginePkg, "TestANamedWorkerHearsWhatIsOverForIt")},
	},
	{
		name: "checkpoint-not-synced", breaks: "I5",
		does:  "a checkpoint is answered before it is on disk",
		file:  "internal/engine/settle.go",
		old:   "if x.Progress != nil && x.Progress.Checkpoint != nil {",
		new:   "if false {",
		first: []suite{in("internal/sim", "TestSimulation")},
	},
	{
		name: "checkpoint-lost-with-the-attempt", breaks: "spec/jobs.md, progress",
		does:  "the next attempt begins without the checkpoint",
		file:  "internal/rule/step.go",
		old:   "if c := x.Progress.Checkpoint; c != nil {",
		new:   "if c := x.Progress.Checkpoint; c != nil && j.Attempts == 0 {",
		first: []suite{in("internal/rule", "TestWhatAWorkerLeavesOutOfItsProgressStays")},
	},
	{
		name: "copy-resets-progress", breaks: "spec/jobs.md, progress",
		does:  "a further copy throws away what the first one told",
		file:  "internal/rule/step.go",
		old:   "x.Progress != nil && len(j.Leases) == 0 {",
		new:   "x.Progress != nil {",
		first: []suite{in("internal/rule", "TestAFurtherCopyLeavesTheProgressOfTheFirst")},
	},
	{
		name: "heartbeat-for-the-dead", breaks: "core.md 4",
		does:  "a heartbeat for a job that is over is refused as a wrong state, which no worker takes for the end",
		file:  "internal/rule/step.go",
		old:   "if c.Verb == Extend && v.Job != nil {",
		new:   "if false {",
		first: []suite{in("internal/rule", "TestEveryStateAndVerbIsAllowedOrANamedErrorWithoutEffect")},
	},
	{
		name: "cancel-unaudited", breaks: "retry.md 3",
		does:  "a cancelled job leaves no trace in the audit log",
		file:  "internal/engine/operate.go",
		old:   "return r.audit(by, \"cancel\", id.String(), 1)",
		new:   "_ = by; return nil",
		first: []suite{in(enginePkg, "TestACancelIsAudited")},
	},
	{
		name: "cancelled-worker-settles", breaks: "spec/jobs.md, cancel",
		does:  "the Go client settles what was ended under it",
		file:  "client/execute.go",
		old:   "\tif why := r.overWhy(h); why != nil {",
		new:   "\tif why := r.overWhy(h); why != nil && false {",
		first: []suite{in("cmd/reprise", "TestCancelStopsTheWorkerThatRunsTheJob")},
	},
}
