package main

// gridRowFaults break what the acceptance tests of the grid hold with their
// numbers, and a submit that does not come to its end.
var gridRowFaults = []fault{
	{
		name: "overrun-at-the-limit-uncounted", breaks: "gridserver.md V10",
		does:  "nobody is told of overruns that got no copy because of max_reschedules",
		file:  "internal/rule/task.go",
		old:   "		e.AtLimit = true",
		new:   "		e.AtLimit = false",
		first: []suite{in(enginePkg, "TestV10AtTheLimitWhatFiresAgainIsCounted")},
	},
	{
		name: "grid-timeouts-at-once", breaks: "gridserver.md A10",
		does:  "one transaction ends all runs that are over their time, however many",
		file:  "internal/engine/tick.go",
		old:   "ids, err := r.tx.Due(h, until, TickMax)",
		new:   "ids, err := r.tx.Due(h, until, 1<<30)",
		first: []suite{in(enginePkg, "TestOneTransactionEndsNoMoreThanAThousandRuns")},
	},
	{
		name: "grid-left-of-what-ended", breaks: "gridserver.md section 4",
		does:  "time_left offers a run that may have no copy any more",
		file:  "internal/part/grid/copies_more.go",
		old:   "if j == nil || j.State != job.Leased || rule.NoCopy(j, l.q, tx.Rules()) != rule.CopyAllowed { // it ended just now",
		new:   "if j == nil { // it ended just now",
		first: []suite{in(enginePkg, "TestTimeLeftPassesByWhatMayHaveNoCopySinceTheSessionWasChanged", "TestTimeLeftPassesByARunThatEndsInTheTransactionInWhichItLooks")},
	},
	{
		name: "grid-fleet-forgets-the-lost", breaks: "gridserver.md A28",
		does:  "engines that are lost count as some that may be out",
		file:  "internal/part/grid/shares.go",
		old:   "f.known += by * oneIf(!h.Machine.Lost)",
		new:   "f.known += by",
		first: []suite{in(enginePkg, "TestA42RandomHistoriesKeepTheInvariantsOfTheGrid")},
	},
	{
		name: "grid-submit-opens-first", breaks: "grid.md Interface",
		does:  "a file with a bad line is not read before a session is opened",
		file:  "cmd/reprise/grid_submit_lines.go",
		old:   "bad != nil || !info.Mode().IsRegular() {",
		new:   "bad != nil || info.Mode().IsRegular() {",
		first: []suite{in("cmd/reprise", "TestASubmitWithABadLineOpensNoSession")},
	},
	{
		name: "grid-submit-stays", breaks: "grid.md Interface",
		does:  "a session whose submit broke off stays open",
		file:  "cmd/reprise/grid_submit.go",
		old:   "	if err != nil && mine {",
		new:   "	if err != nil && mine && sent < 0 {",
		first: []suite{in("cmd/reprise", "TestASubmitThatBreaksOffEndsTheSessionThatItOpened")},
	},
	{
		name: "grid-submit-ends-anothers", breaks: "grid.md 11",
		does:  "a submit that breaks off cancels a session that was there before",
		file:  "cmd/reprise/grid_submit.go",
		old:   "if mine = client.CodeOf(err) == wire.CodeNotFound; err != nil && !mine {",
		new:   "if mine = err == nil || client.CodeOf(err) == wire.CodeNotFound; !mine {",
		first: []suite{in("cmd/reprise", "TestASubmitThatBreaksOffEndsTheSessionThatItOpened")},
	},
}
