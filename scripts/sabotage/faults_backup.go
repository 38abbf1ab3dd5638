package main

// backupFaults break what is told of backups and of connections.
var backupFaults = []fault{
	{
		name: "backup-not-audited", breaks: "operations.md, Security",
		does:  "who took a whole backup is not in the audit log",
		file:  "internal/httpapi/upkeep.go",
		old:   "\th.noteBackup(r, by, out.sent, err)\n",
		new:   "\tif err != nil { h.noteBackup(r, by, out.sent, err) }\n",
		first: []suite{in(httpPkg, "TestABackupIsAudited")},
	},
	{
		name: "backup-that-broke-off-is-whole", breaks: "operations.md, Security",
		does:  "the audit log takes a backup that broke off for a whole one",
		file:  "internal/httpapi/upkeep.go",
		old:   "\tif why != nil {\n\t\taction = \"backup broken off\"",
		new:   "\tif why == nil && bytes < 0 {\n\t\taction = \"backup broken off\"",
		first: []suite{in(httpPkg, "TestABackupThatBreaksOffBreaksTheAnswer")},
	},
	{
		name: "backup-without-its-size", breaks: "operations.md, Security",
		does:  "the audit log does not know how much of a backup was sent",
		file:  "internal/httpapi/upkeep.go",
		old:   "\tp.sent += int64(n)",
		new:   "\tp.sent = int64(n) - int64(n)",
		first: []suite{in(httpPkg, "TestABackupIsAudited")},
	},
	{
		name: "salvage-behind-damage-lost", breaks: "docs/operations.md, Corruption",
		does:  "what stands behind a damaged record of a log is lost though it can be read",
		file:  "internal/store/embedded/salvage.go",
		old:   "for at++; at < len(block) && !ok; at++ {",
		new:   "for at = len(block); at < len(block) && !ok; at++ {",
		first: []suite{in(embeddedPkg, "TestWhatCanBeReadOfADamagedDirectoryIsSalvaged")},
	},
	{
		name: "salvage-without-copy-of-the-list", breaks: "docs/operations.md, Corruption",
		does:  "a directory without its list of tables cannot be saved",
		file:  "internal/store/embedded/witness.go",
		old:   "_, _ = f.second.Write(bytes.Clone(p))",
		new:   "_, _ = f.second.Write(bytes.Clone(p[:0]))",
		first: []suite{in(embeddedPkg, "TestWhatCanBeReadOfADamagedDirectoryIsSalvaged", "TestTheCopyOfTheListOfTablesGoesWithIt")},
	},
	{
		name: "salvage-opens-the-server", breaks: "docs/operations.md, Corruption",
		does:  "a salvage without the tokens makes a server that is open to everybody",
		file:  "internal/store/embedded/salvage.go",
		old:   "if len(gaps) > 0 && t != job.Receipts {",
		new:   "if len(gaps) > 0 && t == job.Reserves {",
		first: []suite{in(embeddedPkg, "TestASalvageWithoutRowsIsRefused")},
	},
}
