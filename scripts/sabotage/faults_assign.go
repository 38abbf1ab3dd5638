package main

// assignFaults break what makes assignments fast.
var assignFaults = []fault{
	{
		name: "ahead-by-a-reader", breaks: "one writer",
		does:  "a transaction that only reads changes what is kept in memory",
		file:  "internal/store/embedded/ahead.go",
		old:   "if !a.writer || len(ids) == 0",
		new:   "if len(ids) == 0",
		first: []suite{in(embeddedPkg, "TestWhoTakesFewReadsThoseBehindThemAhead")},
	},
	{
		name: "ahead-of-nobody", breaks: "DESIGN section 4",
		does:  "each job is looked up on disk alone",
		file:  "internal/store/embedded/ahead.go",
		old:   "a.readAhead(x.ready(queues, s, a.s.ahead(), true))",
		new:   "a.readAhead(ids)",
		first: []suite{in(embeddedPkg, "TestWhoTakesFewReadsThoseBehindThemAhead")},
	},
	{
		name: "ahead-with-large-payloads", breaks: "DESIGN section 4",
		does:  "payloads of any size are read ahead",
		file:  "internal/store/embedded/ahead.go",
		old:   "!ok && j.PayloadSize <= aheadBytes",
		new:   "!ok",
		first: []suite{in(embeddedPkg, "TestWhoTakesFewReadsThoseBehindThemAhead")},
	},
	{
		name: "ahead-to-the-wrong-job", breaks: "I8",
		does:  "a payload that was read ahead is kept under another job",
		file:  "internal/store/embedded/ahead.go",
		old:   "h.keepBody(refs[i],",
		new:   "h.keepBody(refs[len(refs)-1-i],",
		first: []suite{in(embeddedPkg, "TestWhoTakesFewReadsThoseBehindThemAhead")},
	},
	{
		name: "served-stays-first", breaks: "the waiters",
		does:  "who got something is served first again",
		file:  "internal/engine/hungry.go",
		old:   "w.line.MoveToBack(h.place)",
		new:   "w.line.MoveToFront(h.place)",
		first: []suite{in(enginePkg, "TestTheHolderThatGotSomethingGoesBehindAllOthers")},
	},
	{
		name: "freed-in-any-order", breaks: "the waiters",
		does:  "holders that got room are served the latest first",
		file:  "internal/engine/hungry.go",
		old:   "return cmp.Compare(h.turn, g.turn)",
		new:   "return cmp.Compare(g.turn, h.turn)",
		first: []suite{in(enginePkg, "TestHoldersThatGotRoomInOneBatchAreServedInTheirOrder")},
	},
	{
		name: "answered-call-waits", breaks: "the waiters",
		does:  "a call that was answered gets more when what it got is settled",
		file:  "internal/engine/hungry.go",
		old:   "case h.Want > 0 && h.held > 0: // it is answered\n\t\t\tw.remove(h)",
		new:   "case h.Want > 0 && h.held > 0: // it is answered\n\t\t\tw.served(h)",
		first: []suite{in(enginePkg, "TestACallThatWasAnsweredWaitsNoMore")},
	},
}
