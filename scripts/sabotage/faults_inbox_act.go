package main

// inboxActFaults break what an operator asks of an inbox, and what it tells.
var inboxActFaults = []fault{
	{
		name: "skip-refuses-who-holds-its-group", breaks: "inbox.md, decision 10: skip the head",
		does:  "an exhausted message that blocks its group cannot be skipped",
		file:  "internal/engine/inbox.go",
		old:   "	if j.State == job.Dead && j.Blocks { // it steps aside",
		new:   "	if j.State == job.Dead && !j.Blocks { // it steps aside",
		first: []suite{in(inboxPkg, "TestAMessageThatHoldsItsGroupIsSkipped")},
	},
	{
		name: "skip-all-takes-more-than-heads", breaks: "inbox.md, decision 10: skip the head",
		does:  "skip of the inbox gives up messages that are no heads",
		file:  "internal/door/inbox/act.go",
		old:   "s.Filter.IDs = append(s.Filter.IDs, g.Head.ID)",
		new:   "s.Filter.IDs, s.Filter.Types = []job.ID{}, append(s.Filter.Types, g.Head.Type)",
		first: []suite{in(inboxPkg, "TestTheHeadsOfAllGroupsAreSkipped")},
	},
	{
		name: "edit-of-a-group-edits-all", breaks: "docs/protocol/inbox.md, POST /inboxes/{name}/actions",
		does:  "an edit of a group changes all of its messages",
		file:  "internal/door/inbox/edit.go",
		old:   "a.Group != nil && len(a.Statuses)+len(a.Types) == 0 {",
		new:   "a.Group != nil && a.Payload != nil {",
		first: []suite{in(inboxPkg, "TestDatesOfManyMessagesAreEdited")},
	},
	{
		name: "status-shelves-mixed", breaks: "inbox.md, metrics: oldest age per state",
		does:  "a message that retries is listed with those that wait",
		file:  "internal/store/embedded/listing.go",
		old:   "if m.states[s.state] && m.is[s.is] {",
		new:   "if m.states[s.state] && (m.is[s.is] || m.is[0] && s.is < 2) {",
		first: []suite{in("internal/store/embedded", "TestCompareWithMem")},
	},
	{
		name: "oldest-of-a-status-is-the-latest", breaks: "inbox.md, metrics: oldest age per state",
		does:  "the age of the youngest message of each status is told",
		file:  "internal/engine/ages.go",
		old:   "	list, err := v.List(f, 1)\n",
		new:   "	f.Desc = f.Statuses != nil\n	list, err := v.List(f, 1)\n",
		first: []suite{in(enginePkg, "TestTheOldestOfEachStatusIsTold")},
	},
	{
		name: "preview-tells-a-wait", breaks: "docs/protocol/inbox.md, GET /inboxes/{name}/preview",
		does:  "the preview tells how long a message waits in the place of when it is due",
		file:  "internal/door/inbox/preview.go",
		old:   "Next: int64(t.Next)}",
		new:   "Next: int64(max(0, t.Next-t.At))}",
		first: []suite{in("internal/httpapi", "TestTheProtocolIsAsDocumented")},
	},
	{
		name: "edit-keeps-the-old-payload", breaks: "inbox.md, decision 10: edit",
		does:  "a message that was edited is delivered as it was",
		file:  "internal/engine/patch.go",
		old:   "			n.Payload, n.PayloadSize = ref, uint32(len(p.Payload))",
		new:   "			n.PayloadSize = uint32(len(p.Payload))",
		first: []suite{in("internal/model", "TestEngineIsTheModel")},
	},
}
