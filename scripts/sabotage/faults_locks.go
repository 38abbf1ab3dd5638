package main

const lockPkg = "internal/part/lock"

const (
	connectPkg = "internal/connect"
	webPkg     = "internal/connect/web"
	clientPkg  = "client"
)

// lockFaults break named locks, delivery to targets, and the rules of egress.
var lockFaults = []fault{
	{
		name: "lock-least-forgotten", breaks: "docs/locks.md, lock at least",
		does:  "a lock that was given back is free at once",
		file:  "internal/job/lock.go",
		old:   "return l == nil || steady >= l.Until }",
		new:   "return l == nil || l.Given || steady >= l.Until }",
		first: []suite{in(rulePkg, "TestALockIsTakenExtendedAndGivenBackExactlyInTime")},
	},
	{
		name: "lock-early", breaks: "I6",
		does:  "a lock is free a millisecond before its end",
		file:  "internal/job/lock.go",
		old:   "return l == nil || steady >= l.Until }",
		new:   "return l == nil || steady+1 >= l.Until }",
		first: []suite{in(lockPkg, "TestTheLockVectorsOfTheReference")},
	},
	{
		name: "lock-any-token", breaks: "core.md 4",
		does:  "any token extends a lock and gives it back",
		file:  "internal/rule/lock.go",
		old:   "if token.IsZero() || token != l.Token {",
		new:   "if token.IsZero() {",
		first: []suite{in(rulePkg, "TestALockObeysNobodyButItsLatestHolder")},
	},
	{
		name: "lock-extended-after-its-end", breaks: "docs/locks.md",
		does:  "a lock that ran out is extended, while its holder had to stop",
		file:  "internal/rule/lock.go",
		old:   "\tif err == nil && !l.Held(m.Steady) {\n",
		new:   "\tif err == nil && l.Given {\n",
		first: []suite{in(rulePkg, "TestALockObeysNobodyButItsLatestHolder")},
	},
	{
		name: "lock-without-end-after-a-wrong-date", breaks: "core.md 8",
		does:  "a lock lasts for years when the date was wrong before the restart",
		file:  "internal/rule/lock.go",
		old:   "carried.Until = min(l.Until.Add(shift), m.Steady.Add(l.Span))",
		new:   "carried.Until = l.Until.Add(shift)",
		first: []suite{in(rulePkg, "TestALockLastsNoLongerThanItWasGivenForWhateverTheClocksSay")},
	},
	{
		name: "lock-not-carried", breaks: "core.md 8",
		does:  "the times of a lock stay on the clock of the last start",
		file:  "internal/part/lock/lock.go",
		old:   "Restart: restart,",
		new:   "Restart: func(tx *engine.Tx, _ job.Millis) error { return restart(tx, 0) },",
		first: []suite{in(lockPkg, "TestLocksAreCarriedOverRestartsAndPowerCuts")},
	},
	{
		name: "lock-answered-before-it-is-on-disk", breaks: "core.md 4",
		does:  "a lock is answered before it is on disk, and a power cut gives it to two",
		file:  "internal/part/lock/lock.go",
		old:   "\ttx.Store().Durable()\n\treturn tx.Store().Set(l)\n",
		new:   "\treturn tx.Store().Set(l)\n",
		first: []suite{in(lockPkg, "TestWhoHasALockIsOnDiskBeforeTheAnswer")},
	},
	{
		name: "lock-never-forgotten", breaks: "docs/locks.md, limits",
		does:  "the clock does not look at locks, so that names that were used once stay for good",
		file:  "internal/part/lock/lock.go",
		old:   "		Due:     []engine.Due{{Table: job.Locks, Steady: true, Turn: s.forget}},\n",
		new:   "",
		first: []suite{in(lockPkg, "TestALockThatNobodyWantsIsForgottenAndItsNumberStillRises")},
	},
	{
		name: "lock-token-shown", breaks: "core.md 4",
		does:  "everybody who looks at a lock is told its token",
		file:  "internal/door/jobs/lock.go",
		old:   "Fencing: s.Fence,\n",
		new:   "Fencing: s.Fence, Token: string(s.Token.AppendTo(nil)),\n",
		first: []suite{in(httpPkg, "TestALockIsTakenShownExtendedAndGivenBack")},
	},
	{
		name: "lock-lost-and-not-told", breaks: "docs/locks.md",
		does:  "a run goes on although the server said that its lock is over",
		file:  "client/lock.go",
		old:   "case ok && !refused.Temporary():",
		new:   "case ok && refused.Temporary():",
		first: []suite{in(clientPkg, "TestARunHearsThatItsLockIsLostBeforeSomebodyElseCanHaveIt")},
	},
	{
		name: "egress-rebinding", breaks: "docs/security.md, targets",
		does:  "the address that a name leads to is not looked at when it is dialled",
		file:  "internal/connect/egress.go",
		old:   "\t\treturn e.reaches(host, to)\n\t}}",
		new:   "\t\t_ = e.reaches(host, to); return nil\n\t}}",
		first: []suite{in(connectPkg, "TestEachDialLooksAtTheAddressThatTheNameHasNow")},
	},
	{
		name: "egress-metadata", breaks: "docs/security.md, targets",
		does:  "an address of metadata is called if a line covers it",
		file:  "internal/connect/egress.go",
		old:   "\tif why := Forbidden(addr); why != \"\" {\n\t\treturn refused(",
		new:   "\tif why := Forbidden(addr); why == \"never\" {\n\t\treturn refused(",
		first: []suite{in(connectPkg, "TestEveryLineOfTheRulesAllowsWhatItSays")},
	},
	{
		name: "egress-pattern-reaches-inside", breaks: "docs/security.md, targets",
		does:  "a pattern of names reaches private addresses",
		file:  "internal/connect/egress.go",
		old:   "case within && (pattern || !byName), pattern && !Inside(addr):",
		new:   "case within && (pattern || !byName), pattern:",
		first: []suite{in(connectPkg, "TestEveryLineOfTheRulesAllowsWhatItSays")},
	},
	{
		name: "web-follows-redirects", breaks: "docs/security.md, targets",
		does:  "a target sends the server wherever it likes",
		file:  "internal/connect/web/sink.go",
		old:   "CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },",
		new:   "CheckRedirect: nil,",
		first: []suite{in(webPkg, "TestARedirectIsNotFollowed")},
	},
	{
		name: "web-keeps-echoed-secrets", breaks: "docs/security.md, targets",
		does:  "a secret that a target answers with is kept where the answer is cut behind it",
		file:  "internal/connect/web/answer.go",
		old:   "excerpt(s.mask.Replace(string(body[:min(len(body), answerBytesMax)])))",
		new:   "s.mask.Replace(excerpt(string(body)))",
		first: []suite{in(webPkg, "TestSecretsAreMaskedInWhatIsKeptOfAnAnswer")},
	},
	{
		name: "web-rest-of-a-stopped-batch-is-charged", breaks: "inbox.md 3",
		does:  "messages behind the first failure of a batch are charged too",
		file:  "internal/connect/connect.go",
		old:   "if failed && !done {",
		new:   "if false {",
		first: []suite{in(webPkg, "TestResultsOfABatchAreTakenMessageByMessage")},
	},
	{
		name: "web-silence-is-success", breaks: "I5",
		does:  "a message that the results do not name counts as delivered",
		file:  "internal/connect/web/answer.go",
		old:   "\t\t\tr = failed(connect.TypeAnswer, \"the results say nothing of this message\")\n",
		new:   "\t\t\tr = whole\n",
		first: []suite{in(webPkg, "TestResultsOfABatchAreTakenMessageByMessage")},
	},
}
