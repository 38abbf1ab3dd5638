package main

// gridKillFaults break what becomes of tasks when their server is killed, and of
// results that come after that.
var gridKillFaults = []fault{
	{
		name: "late-after-all", breaks: "core.md 4",
		does:  "a run that failed settles its task when its token is forgotten and the server started anew",
		file:  "internal/rule/settle.go",
		old:   " && !overForGood(j, c.Token) {",
		new:   " {",
		first: []suite{in(rulePkg, "TestARunThatWasOverStaysSoAfterManyMoreAndAStart")},
	},
	{
		name: "late-after-a-loss-refused", breaks: "grid.md 8",
		does:  "a run whose engine was lost is over for good when its token is forgotten",
		file:  "internal/rule/attempt.go",
		old:   "a.Why != job.AttemptLost && a.Why != job.AttemptRestarted &&",
		new:   "a.Why != job.AttemptRestarted &&",
		first: []suite{in(rulePkg, "TestARunThatWasOverStaysSoAfterManyMoreAndAStart")},
	},
	{
		name: "grid-unnamed-at-once", breaks: "grid.md 8",
		does:  "a task is offered again that its engine does not name yet, though the answer may be on its way",
		file:  "internal/part/grid/beat.go",
		old:   "before := tx.Now() - g.lostAfter()",
		new:   "before := tx.Now()",
		first: []suite{in(enginePkg, "TestATaskWhoseAnswerWasLostIsOfferedAgain")},
	},
	{
		name: "grid-unnamed-kept", breaks: "grid.md 8",
		does:  "a task that its engine does not name is its own for ever",
		file:  "internal/part/grid/beat.go",
		old:   "if out.Stop, err = g.fleet.compare(tx, row.Name, b.Running, row, before, job.ByUndelivered); err != nil {",
		new:   "if out.Stop, err = g.fleet.compare(tx, row.Name, b.Running, row, before*0, job.ByUndelivered); err != nil {",
		first: []suite{in(enginePkg, "TestATaskWhoseAnswerWasLostIsOfferedAgain"), in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "grid-start-charged", breaks: "core.md 5",
		does:  "where losses are charged, so is a run that did not come back after a start of the server",
		file:  "internal/rule/task.go",
		old:   "return g != nil && g.LossesCharged && how == job.ByLapse",
		new:   "return g != nil && g.LossesCharged && (how == job.ByLapse || how == job.ByRestart)",
		first: []suite{in(enginePkg, "TestA30KilledBehindEveryRecordOfItsLog")},
	},
	{
		name: "grid-result-not-on-disk", breaks: "I5",
		does:  "a result is accepted before it is on disk",
		file:  "internal/engine/settle.go",
		old:   "		r.tx.Durable()\n		if waiting != nil {",
		new:   "		_ = r.tx\n		if waiting != nil {",
		first: []suite{in(enginePkg, "TestA30KilledBehindEveryRecordOfItsLog")},
	},
}
