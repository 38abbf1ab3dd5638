package main

// guardcfgFaults break protection in the configuration file and what the audit
// log says of queues and jobs.
var guardcfgFaults = []fault{
	{
		name: "file-loses-to-live", breaks: "operations.md",
		does:  "at a start what was set live stays, although the file says otherwise",
		file:  "internal/engine/recover.go",
		old:   "\t\tset.HoldUntil = old.HoldUntil\n",
		new:   "\t\tset.HoldUntil, set.Protection = old.HoldUntil, old.Protection\n",
		first: []suite{in(enginePkg, "TestTheConfigurationWinsAtEachStart")},
	},
	{
		name: "breaker-outlives-file", breaks: "retry.md 4",
		does:  "a breaker that the file takes away goes on stopping its queue",
		file:  "internal/engine/recover.go",
		old:   "if err := r.protect(&set); err != nil {",
		new:   "if err := error(nil); err != nil {",
		first: []suite{in("internal/sim", "TestSimulation")},
	},
	{
		name: "file-checks-no-bounds", breaks: "operations.md",
		does:  "bounds of protection are not checked in the file",
		file:  "internal/server/config_protection.go",
		old:   "\t\tfor _, one := range refusals(err) {\n",
		new:   "\t\tfor _, one := range refusals(nil) {\n",
		first: []suite{in("internal/server", "TestEveryProblemOfProtectionIsToldWithItsLine")},
	},
	{
		name: "file-tells-no-line-of-a-group", breaks: "operations.md",
		does:  "a wrong weight is told with the line of the weights, not its own",
		file:  "internal/server/config_protection.go",
		old:   "\t\t\tn = n.entries[i].value\n",
		new:   "\t\t\t_ = n.entries[i].value\n",
		first: []suite{in("internal/server", "TestEveryProblemOfProtectionIsToldWithItsLine")},
	},
	{
		name: "audit-not-of-settings", breaks: "retry.md 3",
		does:  "a change of a queue's settings is not in the audit log",
		file:  "internal/engine/audit.go",
		old:   "\tif changes := r.e.opts.Changes(from, to); changes != nil {\n",
		new:   "\tif changes := r.e.opts.Changes(from, from); changes != nil {\n",
		first: []suite{in(enginePkg, "TestEveryActionOfAnOperatorIsAudited")},
	},
	{
		name: "audit-not-of-deletes", breaks: "retry.md 3",
		does:  "who deleted a job is not in the audit log",
		file:  "internal/engine/operate.go",
		old:   "\t\treturn r.audit(by, \"delete\", id.String(), 1)\n",
		new:   "\t\tr.tx.Durable(); return nil\n",
		first: []suite{in(enginePkg, "TestEveryActionOfAnOperatorIsAudited")},
	},
	{
		name: "audit-of-what-changed-nothing", breaks: "retry.md 3",
		does:  "a hold that changed nothing is in the audit log",
		file:  "internal/engine/audit.go",
		old:   "\tif from == to {\n",
		new:   "\tif false {\n",
		first: []suite{in(enginePkg, "TestEveryActionOfAnOperatorIsAudited")},
	},
	{
		name: "audit-without-a-name", breaks: "retry.md 3",
		does:  "commands about queues do not say who asks",
		file:  "cmd/reprise/queue.go",
		old:   "\t\tcl, err := conn.operator()\n",
		new:   "\t\tcl, err := conn.client(client.Options{})\n",
		first: []suite{in("cmd/reprise", "TestTheAuditLogTellsWhoChangedWhat")},
	},
}
