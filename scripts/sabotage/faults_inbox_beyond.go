package main

// inboxBeyondFaults break what an operator asks of messages that are not the heads of
// their groups, and of many at once.
var inboxBeyondFaults = []fault{
	{
		name: "retry-now-loses-its-place", breaks: "inbox.md, decision 1",
		does:  "a message that is called up goes behind those that came after it",
		file:  "internal/engine/inbox.go",
		old:   "	return r.Step(j, rule.Command{Verb: rule.Revive})",
		new:   "	return r.Step(j, rule.Command{Verb: rule.Revive, Place: job.PlaceBack})",
		first: []suite{in("internal/sim", "TestSimulation")},
	},
	{
		name: "pause-forgets-the-date", breaks: "inbox.md, decision 10: old due time kept",
		does:  "a message that is paused has no due time when it is resumed",
		file:  "internal/rule/status.go",
		old:   "{ j.Park = PausePark }",
		new:   "{ j.Park, j.ReadyAt = PausePark, 0 }",
		first: []suite{in(enginePkg, "TestPauseIsAlwaysEffectiveAndKeepsTheDueTime")},
	},
	{
		name: "skip-holds-the-group", breaks: "inbox.md, decision 10",
		does:  "a message that an operator skips blocks its group as if it had died by itself",
		file:  "internal/rule/step.go",
		old:   "		return dieAside(v, j, c.Reason, e)\n",
		new:   "		return die(v, j, c.Reason, e)\n",
		first: []suite{in(enginePkg, "TestRetryNowAndSkipTheHead")},
	},
	{
		name: "refusals-uncounted", breaks: "docs/protocol/inbox.md, POST /inboxes/{name}/actions",
		does:  "what an act on many messages could not change is told as changed",
		file:  "internal/engine/bulk.go",
		old:   "no = append(no, refusal{j.ID, err})",
		new:   "n++",
		first: []suite{in(enginePkg, "TestManyAreSkippedAndThoseThatAreFinishedAreNot")},
	},
	{
		name: "edit-under-a-run", breaks: "inbox.md, decision 10: edit",
		does:  "the payload of a message is changed while somebody delivers it",
		file:  "internal/engine/patch.go",
		old:   "	case j.State == job.Leased:\n",
		new:   "	case j.State == job.Done:\n",
		first: []suite{in(enginePkg, "TestAPatchBringsANewPayloadWhereNothingRuns")},
	},
	{
		name: "dead-edited-in-vain", breaks: "inbox.md, decision 10: edit; I8",
		does:  "the new payload of a dead message takes the place of the old one, and is gone with it",
		file:  "internal/part/deadset/dead.go",
		old:   "tx.Store().PutPayload(eff.Job.Payload, ask.Payload); err != nil {",
		new:   "tx.Store().PutPayload(j.Payload, ask.Payload); err != nil {",
		first: []suite{in(enginePkg, "TestOneDeadJobIsReplayedWithAnEditedPayload")},
	},
}
