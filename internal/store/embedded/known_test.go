package embedded

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// TestAPartForgetsOneOfEqualFingerprints: what it holds is a multiset, through
// growing, and through gaps that close across the end of the table.
func TestAPartForgetsOneOfEqualFingerprints(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var p part
	have := map[uint32]int{}
	total := 0
	for step := range 60_000 {
		print := uint32(rng.IntN(40)) * (1<<32/40 + 1) // few homes, many meetings
		if rng.IntN(2) == 0 {
			print = 1<<32 - 1 - uint32(rng.IntN(30)) // at the end of the table
		}
		print = max(print, 1)
		if rng.IntN(100) < 50+step/2000%20-10 {
			p.add(print)
			have[print]++
			total++
		} else if p.drop(print); have[print] > 0 {
			have[print]--
			total--
		}
		if p.count != total || p.has(print) != (have[print] > 0) {
			t.Fatalf("step %d: %d of %d, has %x: %t", step, p.count, total, print, p.has(print))
		}
	}
	for print, n := range have {
		for range n {
			if !p.has(print) {
				t.Fatalf("%x is lost", print)
			}
			p.drop(print)
		}
		if p.has(print) {
			t.Errorf("%x is still there", print)
		}
	}
	if p.count != 0 {
		t.Errorf("%d are left", p.count)
	}
}

func testStore(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(Options{Dir: "data", FS: fs, Now: func() job.Millis { return 1000 }, Cache: 1 << 20, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func testReceipt(family byte, n int) *job.Receipt {
	r := &job.Receipt{Hash: [16]byte{family}, Expires: 5000}
	binary.BigEndian.PutUint64(r.Hash[1:], uint64(n)*0x9e3779b97f4a7c15)
	return r
}

func (s *Store) mustUpdate(t *testing.T, fn func(tx store.Tx) error) {
	t.Helper()
	c, err := s.Update(context.Background(), func(tx store.Tx) error { tx.Durable(); return fn(tx) })
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAFreshKeyIsNotLookedUp: neither in a new directory, nor, once the part of the
// key has been read, in one that was opened again. What is there is never denied.
func TestAFreshKeyIsNotLookedUp(t *testing.T) {
	fs := vfs.NewMem()
	s := testStore(t, fs)
	if !s.known.denies(&[16]byte{9}) {
		t.Error("a new store does not know that it has no receipts")
	}
	s.mustUpdate(t, func(tx store.Tx) error {
		for n := range 2000 {
			if err := tx.Set(testReceipt(byte(n%5), n)); err != nil {
				return err
			}
		}
		return nil
	})
	look := func(when string, fresh bool) {
		t.Helper()
		for n := range 2000 {
			if s.known.denies(&testReceipt(byte(n%5), n).Hash) {
				t.Fatalf("%s, receipt %d is denied", when, n)
			}
		}
		denied := 0
		for n := range 1000 {
			if s.known.denies(&testReceipt(byte(n%5), 10_000+n).Hash) {
				denied++
			}
		}
		if fresh && denied < 999 || !fresh && denied > 0 {
			t.Errorf("%s, %d of 1,000 fresh ones are denied", when, denied)
		}
	}
	look("at first", true)
	if err := s.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	look("opened again", false)
	s.mustUpdate(t, func(tx store.Tx) error {
		for family := range byte(5) {
			if row, err := tx.Row(job.Receipts, testReceipt(family, 1).Key()); (row != nil) != (family == 1) || err != nil {
				t.Errorf("family %d: %v %v", family, row, err)
			}
		}
		return nil
	})
	look("read", true)
	s.mustUpdate(t, func(tx store.Tx) error { return tx.Unset(job.Receipts, testReceipt(0, 0).Key()) })
	if !s.known.denies(&testReceipt(0, 0).Hash) {
		t.Error("one that is gone is not forgotten")
	}
	_, _ = s.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.Unset(job.Receipts, testReceipt(1, 1).Key()); err != nil {
			t.Error(err)
		}
		return context.Canceled
	})
	if s.known.denies(&testReceipt(1, 1).Hash) {
		t.Error("an aborted transaction made a receipt unknown")
	}
}

// TestAPartThatIsTooLargeIsLookedUp, and is read again once much of it is gone.
func TestAPartThatIsTooLargeIsLookedUp(t *testing.T) {
	defer func(was int) { partMax = was }(partMax)
	partMax = 1 << 10
	s, more := testStore(t, vfs.NewMem()), partMax+10
	write := func(f func(tx store.Tx, r *job.Receipt) error, from, to int) {
		for from < to {
			s.mustUpdate(t, func(tx store.Tx) error {
				for end := min(from+4096, to); from < end; from++ {
					if err := f(tx, testReceipt(7, from)); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	set := func(tx store.Tx, r *job.Receipt) error { return tx.Set(r) }
	unset := func(tx store.Tx, r *job.Receipt) error { return tx.Unset(job.Receipts, r.Key()) }
	fresh := testReceipt(7, 1<<30)
	ask := func() {
		for range 4 { // transactions read a part each
			s.mustUpdate(t, func(tx store.Tx) error {
				row, err := tx.Row(job.Receipts, fresh.Key())
				if row != nil {
					t.Error("a fresh one is there")
				}
				return err
			})
		}
	}
	write(set, 0, more)
	if p := &s.known.parts[7]; p.whole || p.slots != nil || s.known.denies(&fresh.Hash) {
		t.Errorf("a part of %d is kept: %d", more, p.count)
	}
	if ask(); s.known.denies(&fresh.Hash) {
		t.Error("it is read again though it is as large as it was")
	}
	if err := s.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ask(); s.known.denies(&fresh.Hash) || s.known.parts[7].wait == 0 {
		t.Error("after a restart, a part that is too large is kept")
	}
	write(unset, 0, more-100)
	if ask(); s.known.denies(&fresh.Hash) {
		t.Error("read again before as many are gone as it could not hold")
	}
	write(set, 0, 200)
	write(unset, 0, 200)
	if ask(); !s.known.denies(&fresh.Hash) || s.known.denies(&testReceipt(7, more-1).Hash) {
		t.Errorf("small again, it is not read: %+v", s.known.parts[7].wait)
	}
}

// TestTimesOfAnEarlierVersion: one entry for each receipt, which names no others.
func TestTimesOfAnEarlierVersion(t *testing.T) {
	fs := vfs.NewMem()
	s := testStore(t, fs)
	db := s.db.Load().db
	for n := range 5 {
		r := testReceipt(byte(n), n)
		r.Expires = job.Millis(5000 + n/2)
		value, err := appendRow(nil, r)
		if err == nil {
			err = db.Set(rowKey(nil, job.Receipts, r.Key()), value, pebble.Sync)
		}
		if err == nil {
			err = db.Set(receiptAtKey(nil, r.Expires, r.Hash[:]), nil, pebble.Sync)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	var gone []job.Millis
	for range 3 {
		s.mustUpdate(t, func(tx store.Tx) error {
			list, err := tx.DueRows(job.Receipts, tx.NextRow(job.Receipts), 9)
			for _, row := range list {
				gone = append(gone, row.Due())
				if err := tx.Unset(job.Receipts, row.Key()); err != nil {
					return err
				}
			}
			return err
		})
	}
	if len(gone) != 5 || gone[0] != 5000 || gone[4] != 5002 || s.rows.receiptDue != 0 {
		t.Errorf("due at %v, then at %d", gone, s.rows.receiptDue)
	}
	left := 0
	for _, kind := range []byte{keyReceiptAt, keyRow} {
		if err := s.db.Load().scan([]byte{kind}, []byte{kind + 1}, func(_, _ []byte) error { left++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if left != 0 {
		t.Errorf("%d entries are left on disk", left)
	}
}
