package main

// workerFaults break heartbeats by the name of a worker.
var workerFaults = []fault{
	{
		name: "worker-secret-not-compared", breaks: "operations.md, Security",
		does:  "any text of the right length is the secret of a worker",
		file:  "internal/engine/worker.go",
		old:   "codeOf(key, worker, number)) != 1 {",
		new:   "codeOf(key, worker, number)) < 0 {",
		first: []suite{in(enginePkg, "TestASecretIsOfOneWorkerAndOneRegistration")},
	},
	{
		name: "worker-secret-of-any-name", breaks: "operations.md, Security",
		does:  "the secret of a worker works under any name",
		file:  "internal/engine/worker.go",
		old:   "\th.Write([]byte(worker))",
		new:   "\th.Write([]byte(worker[:0]))",
		first: []suite{in(enginePkg, "TestASecretIsOfOneWorkerAndOneRegistration")},
	},
	{
		name: "worker-code-of-any-registration", breaks: "operations.md, Security",
		does:  "who has one secret of a worker's name can make the others",
		file:  "internal/engine/worker.go",
		old:   "\th.Write(number)",
		new:   "\th.Write(number[:0])",
		first: []suite{in(enginePkg, "TestASecretIsOfOneWorkerAndOneRegistration")},
	},
	{
		name: "worker-extends-the-name", breaks: "operations.md, Security",
		does:  "who leases with a secret is the same holder as whoever has the name",
		file:  "internal/engine/worker.go",
		old:   "return unaryPrefix + worker + \"\\x00\" + secret[:2*secretNumber], nil",
		new:   "return unaryPrefix + worker, nil",
		first: []suite{in(enginePkg, "TestOneHeartbeatKeepsAllLeasesOfAWorker")},
	},
}
