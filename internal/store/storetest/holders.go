package storetest

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var holders = []subject{
	{"hold what they took until it ends", heldJobs},
}

func heldJobs(x *site) {
	held := func(holder string) string {
		x.Helper()
		return x.ids(func(r store.Reader) ([]job.ID, error) { return r.IDs(store.Held(holder), store.All) })
	}
	all := func(want string) {
		x.Helper()
		x.view(func(r store.Reader) error {
			list, err := store.Holders(r)
			got := ""
			for _, name := range list {
				got += name + " "
			}
			x.expect("holders", got, want)
			return err
		})
	}
	a, b := x.put("q", "a", copied(2)), x.put("q", "b")
	all("")
	b = x.take(b, "h1")
	a = x.take(a, "h2")
	a = x.take(a, "h1")
	all("h1 h2 ")
	x.expect("h1", held("h1"), "a b")
	x.expect("h2", held("h2"), "a")
	x.expect("h3", held("h3"), "")
	x.reopen()
	x.expect("h1, reopened", held("h1"), "a b")
	x.do(a, rule.Command{Verb: rule.Lapse, Holder: "h1", Ending: job.ByDisconnect})
	x.expect("h1 after a lapse", held("h1"), "b")
	x.settle(b, rule.SettleOK)
	all("h2 ")
	x.do(a, rule.Command{Verb: rule.Cancel})
	all("")
}
