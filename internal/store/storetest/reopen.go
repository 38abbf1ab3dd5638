package storetest

import (
	"errors"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

var reopens = []subject{
	{"keeps everything durable", reopenKeeps},
	{"keeps transactions that a later durable one stands on", reopenOrder},
	{"closing twice is harmless, and a closed store refuses", closeTwice},
}

// reopen loads the store again from what is durable.
func (x *site) reopen() {
	x.Helper()
	if err := x.s.Reopen(x.Context()); err != nil {
		x.Fatal(err)
	}
}

func reopenKeeps(x *site) {
	furnish(x)
	x.queue("q", func(q *job.Queue) { q.Order, q.Concurrency = job.OrderStart, 1 })
	x.take(x.put("q", "member", group("g2")), "h2")
	x.put("q", "next member", group("g2"))
	before := x.digest()
	x.reopen()
	x.unchanged(before)
	x.reopen()
	x.put("q", "and it goes on")
}

// reopenOrder: durable is what comes before something durable, too.
func reopenOrder(x *site) {
	for _, name := range []string{"a", "b"} {
		c := x.newJob("q", name)
		commit, err := x.s.Update(x.Context(), func(tx store.Tx) error {
			_, err := x.world.put(tx, c)
			return err
		})
		if err == nil {
			err = commit.Wait()
		}
		if err != nil {
			x.Fatal(err)
		}
	}
	x.put("q", "c")
	x.reopen()
	x.offered("all", "a b c")
}

func closeTwice(x *site) {
	x.put("q", "a")
	x.closed = true
	if err := errors.Join(x.s.Close(), x.s.Close()); err != nil {
		x.Fatal(err)
	}
	if err := write(x, func(store.Tx) error { return nil }); job.KindOf(err) != job.Unavailable {
		x.Errorf("Update: got %v, want an error of kind Unavailable", err)
	}
}
