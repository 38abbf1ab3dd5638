package main

const modelPkg = "internal/model"

// gridModelFaults break what sessions, tasks and engines do; the model of the grid
// notices each of them.
var gridModelFaults = []fault{
	{
		name: "evicted-place-kept", breaks: "grid.md 2",
		does:  "a task whose engine logs off stands where it stood, whatever its session says",
		file:  "internal/rule/task.go",
		old:   "		return g.EvictedPlace\n",
		new:   "		return job.PlaceKeep\n",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "copy-place-kept", breaks: "grid.md 2",
		does:  "a copy stands where its task stood, whatever its session says",
		file:  "internal/rule/task.go",
		old:   "		p = g.CopyPlace\n",
		new:   "		p = job.PlaceKeep\n",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "late-after-a-timeout", breaks: "gridserver.md 3",
		does:  "the result of a run that took too long, and was ended for that, counts",
		file:  "internal/job/lease.go",
		old:   "return e <= ByRestart || e == ByTurn }",
		new:   "return e <= ByRestart || e == ByTurn || e == ByTimeout }",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "blamed-for-our-restart", breaks: "gridserver.md 7",
		does:  "an engine that does not come back after a restart of the server is charged to its tasks",
		file:  "internal/engine/machine.go",
		old:   "	if old.Machine.Awaited { // it may be that it could not reach us",
		new:   "	if false { // it may be that it could not reach us",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "drained-engine-fed", breaks: "grid.md 8",
		does:  "an engine that drains is given tasks",
		file:  "internal/engine/machine.go",
		old:   "h.Machine.Lost || h.Machine.Draining || len(h.Machine.Stopping) > 0 {",
		new:   "h.Machine.Lost || len(h.Machine.Stopping) > 0 {",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "last-result-not-forgotten", breaks: "grid.md 10",
		does:  "the latest result that was acknowledged stays",
		file:  "internal/engine/session.go",
		old:   "		if j.Finished > s.Collected {",
		new:   "		if j.Finished >= s.Collected {",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "younger-session-first", breaks: "gridserver.md 6",
		does:  "among equal sessions the youngest is next once the shares were made anew",
		file:  "internal/engine/shares.go",
		old:   "		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))",
		new:   "		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.Name, b.Name))",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "dependent-fails-that-would-run", breaks: "gridserver.md A38",
		does:  "a task that only wants another one to be over fails with it",
		file:  "internal/rule/depend.go",
		old:   "		case s == job.Dead && on == job.DepFail:",
		new:   "		case s == job.Dead:",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "excluded-engine-fed", breaks: "grid.md 9",
		does:  "an engine that failed too often is given tasks of that session",
		file:  "internal/rule/exclude.go",
		old:   "	return known && list[i].Out\n",
		new:   "	return known && list[i].Out && list[i].Count > 1\n",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
	{
		name: "floor-of-exclusion-forgotten", breaks: "grid.md 9",
		does:  "a session excludes all engines that failed too often, whatever max_fraction says",
		file:  "internal/rule/exclude.go",
		old:   "	most := int(x.MaxFraction*float64(all) + 1e-9)",
		new:   "	most := all",
		first: []suite{in(modelPkg, "TestTheGridIsTheModel")},
	},
}
