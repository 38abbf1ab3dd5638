package main

const httpPkg = "internal/httpapi"

// doorFaults break what the jobs API and its HTTP say.
var doorFaults = []fault{
	{
		name: "closed-take-keeps-jobs", breaks: "I1, core.md 4",
		does:  "the engine is not told that a client of GET /jobs/take left",
		file:  "internal/httpapi/take.go",
		old:   "\tdefer stream.Close()\n",
		new:   "",
		first: []suite{in(httpPkg, "TestADisconnectGivesBackWithoutBlame")},
	},
	{
		name: "foreign-host-let-in", breaks: "operations.md, security",
		does:  "a web page whose name resolves to us may drive the queue",
		file:  "internal/httpapi/guard.go",
		old:   "if !h.knows(r.Host, r) {",
		new:   "if false {",
		first: []suite{in(httpPkg, "TestOnlyWhoKnowsOurNameGetsIn")},
	},
	{
		name: "body-not-bounded", breaks: "operations.md, limits",
		does:  "a body in chunks may be larger than the limit",
		file:  "internal/httpapi/body.go",
		old:   "m.size > m.h.bodyMax {",
		new:   "m.size < 0 {",
		first: []suite{in(httpPkg, "TestBodiesAreBounded")},
	},
	{
		name: "duplicate-answered-201", breaks: "jobs.md, idempotency",
		does:  "a duplicate is told as a new job",
		file:  "internal/httpapi/enqueue.go",
		old:   "return http.StatusOK\n",
		new:   "return http.StatusCreated\n",
		first: []suite{in(httpPkg, "TestAnIdempotencyKeyMakesASecondSendingHarmless")},
	},
	{
		name: "token-shown-to-all", breaks: "core.md 4",
		does:  "a take line shows a lease token nobody asked for",
		file:  "internal/httpapi/take.go",
		old:   `&list[i], o.Name != "")`,
		new:   "&list[i], true)",
		first: []suite{in(httpPkg)},
	},
	{
		name: "settle-verdicts-swapped", breaks: "jobs.md, settle",
		does:  "the outcomes retry and dead are read as each other",
		file:  "internal/engine/settle.go",
		old:   "rule.SettleRetry, rule.SettleDead,",
		new:   "rule.SettleDead, rule.SettleRetry,",
		first: []suite{in(httpPkg, "TestAFailureIsTriedAgainOrIsTheEnd")},
	},
	{
		name: "inflight-bytes-leak", breaks: "operations.md, limits",
		does:  "bytes of requests that are over still count as in work",
		file:  "internal/httpapi/body.go",
		old:   "m.h.bodies.give(m.who, m.held)",
		new:   "m.h.bodies.give(m.who, 0)",
		first: []suite{in(httpPkg, "TestRequestsInWorkAreBounded")},
	},
}
