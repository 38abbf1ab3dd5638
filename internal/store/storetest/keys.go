package storetest

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var keys = []subject{
	{"lead to the one job that stands under them", keyLeads},
	{"of the two kinds are not the same", keyKinds},
	{"go over to another job in one transaction", keyPassedOn},
	{"are as before after an aborted transaction", keyAborted},
	{"refuse a second job", keyTaken},
	{"are known again after Reopen", keyReopened},
}

// What the keys of a history are.
var (
	keyNames  = []string{"x", "y"}
	keysAsked = []rule.Key{
		{},
		{Kind: rule.UniqueKey, Name: "x"},
		{Kind: rule.UniqueKey, Name: "y"},
		{Kind: rule.BatchKey, Name: "x"},
		{Kind: rule.BatchKey, Name: "y"},
		{Kind: rule.UniqueKey, Name: "unheard of"},
	}
)

func unique(key string, while job.UniqueScope) with {
	return edit(func(j *job.Job) { j.Extras = &job.Extras{Unique: &job.Unique{Key: key, While: while}} })
}

func batched(key string) with {
	return edit(func(j *job.Job) { j.Extras = &job.Extras{Batch: &job.Batch{Key: key, When: "true", Fold: "$new"}} })
}

// succeed makes room under a key for the next job.
func succeed(tx store.Tx, key rule.Key) error {
	id, ok := tx.Owner(key)
	if !ok {
		return nil
	}
	old, err := tx.Get(id)
	if err != nil {
		return err
	}
	return tx.Write(old, rule.Yield(old))
}

// owner expects that a job stands under a key; nil = none does.
func (x *site) owner(when string, kind rule.KeyKind, name string, want *job.Job) {
	x.Helper()
	var expected job.ID
	if want != nil {
		expected = want.ID
	}
	x.view(func(r store.Reader) error {
		if id, ok := r.Owner(rule.Key{Kind: kind, Name: name}); id != expected || ok != (want != nil) {
			x.Errorf("%s: the owner of %q is %s (%t), want %s", when, name, id, ok, expected)
		}
		return nil
	})
}

func keyLeads(x *site) {
	x.owner("nobody", rule.UniqueKey, "k", nil)
	x.owner("no key at all", rule.NoKey, "", nil)
	a := x.put("q", "a", unique("k", job.WhileActive))
	x.put("q", "b")
	x.owner("put", rule.UniqueKey, "k", a)
	x.owner("another one", rule.UniqueKey, "l", nil)
	a = x.take(a, "h")
	x.owner("active", rule.UniqueKey, "k", a)
	x.settle(a, rule.SettleOK)
	x.owner("finished", rule.UniqueKey, "k", nil)
	c := x.put("q", "c", unique("k", job.WhileQueued))
	x.owner("another job", rule.UniqueKey, "k", c)
	c = x.take(c, "h")
	x.owner("taken", rule.UniqueKey, "k", nil)
	c = x.settle(c, rule.SettleRelease)
	x.owner("back", rule.UniqueKey, "k", c)
}

func keyKinds(x *site) {
	a := x.put("q", "a", unique("k", job.WhileExists))
	b := x.put("q", "b", batched("k"))
	x.owner("unique", rule.UniqueKey, "k", a)
	x.owner("batch", rule.BatchKey, "k", b)
	x.take(b, "h")
	x.owner("closed", rule.BatchKey, "k", nil)
	x.owner("unique", rule.UniqueKey, "k", a)
}

func keyPassedOn(x *site) {
	a := x.take(x.put("q", "a", unique("k", job.WhileActive)), "h")
	b := x.put("q", "b", unique("k", job.WhileQueued)) // takes it over
	x.owner("passed on", rule.UniqueKey, "k", b)
	x.settle(a, rule.SettleOK)
	x.owner("the old one left", rule.UniqueKey, "k", b)
}

func keyAborted(x *site) {
	a := x.put("q", "a", batched("k"))
	_ = write(x, func(tx store.Tx) error {
		b, err := x.world.put(tx, x.newJob("q", "b", batched("k")))
		if id, _ := tx.Owner(rule.Key{Kind: rule.BatchKey, Name: "k"}); err == nil && id != b.ID {
			x.Errorf("inside, the owner is %s, want %s", id, b.ID)
		}
		return errAborted
	})
	x.owner("aborted", rule.BatchKey, "k", a)
}

func keyTaken(x *site) {
	a := x.put("q", "a", unique("k", job.WhileExists))
	err := write(x, func(tx store.Tx) error {
		b := x.newJob("q", "b", unique("k", job.WhileExists)).New
		b.State, b.HoldsKey = job.Ready, true
		return tx.Write(nil, b)
	})
	if job.KindOf(err) != job.Internal || err == nil {
		x.Errorf("a second job under one key: %v", err)
	}
	x.owner("refused", rule.UniqueKey, "k", a)
}

func keyReopened(x *site) {
	a := x.put("q", "a", unique("k", job.WhileQueued))
	b := x.put("q", "b", batched("k"))
	c := x.take(x.put("q", "c", batched("l")), "h")
	for range 2 {
		x.owner("unique", rule.UniqueKey, "k", a)
		x.owner("batch", rule.BatchKey, "k", b)
		x.owner("closed", rule.BatchKey, "l", nil)
		x.reopen()
	}
	x.settle(c, rule.SettleRelease)
	x.owner("back", rule.BatchKey, "l", nil)
	x.take(a, "h")
	x.owner("taken", rule.UniqueKey, "k", nil)
}

// keys checks who stands under which key.
func (c *checker) keys() {
	owners := map[rule.Key]job.ID{}
	for _, j := range c.m.jobs {
		key := c.m.entries[j.ID].Key
		if key.Kind == rule.NoKey {
			continue
		}
		if other, twice := owners[key]; twice {
			c.wrong("jobs %s and %s stand under the same key %+v", other, j.ID, key)
		}
		owners[key] = j.ID
	}
	for _, j := range c.m.jobs {
		key := rule.KeyAsked(j)
		want, is := owners[key]
		got, ok := c.Owner(key)
		same(c, ok, nil, is, "Owner(%+v) is there", key)
		same(c, got, nil, want, "Owner(%+v)", key)
	}
}

// keyed draws a unique key or a batch.
func (h *history) keyed() *job.Extras {
	if h.sometimes(3) {
		return &job.Extras{Batch: &job.Batch{Key: one(h, keyNames), When: "true", Fold: "$new"}}
	}
	return &job.Extras{Unique: &job.Unique{Key: one(h, keyNames), While: job.UniqueScope(h.rng.IntN(int(job.UniqueScopes)))}}
}

// growOne adds to a payload, for all jobs that share it.
func (h *history) growOne(tx store.Tx) error {
	picked, err := h.pick(tx)
	if picked == nil || picked.Payload.IsZero() {
		return err
	}
	more := fmt.Appendf(nil, "%*d", h.rng.IntN(9), h.now)[:h.rng.IntN(9)]
	h.say("payload %s grows by %d bytes", picked.Payload, len(more))
	if err := tx.AppendPayload(picked.Payload, more); err != nil {
		return err
	}
	all, err := tx.List(store.Filter{}, store.All)
	for _, old := range all {
		if old.Payload == picked.Payload && err == nil {
			j := old.Clone()
			j.PayloadSize += uint32(len(more))
			err = tx.Write(old, j)
		}
	}
	return err
}

// foldOne gives a job that takes in newcomers another payload.
func (h *history) foldOne(tx store.Tx) error {
	id, ok := tx.Owner(rule.Key{Kind: rule.BatchKey, Name: one(h, keyNames)})
	if !ok {
		return nil
	}
	old, err := tx.Get(id)
	if err != nil {
		return err
	}
	var paid job.Job // which payload it gets
	if err := h.givePayload(tx, &paid, h.payloadID()); err != nil {
		return err
	}
	h.say("fold into %s: %d bytes", id, paid.PayloadSize)
	folded, err := rule.Fold(old, paid.Payload, paid.PayloadSize)
	if err != nil {
		return broken("Owner names job %s, which does not take in newcomers", id)
	}
	return tx.Write(old, folded)
}
