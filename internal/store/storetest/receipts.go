package storetest

import (
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

var receipts = []subject{
	{"that come together go as their time comes, page by page", receiptsTogether},
	{"of one time come, go and come again without taking others along", receiptsOfOneTime},
	{"are what a map of them would be", receiptsAreAMap},
}

// receiptOf makes a receipt; those of one family have keys that begin alike.
func receiptOf(family byte, n int, due job.Millis) *job.Receipt {
	r := &job.Receipt{Expires: due, Job: job.ID{family, byte(n)}}
	r.Hash = [16]byte{family, byte(n * 37), byte(n), byte(n >> 8), byte(n * 11), 15: byte(n * 101)}
	return r
}

// forgetDue unsets what is due, n at a time, as the clock does, and returns how many
// there were in each page.
func (x *site) forgetDue(until job.Millis, n int) (pages []int) {
	x.Helper()
	for {
		page := 0
		x.update(func(tx store.Tx) error {
			var last job.Row
			page = 0
			if next := tx.NextRow(job.Receipts); next == 0 || next > until {
				return nil
			}
			list, err := tx.DueRows(job.Receipts, until, n)
			page = len(list)
			for _, row := range list {
				if last != nil && (row.Due() < last.Due() || row.Due() == last.Due() && row.Key() <= last.Key()) {
					x.Errorf("%x, due at %d, comes behind %x, due at %d", row.Key(), row.Due(), last.Key(), last.Due())
				}
				last = row
				err = errors.Join(err, tx.Unset(job.Receipts, row.Key()))
			}
			return err
		})
		if page == 0 {
			return pages
		}
		pages = append(pages, page)
	}
}

func (x *site) receiptsLeft(want int, next job.Millis) {
	x.Helper()
	x.view(func(r store.Reader) error {
		list, err := r.Rows(job.Receipts, "", 1<<20)
		if len(list) != want || r.NextRow(job.Receipts) != next {
			x.Errorf("%d receipts, the next is due at %d; want %d and %d", len(list), r.NextRow(job.Receipts), want, next)
		}
		timed := slices.DeleteFunc(list, func(row job.Row) bool { return row.Due() == 0 })
		due, wrong := r.DueRows(job.Receipts, job.MaxMillis, 1<<20)
		if len(due) != len(timed) {
			x.Errorf("%d receipts will be due, and %d are named", len(timed), len(due))
		}
		return errors.Join(err, wrong)
	})
}

func receiptsTogether(x *site) {
	x.update(func(tx store.Tx) error {
		var err error
		for n := range 700 {
			err = errors.Join(err, tx.Set(receiptOf(byte(n), n, 20)))
			if n%7 == 0 {
				err = errors.Join(err, tx.Set(receiptOf(7, 1000+n, 30)))
			}
		}
		return err
	})
	x.set(receiptOf(9, 2000, 20), receiptOf(9, 2001, 10))
	x.receiptsLeft(802, 10)
	x.reopen()
	x.receiptsLeft(802, 10)
	if pages := x.forgetDue(19, 300); !slices.Equal(pages, []int{1}) {
		x.Errorf("%v went before their time", pages)
	}
	x.update(func(tx store.Tx) error { // half a page, in the order they are due
		list, err := tx.DueRows(job.Receipts, 20, 150)
		for _, row := range list {
			err = errors.Join(err, tx.Unset(job.Receipts, row.Key()))
		}
		return err
	})
	x.receiptsLeft(651, 20)
	x.reopen()
	if pages := x.forgetDue(20, 300); !slices.Equal(pages, []int{300, 251}) {
		x.Errorf("the rest went in pages of %v", pages)
	}
	x.receiptsLeft(100, 30)
	if pages := x.forgetDue(job.MaxMillis, 300); !slices.Equal(pages, []int{100}) {
		x.Errorf("the last went in pages of %v", pages)
	}
	x.receiptsLeft(0, 0)
	x.reopen()
	x.receiptsLeft(0, 0)
}

func receiptsOfOneTime(x *site) {
	a, b, c, d := receiptOf(1, 1, 10), receiptOf(1, 2, 10), receiptOf(1, 3, 10), receiptOf(1, 4, 10)
	unset := func(r *job.Receipt) {
		x.update(func(tx store.Tx) error { return tx.Unset(job.Receipts, r.Key()) })
	}
	for _, again := range []func(){func() {}, x.reopen} {
		x.set(a, b)
		unset(a)
		again()
		x.set(a, c)
		again()
		x.receiptsLeft(3, 10)
		unset(a)
		x.set(d)
		again()
		x.receiptsLeft(3, 10)
		x.set(receiptOf(1, 2, 20)) // b has another time now
		again()
		if pages := x.forgetDue(10, 9); !slices.Equal(pages, []int{2}) {
			x.Errorf("%v went", pages)
		}
		x.receiptsLeft(1, 20)
		x.set(b, receiptOf(1, 5, 0)) // and its first one again; the other is never due
		x.receiptsLeft(2, 10)
		again()
		if pages := x.forgetDue(15, 9); !slices.Equal(pages, []int{1}) {
			x.Errorf("%v went", pages)
		}
		x.receiptsLeft(1, 0)
		unset(receiptOf(1, 5, 0))
		again()
	}
}

// receiptsAreAMap lets a random history happen: many of one time, some again, some
// at another time, with transactions that do not commit, and restarts.
func receiptsAreAMap(x *site) {
	rng := rand.New(rand.NewPCG(5, 7))
	have := map[string]*job.Receipt{}
	now := job.Millis(100)
	for range 30 {
		now += job.Millis(rng.IntN(3))
		aborted, clock := rng.IntN(8) == 0, rng.IntN(4) == 0
		count := 1 + rng.IntN(6)
		if rng.IntN(25) == 0 {
			count = 400
		}
		type change struct {
			*job.Receipt
			gone bool
		}
		var changes []change
		for range count {
			r := receiptOf(byte(rng.IntN(3)), rng.IntN(30+count/3), now+job.Millis(rng.IntN(4))*5)
			switch rng.IntN(8) {
			case 0:
				changes = append(changes, change{r, true})
			case 1:
				r.Expires = 0
				fallthrough
			default:
				changes = append(changes, change{r, false})
			}
		}
		var then map[string]*job.Receipt
		err := write(x, func(tx store.Tx) error { // may run twice
			then = maps.Clone(have)
			var err error
			for _, c := range changes {
				if c.gone {
					err, then[c.Key()] = errors.Join(err, tx.Unset(job.Receipts, c.Key())), nil
				} else {
					err, then[c.Key()] = errors.Join(err, tx.Set(c.Receipt)), c.Receipt
				}
			}
			if clock {
				list, wrong := tx.DueRows(job.Receipts, now, 3)
				for _, row := range list {
					wrong, then[row.Key()] = errors.Join(wrong, tx.Unset(job.Receipts, row.Key())), nil
				}
				err = errors.Join(err, wrong)
			}
			x.sameReceipts(tx, then)
			if aborted {
				err = errors.Join(err, errAborted)
			}
			return err
		})
		if !aborted {
			have = then
		}
		if err != nil && (!aborted || !errors.Is(err, errAborted)) {
			x.Fatal(err)
		}
		if rng.IntN(15) == 0 {
			x.reopen()
		}
		x.view(func(r store.Reader) error { x.sameReceipts(r, have); return nil })
		if x.Failed() {
			return
		}
	}
}

// sameReceipts compares what a store says with a map; nil in it is gone.
func (x *site) sameReceipts(r store.Reader, want map[string]*job.Receipt) {
	x.Helper()
	var all, due []*job.Receipt
	for key, w := range want {
		row, err := r.Row(job.Receipts, key)
		got, _ := row.(*job.Receipt)
		if err != nil || (got == nil) != (w == nil) || got != nil && *got != *w {
			x.Errorf("%x: got %v, want %v (%v)", key, got, w, err)
		}
		if w != nil {
			all = append(all, w)
		}
		if w != nil && w.Expires != 0 {
			due = append(due, w)
		}
	}
	byKey := func(a, b *job.Receipt) int { return cmp.Compare(a.Key(), b.Key()) }
	slices.SortFunc(all, byKey)
	slices.SortFunc(due, func(a, b *job.Receipt) int { return cmp.Or(cmp.Compare(a.Expires, b.Expires), byKey(a, b)) })
	same := func(what string, want []*job.Receipt, n int, got []job.Row, err error) {
		x.Helper()
		want = want[:min(n, len(want))]
		if err != nil || !slices.EqualFunc(got, want, func(g job.Row, w *job.Receipt) bool { return *g.(*job.Receipt) == *w }) {
			x.Errorf("%s: %d, not %d, or others (%v)", what, len(got), len(want), err)
		}
	}
	for _, n := range []int{0, 2, 1 << 20} {
		list, err := r.Rows(job.Receipts, "", n)
		same("all", all, n, list, err)
		list, err = r.DueRows(job.Receipts, job.MaxMillis, n)
		same("due", due, n, list, err)
	}
	if len(all) > 1 {
		list, err := r.Rows(job.Receipts, all[0].Key(), 1<<20)
		same("all but one", all[1:], 1<<20, list, err)
	}
	var next job.Millis
	if len(due) > 0 {
		next = due[0].Expires
	}
	if got := r.NextRow(job.Receipts); got != next {
		x.Errorf("the next is due at %d, not %d", got, next)
	}
}
