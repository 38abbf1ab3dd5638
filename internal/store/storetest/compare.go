package storetest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// compareSteps is the length of a history, in transactions. Everything is
// compared after each, so the time grows with its square.
var compareSteps = flag.Int("history", 120, "transactions in one random history of Compare")

// errAborted is why a transaction of a history does not commit.
var errAborted = errors.New("aborted by the history")

// Compare lets the same random history happen to two empty stores and compares
// everything they answer, inside transactions and after each. The first
// difference ends the test with the seed and the history.
func Compare(t *testing.T, seed uint64, a, b store.Store) {
	t.Helper()
	h := newHistory(t, seed, a, b)
	for _, s := range []store.Store{a, b} {
		h.run(s, setUp, false)
	}
	for range *compareSteps {
		h.step()
	}
	for _, s := range []store.Store{a, b} {
		if err := Check(t.Context(), s); err != nil {
			h.fail("at the end, %T: %v", s, err)
		}
	}
	t.Logf("seed %d: %d jobs, %d leases; %v", seed, len(h.ids), len(h.tokens), h.tally)
}

// history is what happens to two stores. The first one decides what can
// happen next; what it was told to write is written to the second one.
type history struct {
	*testing.T
	*world
	a, b   store.Store
	seed   uint64
	lines  []string
	ids    []job.ID  // of all jobs ever put
	tokens []granted // all tokens ever granted
	keys   []string  // of rows ever set
	tally  map[string]int
}

type granted struct {
	id    job.ID
	token job.Token
}

func newHistory(t *testing.T, seed uint64, a, b store.Store) *history {
	h := &history{T: t, world: newWorld(seed), a: a, b: b, seed: seed, tally: map[string]int{}}
	h.server.RetainDead = 10 * job.Minute
	return h
}

func (h *history) fail(format string, args ...any) {
	h.Helper()
	h.Fatalf("seed %d: %s\nreplay with -seed %d\n%s",
		h.seed, fmt.Sprintf(format, args...), h.seed, strings.Join(h.lines, "\n"))
}

func (h *history) say(format string, args ...any) {
	h.lines = append(h.lines, fmt.Sprintf("%4d ", len(h.lines))+fmt.Sprintf(format, args...))
}

// recorder remembers what is written, so that it can be written once more.
type recorder struct {
	store.Tx
	writes []func(store.Tx) error
}

func (r *recorder) also(f func(store.Tx) error) error {
	r.writes = append(r.writes, f)
	return f(r.Tx)
}

func (r *recorder) Write(old, new *job.Job) error {
	r.writes = append(r.writes, func(tx store.Tx) error {
		if old == nil {
			return tx.Write(nil, new)
		}
		own, err := tx.Get(old.ID) // each store gets back what it gave out
		if err != nil {
			return err
		}
		return tx.Write(own, new)
	})
	return r.Tx.Write(old, new)
}

func (r *recorder) PutPayload(ref job.ID, body []byte) error {
	return r.also(func(tx store.Tx) error { return tx.PutPayload(ref, body) })
}

func (r *recorder) AppendPayload(ref job.ID, more []byte) error {
	return r.also(func(tx store.Tx) error { return tx.AppendPayload(ref, more) })
}

func (r *recorder) PutFailure(id job.ID, f *job.Failure) error {
	return r.also(func(tx store.Tx) error { return tx.PutFailure(id, f) })
}

func (r *recorder) DropFailure(id job.ID, number uint32) error {
	return r.also(func(tx store.Tx) error { return tx.DropFailure(id, number) })
}

func (r *recorder) Set(row job.Row) error {
	return r.also(func(tx store.Tx) error { return tx.Set(row) })
}

func (r *recorder) Unset(t job.Table, key string) error {
	return r.also(func(tx store.Tx) error { return tx.Unset(t, key) })
}

// step is one transaction on both stores.
func (h *history) step() {
	h.Helper()
	h.now += h.pause()
	durable, aborted, look := h.rng.IntN(3) > 0, h.rng.IntN(12) == 0, h.rng.IntN(3) == 0
	count, line := 1+h.rng.IntN(5)*h.rng.IntN(2), len(h.lines)
	var rec *recorder
	var q questions
	var insideA, insideB []answer
	happen := func(tx store.Tx) error {
		h.lines = h.lines[:line] // a transaction may run twice
		rec = &recorder{Tx: tx}
		if durable {
			tx.Durable()
		}
		for range count {
			if err := h.operate(rec); err != nil {
				return err
			}
		}
		if aborted {
			h.say("abort")
		}
		q = h.questions()
		return inside(tx, q, &insideA, look, aborted)
	}
	again := func(tx store.Tx) error {
		if durable {
			tx.Durable()
		}
		for _, f := range rec.writes {
			if err := f(tx); err != nil {
				return err
			}
		}
		return inside(tx, q, &insideB, look, aborted)
	}
	h.run(h.a, happen, aborted)
	h.run(h.b, again, aborted)
	h.same("inside the transaction", insideA, insideB)
	if durable && !aborted && h.rng.IntN(10) == 0 {
		h.reopen()
	}
	h.compare(q)
}

// inside asks a transaction that is about to end.
func inside(tx store.Tx, q questions, into *[]answer, look, aborted bool) (err error) {
	if look {
		*into, err = q.ask(tx)
	}
	if err == nil && aborted {
		err = errAborted
	}
	return err
}

func (h *history) run(s store.Store, fn func(store.Tx) error, aborted bool) {
	h.Helper()
	c, err := s.Update(h.Context(), fn)
	if aborted && errors.Is(err, errAborted) {
		return
	}
	if err == nil && aborted {
		err = errors.New("the error of the transaction was swallowed")
	}
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		h.fail("%T: %v", s, err)
	}
}

// reopen loads both stores again, after everything was made durable: the last
// transaction was durable, and so all before it.
func (h *history) reopen() {
	h.Helper()
	h.say("reopen")
	for _, s := range []store.Store{h.a, h.b} {
		h.run(s, func(tx store.Tx) error {
			tx.Durable()
			return tx.Set(&job.Reserve{Name: "fence", Next: int64(len(h.lines))})
		}, false)
		if err := s.Reopen(h.Context()); err != nil {
			h.fail("reopening %T: %v", s, err)
		}
	}
}

func (h *history) same(when string, a, b []answer) {
	h.Helper()
	if x, y, differs := difference(a, b); differs {
		h.fail("%s the stores do not agree: %s\n%T: %s\n%T: %s", when, apart(x.got, y.got), h.a, x, h.b, y)
	}
}

// compare asks both stores what a reader can tell, and for payloads.
func (h *history) compare(q questions) {
	h.Helper()
	lists := [2][]answer{}
	for i, s := range []store.Store{h.a, h.b} {
		peeked := map[job.ID][]byte{}
		err := s.View(h.Context(), func(r store.Reader) (err error) {
			for _, id := range q.ids {
				peeked[id] = r.Peek(id)
			}
			lists[i], err = q.ask(r)
			return err
		})
		if err != nil {
			h.fail("%T: %v", s, err)
		}
		bodies, err := s.Payloads(q.ids...)
		if err != nil || len(bodies) != len(q.ids) {
			h.fail("%T: %d payloads of %d: %v", s, len(bodies), len(q.ids), err)
		}
		for at, id := range q.ids {
			body := bodies[at]
			if peeked[id] != nil && !bytes.Equal(body, peeked[id]) {
				h.fail("%T: payload %s: Peek says %q, Payload says %q", s, id, peeked[id], body)
			}
			lists[i] = append(lists[i], answer{"Payload", []any{id}, string(body)})
			lists[i] = append(lists[i], answer{"Payload is there", []any{id}, body != nil})
		}
	}
	h.same("after the transaction", lists[0], lists[1])
}

// questions draws what is asked after a step: all there is in short, and some
// of it in every way.
func (h *history) questions() questions {
	q := questions{
		now: h.now, queues: append([]string{"unheard of"}, queueNames...), groups: groupNames, holders: holderNames,
		sizes: []int{0, 1, 2 + h.rng.IntN(5), pageMax}, filters: []store.Filter{{}},
	}
	for range 8 {
		if n := len(h.ids); n > 0 {
			q.ids = append(q.ids, h.ids[n-1-h.rng.IntN(min(n, 100))])
		}
		if n := len(h.keys); n > 0 {
			q.keys = append(q.keys, h.keys[h.rng.IntN(n)])
		}
	}
	h.rng.Shuffle(len(q.queues), func(i, j int) { q.queues[i], q.queues[j] = q.queues[j], q.queues[i] })
	for range 4 {
		q.filters = append(q.filters, q.randomFilter(h.rng, typeNames))
	}
	q.seekers = []rule.Seeker{{Holder: "stranger"}, h.seeker()}
	return q
}

// pause is how much time passes before a step.
func (h *history) pause() job.Millis {
	switch h.rng.IntN(40) {
	case 0:
		return job.Millis(h.rng.Int64N(int64(job.Hour)))
	case 1, 2, 3:
		return job.Millis(h.rng.Int64N(int64(job.Minute)))
	}
	return job.Millis(h.rng.Int64N(int64(3 * job.Second)))
}
