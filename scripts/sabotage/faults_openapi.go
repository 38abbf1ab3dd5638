package main

// openapiFaults let the server and its description part.
var openapiFaults = []fault{
	{
		name: "openapi-call-undescribed", breaks: "GET /openapi.json",
		does:  "a call is not described",
		file:  "internal/httpapi/openapi/jobs.yaml",
		old:   "  /jobs/count:\n",
		new:   "  /jobs/counted:\n",
		first: []suite{in(httpPkg, "TestEveryCallIsDescribed")},
	},
	{
		name: "openapi-wrong-scope", breaks: "GET /openapi.json",
		does:  "the description names another scope than the call needs",
		file:  "internal/httpapi/read.go",
		old:   "get(\"/jobs/count\", reads, queryQueues",
		new:   "get(\"/jobs/count\", operates, queryQueues",
		first: []suite{in(httpPkg, "TestEveryCallIsDescribed")},
	},
	{
		name: "openapi-member-missing", breaks: "GET /openapi.json",
		does:  "a member of an answer is not described",
		file:  "internal/httpapi/openapi/job.yaml",
		old:   "        timeout: {type: boolean, description: The attempt took too long.}\n        worker: {type: string}\n",
		new:   "        timeout: {type: boolean, description: The attempt took too long.}\n",
		first: []suite{in(httpPkg, "TestTheProtocolIsAsDocumented")},
	},
	{
		name: "openapi-answer-grows", breaks: "GET /openapi.json",
		does:  "an answer has a member that nobody described",
		file:  "internal/httpapi/ops.go",
		old:   "`{\"status\":\"ok\"}`",
		new:   "`{\"status\":\"ok\",\"since\":0}`",
		first: []suite{in(httpPkg, "TestTheProtocolIsAsDocumented")},
	},
	{
		name: "openapi-word-missing", breaks: "GET /openapi.json",
		does:  "the description does not know a reason of dead jobs",
		file:  "internal/httpapi/openapi/job.yaml",
		old:   "enum: [exhausted, killed, expired, lost, rejected, evicted, cancelled]",
		new:   "enum: [exhausted, killed, expired, lost, rejected]",
		first: []suite{in(httpPkg, "TestTheDescriptionHasTheWordsOfTheCode")},
	},
	{
		name: "openapi-other-limit", breaks: "GET /openapi.json",
		does:  "the description allows longer leases than the call",
		file:  "internal/httpapi/openapi/workers.yaml",
		old:   "lease_ms: {type: integer, minimum: 1, maximum: 86400000,",
		new:   "lease_ms: {type: integer, minimum: 1, maximum: 864000000,",
		first: []suite{in(httpPkg, "TestTheDescriptionHasTheWordsOfTheCode")},
	},
	{
		name: "openapi-invalid", breaks: "GET /openapi.json",
		does:  "the description is no OpenAPI",
		file:  "internal/httpapi/openapi/server.yaml",
		old:   "      - {name: id, in: path, required: true,",
		new:   "      - {name: id, in: paths, required: true,",
		first: []suite{in(httpPkg, "TestTheDescriptionIsOpenAPI")},
	},
	{
		name: "openapi-no-msgpack", breaks: "GET /openapi.json",
		does:  "bodies are described as JSON only",
		file:  "internal/httpapi/openapi.go",
		old:   "\t\tcontent[mediaMsgpack] = is\n",
		new:   "\t\tcontent[mediaJSON] = is\n",
		first: []suite{in(httpPkg, "TestTheDescriptionIsServedToEverybodyWithAToken")},
	},
}
