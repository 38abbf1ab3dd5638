package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var rows = []subject{
	{"of every table come back as they were set", rowsComeBack},
	{"page by key", rowPages},
	{"are due soonest first, ties by key", rowsDue},
}

var payloads = []subject{
	{"live as long as some job refers to them", payloadLife},
	{"that are empty are not gone", emptyPayload},
	{"go over to another job in one transaction", payloadPassedOn},
	{"that no job refers to are not kept", payloadOfNobody},
	{"are replaced by an edit", payloadEdited},
}

var failures = []subject{
	{"come from both ends, paged", failurePages},
	{"go with their job", failuresGo},
}

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

func fullRows() []job.Row {
	return []job.Row{
		&job.Queue{
			Name: "q", Order: job.OrderStart, Concurrency: 3, OnDead: job.DeadPark, FrontOrder: job.FrontLIFO,
			Paused: true, HoldUntil: 11, LateOKNever: true, RequireToken: true, NonIdempotent: true,
			Retry: job.Retry{
				Limit: job.Unlimited(), MaxAge: 12, Place: job.PlaceBack, LossLimit: job.LimitOf(4),
				Curve: &job.Curve{Kind: job.CurveExponential, Unit: 1, Factor: 2.5, Offset: 3, Cap: 4, Jitter: job.Jitter{Kind: job.JitterDecorrelated}},
			},
			MaxJobs: 13, MaxBytes: 14, OnFull: job.FullDropOldest, RunTimeout: 15, StartTimeout: 16,
			RetainDone: 17, RetainDead: 18,
		},
		&job.Queue{Name: "ü", RetainDone: job.Unset, Retry: job.Retry{Limit: job.LimitOf(0)}},
		&job.Gate{Queue: "q", Group: "g", Hold: 21, Park: "breaker", Turn: 22, LastSeq: -23},
		&job.Holder{Name: "h", Kind: job.Unary, Until: 31, Properties: map[string]string{"os": "linux", "": ""}},
		&job.Holder{Name: "h2", Kind: job.Named},
		&job.Receipt{Hash: [16]byte{1, 0, 255}, Content: [16]byte{2}, Job: job.ID{3}, Expires: 41},
		&job.Receipt{Hash: [16]byte{1, 0, 254}},
		&job.Reserve{Name: "seq", Next: -1},
	}
}

func rowsComeBack(x *site) {
	list := fullRows()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[job.Queue]()) {
		if reflect.ValueOf(list[0]).Elem().FieldByIndex(f.Index).IsZero() {
			x.Errorf("fullRows leaves the field %s empty", f.Name)
		}
	}
	x.set(list...)
	for _, when := range []string{"at once", "after Reopen"} {
		x.view(func(r store.Reader) error {
			for _, row := range list {
				got, err := r.Row(row.Table(), row.Key())
				if err != nil || !reflect.DeepEqual(got, row) {
					x.Errorf("%s, got and want: %s (%v)", when, apart(got, row), err)
				}
			}
			return nil
		})
		x.reopen()
	}
	x.update(func(tx store.Tx) error {
		var errs []error
		for _, row := range list {
			errs = append(errs, tx.Unset(row.Table(), row.Key()), tx.Unset(row.Table(), "unheard of"))
		}
		return errors.Join(errs...)
	})
	for t := range job.Tables {
		x.expect("unset", x.keys(func(r store.Reader) ([]job.Row, error) { return r.Rows(t, "", 9) }), "")
	}
}

func (x *site) keys(ask func(r store.Reader) ([]job.Row, error)) string {
	x.Helper()
	var keys []string
	x.view(func(r store.Reader) error {
		list, err := ask(r)
		keys = nil
		for _, row := range list {
			keys = append(keys, strings.TrimRight(row.Key(), "\x00"))
		}
		return err
	})
	return strings.Join(keys, " ")
}

// rowOf makes a small row of a table; the key of a receipt is a hash.
func rowOf(t job.Table, key string, due job.Millis) job.Row {
	switch t {
	case job.Queues:
		q := job.NewQueue(key)
		q.HoldUntil = due
		return q
	case job.Gates:
		return &job.Gate{Queue: key, Hold: due, Turn: 1}
	case job.Holders:
		return &job.Holder{Name: key, Until: due}
	case job.Receipts:
		r := &job.Receipt{Expires: due}
		copy(r.Hash[:], key)
		return r
	case job.Reserves, job.Tables:
	}
	return &job.Reserve{Name: key}
}

func rowPages(x *site) {
	for t := range job.Tables {
		for _, key := range []string{"b", "d", "a", "c"} {
			x.set(rowOf(t, key, 0))
		}
		for _, c := range []struct {
			after string
			n     int
			want  string
		}{{"", 9, "a b c d"}, {"", 2, "a b"}, {"", 0, ""}, {"b", 9, "c d"}, {"bb", 1, "c"}, {"d", 9, ""}} {
			after := c.after
			if len(after) == 1 {
				after = rowOf(t, after, 0).Key()
			}
			x.expect(fmt.Sprint("table ", t, " after ", c.after),
				x.keys(func(r store.Reader) ([]job.Row, error) { return r.Rows(t, after, c.n) }), c.want)
		}
	}
}

func rowsDue(x *site) {
	for t := range job.Tables {
		if t == job.Reserves {
			continue // never due
		}
		due := func(until job.Millis, n int) string {
			return x.keys(func(r store.Reader) ([]job.Row, error) { return r.DueRows(t, until, n) })
		}
		next := func(want job.Millis) {
			x.Helper()
			x.view(func(r store.Reader) error {
				if got := r.NextRow(t); got != want {
					x.Errorf("table %d: the next is due at %d, want %d", t, got, want)
				}
				return nil
			})
		}
		x.set(rowOf(t, "d", 30), rowOf(t, "c", 20), rowOf(t, "b", 20), rowOf(t, "a", 10), rowOf(t, "never", 0))
		x.expect("before all", due(9, 9), "")
		x.expect("some", due(20, 9), "a b c")
		x.expect("two", due(job.MaxMillis, 2), "a b")
		x.set(rowOf(t, "a", 40))
		x.expect("later now", due(job.MaxMillis, 9), "b c d a")
		next(20)
		x.reopen()
		x.expect("reopened", due(job.MaxMillis, 9), "b c d a")
		next(20)
		for _, key := range []string{"b", "c"} {
			x.update(func(tx store.Tx) error { return tx.Unset(t, rowOf(t, key, 0).Key()) })
		}
		x.expect("some unset", due(job.MaxMillis, 9), "d a")
		next(30)
		x.set(rowOf(t, "d", 0), rowOf(t, "a", 0))
		x.expect("never due", due(job.MaxMillis, 9), "")
		next(0)
	}
}

// body expects what is kept under a ref; "" = nothing.
func (x *site) body(when string, ref job.ID, want string) {
	x.Helper()
	body, err := store.Payload(x.s, ref)
	if err != nil || string(body) != want || (body == nil) != (want == "") {
		x.Errorf("%s: got %q (%v), want %q", when, body, err, want)
	}
	x.view(func(r store.Reader) error {
		if peeked := r.Peek(ref); peeked != nil && string(peeked) != want {
			x.Errorf("%s: Peek says %q, want %q or nothing", when, peeked, want)
		}
		return nil
	})
}

// putWith brings a job in with a payload that is new.
func (x *site) putWith(name, body string, own bool) *job.Job {
	x.Helper()
	c := x.newJob("q", name)
	c.New.Payload, c.New.PayloadSize = c.New.ID, uint32(len(body))
	if !own {
		c.New.Payload = x.id()
	}
	var j *job.Job
	x.update(func(tx store.Tx) (err error) {
		j, err = x.world.put(tx, c)
		return errors.Join(err, tx.PutPayload(c.New.Payload, []byte(body)))
	})
	return j
}

// end makes a job go away.
func (x *site) end(j *job.Job) {
	x.Helper()
	x.settle(x.take(j, "h"), rule.SettleOK)
}

func payloadLife(x *site) {
	for _, own := range []bool{true, false} { // under the id of its job or not
		a := x.putWith("a", "hello", own)
		b := x.put("q", "b", payload(a.Payload, 5))
		c := x.put("q", "c", payload(a.Payload, 5), kept(job.Unset, job.Hour))
		x.end(a)
		x.body("shared by two more", a.Payload, "hello")
		x.reopen()
		x.body("reopened", a.Payload, "hello")
		x.end(b)
		x.do(c, rule.Command{Verb: rule.Cancel})
		x.body("kept by a dead job", a.Payload, "hello")
		x.do(c, rule.Command{Verb: rule.Purge})
		x.body("nobody refers to it", a.Payload, "")
	}
}

func emptyPayload(x *site) {
	a := x.putWith("a", "", true)
	for range 2 {
		body, err := store.Payload(x.s, a.Payload)
		if body == nil || len(body) > 0 || err != nil {
			x.Errorf("got %v, %v", body, err)
		}
		x.reopen()
	}
}

func payloadPassedOn(x *site) {
	for _, own := range []bool{true, false} {
		a := x.putWith("a", "hello", own)
		var b *job.Job
		x.update(func(tx store.Tx) (err error) {
			if err = tx.Write(a, nil); err == nil {
				b, err = x.world.put(tx, x.newJob("q", "b", payload(a.Payload, 5)))
			}
			return err
		})
		x.body("passed on", a.Payload, "hello")
		x.end(b)
		x.body("gone", a.Payload, "")
	}
	c := x.newJob("q", "c", payload(x.id(), 1))
	x.update(func(tx store.Tx) error {
		j, err := x.world.put(tx, c)
		return errors.Join(err, tx.PutPayload(j.Payload, []byte("x")), tx.Write(j, nil))
	})
	x.body("came and went", c.New.Payload, "")
}

func payloadOfNobody(x *site) {
	ref := x.id()
	_ = write(x, func(tx store.Tx) error { return tx.PutPayload(ref, []byte("x")) }) // may be refused
	x.body("an orphan", ref, "")
}

func payloadEdited(x *site) {
	a := x.putWith("a", "old", true)
	ref := x.id()
	x.update(func(tx store.Tx) error {
		old, err := tx.Get(a.ID)
		if err != nil {
			return err
		}
		edited := old.Clone()
		edited.Payload, edited.PayloadSize = ref, 5
		return errors.Join(tx.PutPayload(ref, []byte("newer")), tx.Write(old, edited))
	})
	x.body("old", a.Payload, "")
	x.body("new", ref, "newer")
	x.reopen()
	x.end(a)
	x.body("gone", ref, "")
}

// failed makes a job fail n times.
func (x *site) failed(name string, n int) *job.Job {
	x.Helper()
	a := x.put("q", name, kept(job.Unset, job.Hour), edit(func(j *job.Job) { j.Retry = &job.Retry{Limit: job.Unlimited()} }))
	x.update(func(tx store.Tx) error {
		for range n {
			t := x.token()
			_, err := x.step(tx, a.ID, rule.Command{Verb: rule.Take, Lease: &job.Lease{Token: t, Holder: "h"}})
			if err != nil {
				return err
			}
			f := job.Failure{Type: "E", Message: "broken", Backtrace: "at\nline", Status: 503}
			if _, err = x.step(tx, a.ID, rule.Command{Verb: rule.SettleRetry, Token: t, Failure: f}); err != nil {
				return err
			}
			if _, err = x.step(tx, a.ID, rule.Command{Verb: rule.Revive}); err != nil {
				return err
			}
		}
		return nil
	})
	return a
}

// numbers returns the numbers of failure records.
func (x *site) numbers(id job.ID, from uint32, desc bool, n int) string {
	x.Helper()
	var numbers []string
	x.view(func(r store.Reader) error {
		list, err := r.Failures(id, from, desc, n)
		for _, f := range list {
			numbers = append(numbers, fmt.Sprint(f.Number))
			if f.Message != "broken" || f.Backtrace != "at\nline" || f.Status != 503 || f.Holder != "h" || f.Failed != x.now || f.Started != x.now || f.Type != "E" {
				x.Errorf("not what was put: %+v", f)
			}
		}
		return err
	})
	return strings.Join(numbers, " ")
}

func failurePages(x *site) {
	a := x.failed("a", 4)
	x.failed("b", 2)
	x.update(func(tx store.Tx) error {
		return errors.Join(tx.DropFailure(a.ID, 2), tx.DropFailure(a.ID, 77))
	})
	for range 2 {
		for _, c := range []struct {
			from uint32
			desc bool
			n    int
			want string
		}{
			{0, false, 9, "1 3 4"}, {0, true, 9, "4 3 1"}, {0, false, 1, "1"}, {0, true, 2, "4 3"}, {0, true, 0, ""},
			{1, false, 9, "3 4"}, {2, false, 9, "3 4"}, {4, false, 9, ""}, {3, true, 9, "1"}, {2, true, 9, "1"}, {1, true, 9, ""}, {99, true, 1, "4"},
		} {
			x.expect(fmt.Sprintf("%+v", c), x.numbers(a.ID, c.from, c.desc, c.n), c.want)
		}
		x.reopen()
	}
}

func failuresGo(x *site) {
	a, b := x.failed("a", 3), x.failed("b", 1)
	x.end(a)
	x.expect("of a job that is gone", x.numbers(a.ID, 0, false, 9), "")
	x.expect("of its neighbour", x.numbers(b.ID, 0, false, 9), "1")
	x.update(func(tx store.Tx) error {
		old, err := tx.Get(b.ID)
		return errors.Join(err, tx.PutFailure(b.ID, &job.Failure{Number: 2}), tx.Write(old, nil))
	})
	x.expect("put and gone in one transaction", x.numbers(b.ID, 0, false, 9), "")
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
