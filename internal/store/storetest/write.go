package storetest

import (
	"errors"
	"reflect"
	"strings"
	"sync"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var writes = []subject{
	{"every field of a job comes back", everyField},
	{"what does not exist is nil and no error", nothingThere},
	{"an aborted transaction leaves nothing", aborted},
	{"a transaction that panics leaves nothing", panicked},
	{"a transaction sees its own writes", ownWrites},
	{"an old that is not what the store holds is refused", wrongOld},
	{"a job that was read stays as it was", readersCopy},
	{"transactions come one after the other", oneAfterTheOther},
	{"many may read while one writes", manyReaders},
	{"time never goes back and stands still inside a transaction", timeStands},
}

// fullJobs set every field between them.
func fullJobs(w *world) []*job.Job {
	leased := &job.Job{
		ID: w.id(), Queue: "queue", Type: "type", Group: "group", Order: job.OrderStart,
		Priority: 65535, Band: job.BandFront, Seq: -7, State: job.Leased, Park: "needs/x", Isolated: true,
		Created: 11, ReadyAt: 12, ExpiresAt: 13, DequeuedAt: 14, FailedAt: 15, CompletedAt: 16,
		RevivedAt: 18, GraceUntil: job.MaxMillis, RunTimeout: 20, StartTimeout: 21,
		Attempts: 1 << 31, Losses: 2, Evictions: 3, Reschedules: 4, Deliveries: 5, Suppressed: 6, Overrides: 7, Failures: 8, Releases: 9,
		Ranked: true, Rank: -40, LastDelay: 22, Wait: job.Wait{By: job.WaitHold, Rule: 32}, Door: job.DoorStream, Copies: 2, CopiesWanted: 255,
		Retry: &job.Retry{
			Limit: job.LimitOf(0), MaxAge: 23, Place: job.PlaceFront, LossLimit: job.Unlimited(),
			Curve: &job.Curve{Kind: job.CurveList, Delays: []job.Millis{1, 2}, Jitter: job.Jitter{Kind: job.JitterPercent, Percent: 12.5}},
			Rules: &job.Rules{{When: job.When{Message: "x", Status: []job.Range{{Lo: 500, Hi: 599}}}, Do: job.DoRelease, Delay: 1}},
		},
		RetainDone: 0, RetainDead: 24, Requires: []job.Requirement{{Property: "cpu", Op: ">=", Value: "2"}, {Property: "os", Op: "=", Value: ""}},
		Extras: &job.Extras{
			Labels: []job.Label{{Key: "", Value: "x"}, {Key: "k", Value: ""}}, Traceparent: "t",
			Progress: &job.RunProgress{Fraction: 0.25, Text: "u", At: 34, Checkpoint: []byte("{}")},
			Unique:   &job.Unique{Key: "ü", While: job.WhileExists},
			Result:   &job.Result{Ref: w.id(), Size: 2},
			Budgets:  []job.BudgetUse{{Key: "b/1", Cost: 1_000_000}, {Key: "ü", Cost: 1}},
			Attempts: []job.Attempt{
				{
					Number: 1 << 31, Token: 1 << 63, Holder: "e/ü", Host: "h", Copy: true, Committed: true, Since: 40, Started: 41, Ended: 42,
					Why: job.AttemptCancelled, Charged: job.ChargedEviction, Failure: 7,
				},
				{Number: 1, Since: 9, Ended: 8},
			},
		},
		Leases: []job.Lease{
			{Token: w.token(), Holder: "h\x00 1", Kind: job.Unary, Since: 25, Started: 26, Until: 27, Length: 31, RunEnd: 28, StartBy: 29, Turn: 30, Exclusive: true},
			{Token: w.token(), Holder: "h2"},
			{Token: w.token(), Holder: "h3", Host: "ü", Exclusive: true},
			{Token: w.token(), Holder: "h4", Host: "x", AnyHost: true, Copy: true, Commits: true, Number: 1 << 31},
		},
		Ended: []job.Ended{{Hash: 1 << 63, How: job.BySupersede, Turn: 31}, {Hash: 2}},
	}
	dead := &job.Job{
		ID: w.id(), Queue: "ü", Type: "", Band: job.BandNormal, State: job.Dead, Reason: job.Evicted, BlocksGroup: true, Group: "g", PurgeAt: 17,
		Print: 1<<63 + 5, DiedAt: 32, Replays: 33,
		RetainDone: job.Unset, RetainDead: 0, Payload: w.id(), PayloadSize: 2, HoldsKey: true, FailedBesideCopy: true, Finished: -34,
		Extras: &job.Extras{Narrow: true, Batch: &job.Batch{Key: "k", When: "true", Fold: "$new"}, Result: job.InlineResult([]byte("made"))},
	}
	return []*job.Job{leased, dead}
}

func everyField(x *site) {
	list := fullJobs(x.world)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[job.Job]()) {
		set := false
		for _, j := range list {
			set = set || !reflect.ValueOf(*j).FieldByIndex(f.Index).IsZero()
		}
		if !set {
			x.Errorf("fullJobs leaves the field %s empty", f.Name)
		}
	}
	x.update(func(tx store.Tx) error {
		for _, j := range list {
			if err := tx.Write(nil, j); err != nil {
				return err
			}
		}
		return errors.Join(tx.PutPayload(list[1].Payload, []byte("{}")), tx.PutPayload(list[0].Extras.Result.Ref, []byte("[]")))
	})
	for _, when := range []string{"at once", "after Reopen"} {
		x.view(func(r store.Reader) error {
			for _, j := range list {
				got, err := r.Get(j.ID)
				if err != nil || !reflect.DeepEqual(plain(got), plain(j)) {
					x.Errorf("%s, got and want: %s (%v)", when, apart(plain(got), plain(j)), err)
				}
			}
			return nil
		})
		x.reopen()
	}
}

func nothingThere(x *site) {
	x.put("q", "a")
	x.view(func(r store.Reader) error {
		id := x.id()
		j, err := r.Get(id)
		row, errRow := r.Row(job.Queues, "q")
		list, errList := r.Failures(id, 0, true, 5)
		if j != nil || row != nil || len(list) > 0 || r.Peek(id) != nil || r.Next(rule.HandDue) != 0 || r.NextRow(job.Receipts) != 0 {
			x.Errorf("there is something: %v %v %v", j, row, list)
		}
		return errors.Join(err, errRow, errList)
	})
	if body, err := store.Payload(x.s, x.id()); body != nil || err != nil {
		x.Errorf("a payload that is gone: got %q, %v", body, err)
	}
}

// meddle writes something of every kind.
func meddle(x *site, tx store.Tx) error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	j, err := x.world.put(tx, x.newJob("q", "new", payload(x.id(), 3)))
	note(err)
	note(tx.PutPayload(j.Payload, []byte("abc")))
	list, err := tx.List(store.Filter{}, 100)
	note(err)
	for i, j := range list {
		switch {
		case i == 0:
			note(tx.Write(j, nil))
		case j.State == job.Ready:
			_, err = x.step(tx, j.ID, rule.Command{Verb: rule.Take, Lease: &job.Lease{Token: x.token(), Holder: "meddler"}})
			note(err)
		}
	}
	note(tx.PutFailure(j.ID, &job.Failure{Number: 1}))
	q := job.NewQueue("q")
	q.Paused = true
	note(tx.Set(q))
	note(tx.Set(&job.Receipt{Expires: 5}))
	note(tx.Unset(job.Reserves, "seq"))
	return errors.Join(errs...)
}

// furnish fills a store with a bit of everything.
func furnish(x *site) {
	first := x.newJob("q", "first", payload(x.id(), 5))
	x.update(func(tx store.Tx) error {
		_, err := x.world.put(tx, first)
		return errors.Join(err, tx.PutPayload(first.New.Payload, []byte("first")))
	})
	x.put("q", "grouped", group("g"))
	x.put("q", "later", readyAt(x.now+1000))
	failed := x.take(x.put("q", "failed"), "h")
	x.do(failed, rule.Command{Verb: rule.SettleRetry, Token: failed.Leases[0].Token, Failure: job.Failure{Message: "oh"}})
	x.take(x.put("q", "taken"), "h")
	x.settle(x.take(x.put("q", "done", kept(job.Hour, job.Unset)), "h"), rule.SettleOK)
	x.set(&job.Reserve{Name: "seq", Next: 100}, &job.Receipt{Hash: [16]byte{9}, Expires: 99}, &job.Gate{Queue: "q", Group: "g", Turn: 3})
}

// digest asks everything there is to ask.
func (x *site) digest() []answer {
	x.Helper()
	var list []answer
	x.view(func(r store.Reader) error {
		q, err := everything(r, x.now)
		if err != nil {
			return err
		}
		q.keys = []string{"q", "seq"}
		list, err = q.ask(r)
		return err
	})
	return list
}

// unchanged expects that nothing that can be asked has another answer.
func (x *site) unchanged(before []answer) {
	x.Helper()
	if a, b, differs := difference(before, x.digest()); differs {
		x.Errorf("it changed: %s\nbefore: %s\nafter: %s", apart(a.got, b.got), a, b)
	}
}

func aborted(x *site) {
	furnish(x)
	before := x.digest()
	boom := errors.New("boom")
	err := write(x, func(tx store.Tx) error { return errors.Join(meddle(x, tx), boom) })
	if !errors.Is(err, boom) || strings.Contains(err.Error(), "\n") {
		x.Errorf("Update: got %v, want only the error of the transaction", err)
	}
	x.unchanged(before)
	x.put("q", "and it goes on")
}

func panicked(x *site) {
	furnish(x)
	before := x.digest()
	func() {
		defer func() {
			if recover() == nil {
				x.Error("the panic was swallowed")
			}
		}()
		_ = write(x, func(tx store.Tx) error {
			if err := meddle(x, tx); err != nil {
				return err
			}
			panic("boom")
		})
	}()
	x.unchanged(before)
	x.put("q", "and it goes on")
}

func ownWrites(x *site) {
	a := x.put("q", "a")
	x.update(func(tx store.Tx) error {
		b, err := x.world.put(tx, x.newJob("q2", "b", payload(x.id(), 1), readyAt(x.now+5)))
		if err != nil {
			return err
		}
		errs := errors.Join(tx.PutPayload(b.Payload, []byte("x")), tx.Write(a, nil), tx.Set(&job.Reserve{Name: "seq", Next: 5}))
		b.Failures = 1
		stored, err := tx.Get(b.ID)
		errs = errors.Join(errs, err, tx.Write(stored, b), tx.PutFailure(b.ID, &job.Failure{Number: 1, Message: "m"}))
		gone, err := tx.Get(a.ID)
		errs = errors.Join(errs, err)
		list, err := tx.List(store.Filter{}, 10)
		errs = errors.Join(errs, err)
		due, err := tx.IDs(store.Due(rule.HandDue, x.now+5), 10)
		errs = errors.Join(errs, err)
		queues, err := tx.Names()
		errs = errors.Join(errs, err)
		fails, err := tx.Failures(b.ID, 0, false, 10)
		errs = errors.Join(errs, err)
		row, err := tx.Row(job.Reserves, "seq")
		errs = errors.Join(errs, err)
		last, err := store.MaxID(tx)
		errs = errors.Join(errs, err)
		if gone != nil || names(list) != "b" || len(due) != 1 || len(queues) != 1 || len(fails) != 1 || row == nil ||
			last != b.ID || tx.Depth("q2").States[job.Scheduled] != 1 || tx.Next(rule.HandDue) != x.now+5 {
			x.Errorf("not seen: %v %v %v %v %v %v", gone, names(list), due, queues, fails, row)
		}
		return errors.Join(errs, err)
	})
}

func wrongOld(x *site) {
	a := x.put("q", "a")
	b := x.take(a, "h")
	never := x.newJob("q", "never").New
	changed := b.Clone()
	changed.Priority++
	for name, w := range map[string][2]*job.Job{
		"nil for a job that exists":         {nil, changed},
		"a job that does not exist":         {never, never},
		"a job that does not exist, gone":   {never, nil},
		"the job as it was before the take": {a, changed},
		"another job":                       {b, never},
		"nothing for nothing":               {nil, nil},
	} {
		before := x.digest()
		if err := write(x, func(tx store.Tx) error { return tx.Write(w[0], w[1]) }); err == nil {
			x.Errorf("%s: accepted", name)
		}
		x.unchanged(before)
	}
}

func readersCopy(x *site) {
	a := x.put("q", "a")
	var read *job.Job
	x.view(func(r store.Reader) (err error) {
		read, err = r.Get(a.ID)
		return err
	})
	x.settle(x.take(a, "h"), rule.SettleRetry)
	if read.State != job.Ready || len(read.Leases) != 0 || read.Attempts != 0 {
		x.Errorf("a later transaction changed it to %s", show(read))
	}
}

// oneAfterTheOther: two rows are always written together, so nobody may ever
// see them apart, and no increment may get lost.
func oneAfterTheOther(x *site) {
	const writers, turns = 4, 25
	var all sync.WaitGroup
	both := func(r store.Reader) (n int64, err error) {
		left, err := r.Row(job.Reserves, "left")
		right, errRight := r.Row(job.Reserves, "right")
		if l, ok := left.(*job.Reserve); ok {
			n = l.Next
		}
		if r, ok := right.(*job.Reserve); ok != (left != nil) || ok && r.Next != n {
			x.Errorf("left and right differ: %v %v", left, right)
		}
		return n, errors.Join(err, errRight)
	}
	for range writers {
		all.Go(func() {
			for range turns {
				err := write(x, func(tx store.Tx) error {
					n, err := both(tx)
					return errors.Join(err, tx.Set(&job.Reserve{Name: "left", Next: n + 1}), tx.Set(&job.Reserve{Name: "right", Next: n + 1}))
				})
				err = errors.Join(err, x.s.View(x.Context(), func(r store.Reader) error {
					_, err := both(r)
					return err
				}))
				if err != nil {
					x.Error(err)
				}
			}
		})
	}
	all.Wait()
	x.view(func(r store.Reader) error {
		if n, _ := both(r); n != writers*turns {
			x.Errorf("%d increments of %d were kept", n, writers*turns)
		}
		return nil
	})
}

// manyReaders is for the race detector: readers share the store, not more.
func manyReaders(x *site) {
	const readers, turns = 3, 5
	furnish(x)
	want, all := x.digest(), sync.WaitGroup{}
	for range readers {
		all.Go(func() {
			for range turns {
				var got []answer
				err := x.s.View(x.Context(), func(r store.Reader) error {
					q, err := everything(r, x.now)
					if err != nil {
						return err
					}
					q.keys = []string{"q", "seq"}
					got, err = q.ask(r)
					return err
				})
				if err != nil {
					x.Error(err)
				}
				if a, b, differs := difference(want, got); differs {
					x.Errorf("a reader beside others: got %s, want %s", b, a)
				}
			}
		})
	}
	all.Go(func() {
		boom := errors.New("boom")
		for range turns {
			if err := write(x, func(tx store.Tx) error { return errors.Join(meddle(x, tx), boom) }); !errors.Is(err, boom) {
				x.Error(err)
			}
		}
	})
	all.Wait()
	x.unchanged(want)
}

func timeStands(x *site) {
	var last job.Millis
	look := func(r store.Reader) error {
		if a, b := r.Now(), r.Now(); a != b || a < last || a == 0 {
			x.Errorf("it was %d, then %d, then %d", last, a, b)
		}
		last = r.Now()
		return nil
	}
	for range 50 {
		x.update(func(tx store.Tx) error { return look(tx) })
		x.view(look)
	}
}
