package main

// walkFaults break what a walk through the operation of a server by hand found.
var walkFaults = []fault{
	{
		name: "crons-unguarded", breaks: "operations.md, security",
		does:  "a guarded server deletes all cron groups unasked",
		file:  "internal/httpapi/bulk.go",
		old:   "		err = h.guarded(\"delete\", said)\n",
		new:   "		_ = said\n",
		first: []suite{in("internal/httpapi", "TestAGuardWantsItSaid")},
	},
	{
		name: "doctor-asks-by-the-address", breaks: "docs/operations.md, doctor",
		does:  "a server on all addresses is asked by a name that it refuses",
		file:  "internal/server/doctor_listen.go",
		old:   `scheme+"://localhost/ready"`,
		new:   `scheme+"://"+addr+"/ready"`,
		first: []suite{in("internal/server", "TestTheDoctorAsksAServerWhereverItListens")},
	},
	{
		name: "doctor-takes-any-certificate", breaks: "docs/operations.md, doctor",
		does:  "whoever speaks TLS at the address passes for the server",
		file:  "internal/server/doctor_listen.go",
		old:   "			if !s.PeerCertificates[0].Equal(p.Certificate) {",
		new:   "			if false {",
		first: []suite{in("internal/server", "TestTheDoctorLooksAtTheCertificate")},
	},
	{
		name: "doctor-misses-the-end-of-a-certificate", breaks: "docs/operations.md, doctor",
		does:  "a certificate that has ended passes",
		file:  "internal/server/doctor_listen.go",
		old:   "	case now.After(own.NotAfter):",
		new:   "	case now.After(own.NotAfter) && false:",
		first: []suite{in("internal/server", "TestTheDoctorLooksAtTheCertificate")},
	},
	{
		name: "stop-while-starting-fails", breaks: "docs/operations.md, signals",
		does:  "a server that is told to stop while it starts ends with an error",
		file:  "internal/server/run.go",
		old:   "	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {",
		new:   "	if err != nil {",
		first: []suite{in("internal/server", "TestAStopWhileAServerStartsIsAGoodOne")},
	},
	{
		name: "backup-for-nothing", breaks: "docs/operations.md, backup",
		does:  "a file that exists is found when the server has made its backup, and written over",
		file:  "internal/backup/restore.go",
		old:   "	if _, err := os.Lstat(path); err == nil {",
		new:   "	if _, err := os.Lstat(path); err == nil && false {",
		first: []suite{in("internal/backup", "TestABackupIsSavedWholeOrNotAtAll")},
	},
}
