package main

const tracePkg = "internal/trace"

// traceFaults break what is told of jobs as spans, and the trace context they
// carry.
var traceFaults = []fault{
	{
		name: "trace-header-over-field", breaks: "docs/protocol/jobs.md, trace context",
		does:  "the header of an enqueue replaces the traceparent of a job",
		file:  "internal/httpapi/trace.go",
		old:   "\t\tcase j.Extras.Traceparent == \"\":",
		new:   "\t\tdefault:",
		first: []suite{in("internal/httpapi", "TestTheCallersTraceContextGoesIntoJobsThatHaveNone")},
	},
	{
		name: "trace-later-version-lost", breaks: "W3C trace context, versioning",
		does:  "a header of a later version is ignored",
		file:  "internal/job/extras.go",
		old:   "\tif len(header) > size && header[size] == '-' && header[:2] != \"00\" {",
		new:   "\tif false {",
		first: []suite{in("internal/job", "TestATraceparentOfALaterVersionIsReadAsOneOfThis")},
	},
	{
		name: "trace-unsampled-told", breaks: "operations.md, traces",
		does:  "jobs whose caller does not record are told to the exporter too",
		file:  "internal/job/extras.go",
		old:   "\treturn strings.IndexByte(\"13579bdf\", t[len(t)-1]) >= 0 // the lowest flag",
		new:   "\treturn len(t) > 0",
		first: []suite{in("internal/job", "TestAJobIsSampledIfItsCallerIs"), in(enginePkg, "TestWhoFollowsTracesHearsOfSampledJobsOnly")},
	},
	{
		name: "trace-follower-hears-all", breaks: "operations.md, traces",
		does:  "who follows traces is told of every job",
		file:  "internal/engine/event.go",
		old:   "\treturn (!f.Traced || ev.Trace != nil) && has(",
		new:   "\treturn (!f.Traced || ev.Trace != nil || ev.At > 0) && has(",
		first: []suite{in(enginePkg, "TestWhoFollowsTracesHearsOfSampledJobsOnly")},
	},
	{
		name: "trace-sampler-not-asked", breaks: "operations.md, traces",
		does:  "a worker is given the span of a run that nobody exports",
		file:  "internal/trace/trace.go",
		old:   "\t\t\tif d.Voided || !d.Job.Sampled() || !x.samples(ctx, d.Job.Extras.Traceparent) {",
		new:   "\t\t\tif d.Voided || !d.Job.Sampled() {",
		first: []suite{in(tracePkg, "TestTheWorkersParentIsASpanThatIsMade")},
	},
	{
		name: "trace-run-of-another", breaks: "operations.md, traces",
		does:  "runs of one job have the same span id",
		file:  "internal/trace/id.go",
		old:   "func idOfRun(id job.ID, token uint64) trace.SpanID { return spanID(\"run\", id, token) }",
		new:   "func idOfRun(id job.ID, _ uint64) trace.SpanID { return spanID(\"run\", id, 0) }",
		first: []suite{in(tracePkg, "TestAWaitBeginsWhenTheJobWasGivenBack")},
	},
	{
		name: "trace-linked-to-itself", breaks: "operations.md, traces",
		does:  "a run is linked to itself and not to the one before",
		file:  "internal/trace/span.go",
		old:   "\tbefore := link(ctx, t.Old)",
		new:   "\tbefore := link(ctx, t.Job)",
		first: []suite{in(tracePkg, "TestAWaitBeginsWhenTheJobWasGivenBack")},
	},
	{
		name: "trace-back-forgotten", breaks: "operations.md, traces",
		does:  "the wait after a release begins with the take before it",
		file:  "internal/trace/span.go",
		old:   "\t\tx.back[j.ID] = ev.At",
		new:   "\t\tx.back[j.ID] = 0",
		first: []suite{in(tracePkg, "TestAWaitBeginsWhenTheJobWasGivenBack")},
	},
	{
		name: "trace-deaf-to-recovery", breaks: "operations.md, traces",
		does:  "what was told when the listener was made is not heard: runs that a start ends have no span",
		file:  "internal/engine/recover.go",
		old:   "\te.announce(c.stage.events, err != nil)",
		new:   "\te.announce(nil, err != nil)",
		first: []suite{in(tracePkg, "TestARunThatARestartEndsIsTold")},
	},
	{
		name: "trace-void-is-ok", breaks: "operations.md, traces",
		does:  "a run that nobody settled is told as ok",
		file:  "internal/engine/trace.go",
		old:   "\t\tif v := &eff.Voided[i]; v.Lease.Token == l.Token {",
		new:   "\t\tif v := &eff.Voided[i]; v.Lease.Token != l.Token {",
		first: []suite{in(tracePkg, "TestWhatNobodySaysIsToldToo")},
	},
}
