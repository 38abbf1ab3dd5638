package storetest

import (
	"github.com/reprisehq/reprise/internal/rule"
)

var copies = []subject{
	{"a job stands in line until it has all its copies", copiesWanted},
	{"a holder is not offered what it runs", copyOfItsOwn},
	{"an offer puts a running job back in line", offered},
}

func copiesWanted(x *site) {
	a := x.put("q", "a", copied(2))
	x.put("q", "b")
	x.offered("none runs", "a b")
	x.take(a, "h1")
	x.offered("one runs", "a b")
	a = x.take(a, "h2")
	x.offered("both run", "b")
	x.settle(a, rule.SettleRelease)
	x.offered("one came back", "a b")
	x.reopen()
	x.offered("one came back, reopened", "a b")
}

func copyOfItsOwn(x *site) {
	a := x.put("q", "a", copied(2))
	x.put("q", "b")
	x.take(a, "h1")
	for n, want := range []string{"", "b", "b"} {
		x.expect("its holder", x.line(rule.Seeker{Holder: "h1", Held: 1}, n), want)
	}
	x.expect("another holder", x.line(rule.Seeker{Holder: "h2"}, 1), "a")
}

func offered(x *site) {
	a := x.take(x.put("q", "a"), "h1")
	x.offered("runs", "")
	a = x.do(a, rule.Command{Verb: rule.Offer})
	x.offered("one more wanted", "a")
	x.take(a, "h2")
	x.offered("runs twice", "")
	a = x.settle(a, rule.SettleRetry)
	x.offered("the other one decides", "")
	x.settle(a, rule.SettleOK)
	x.offered("done", "")
}
