package embedded

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// Receipts live on disk only: one row each by its hash, and what is due when in
// lists of hashes (keyReceiptAt). A list is written with the receipts that came in
// one transaction and never changed. It may name receipts that are gone, or due at
// another time by now: those do not count, and a list of which none is left goes
// once it is the first.

// receiptKeyLen is the length of the key of a receipt's row.
const receiptKeyLen = 2 + 16

// listMax is how many receipts a list names at most.
const listMax = 256

// errEnough ends a scan that has what it wanted.
var errEnough = errors.New("enough")

// touched is a receipt that a transaction has read or written.
type touched struct {
	hash  [16]byte
	was   *job.Receipt // on disk
	now   *job.Receipt // nil = there is none
	wrote bool
}

// touches are the receipts of a transaction, found by hash.
type touches struct {
	list []touched
	at   []int32 // place in list + 1, by the bytes of the hash; 0 = free
}

func (t *touches) reset() {
	if cap(t.list) > 1<<14 { // of a large transaction
		*t = touches{}
	}
	clear(t.list)
	clear(t.at)
	t.list = t.list[:0]
}

// find returns the receipt, nil if this transaction has not touched it.
func (t *touches) find(hash *[16]byte) *touched {
	if len(t.list) == 0 {
		return nil
	}
	mask := len(t.at) - 1
	for i := int(binary.LittleEndian.Uint32(hash[4:])) & mask; t.at[i] != 0; i = (i + 1) & mask {
		if x := &t.list[t.at[i]-1]; x.hash == *hash {
			return x
		}
	}
	return nil
}

// add takes in a receipt that is not there. The pointer holds until the next one.
func (t *touches) add(x touched) *touched {
	t.list = append(t.list, x)
	if 2*len(t.list) > len(t.at) {
		t.at = make([]int32, max(64, 2*len(t.at)))
		for i := range t.list {
			t.place(i)
		}
	} else {
		t.place(len(t.list) - 1)
	}
	return &t.list[len(t.list)-1]
}

func (t *touches) place(n int) {
	mask := len(t.at) - 1
	i := int(binary.LittleEndian.Uint32(t.list[n].hash[4:])) & mask
	for t.at[i] != 0 {
		i = (i + 1) & mask
	}
	t.at[i] = int32(n) + 1
}

// receipt returns a receipt as the transaction sees it.
func (a *access) receipt(hash *[16]byte) (*job.Receipt, error) {
	if a.writer {
		if x := a.touches.find(hash); x != nil {
			return x.now, nil
		}
		if err := a.s.known.read(a.h, hash); err != nil {
			return nil, err
		}
	}
	var r *job.Receipt
	if !a.s.known.denies(hash) {
		value, err := a.h.get(rowKey(nil, job.Receipts, string(hash[:])))
		if err == nil && value != nil {
			r, err = decodeReceipt(hash, value)
		}
		if a.h.unreadable(err) {
			return nil, &job.Error{Kind: job.Unprocessable, Cause: err, Text: "whether this key was used before cannot be told; use another one"}
		}
		if err != nil {
			return nil, err
		}
	}
	if a.writer { // who asks may write it next
		a.touches.add(touched{hash: *hash, was: r, now: r})
	}
	return r, nil
}

// receiptRow is Row of receipts.
func (a *access) receiptRow(key string) (job.Row, error) {
	if len(key) != 16 {
		return nil, nil
	}
	r, err := a.receipt((*[16]byte)([]byte(key)))
	if r == nil {
		return nil, err
	}
	return r, nil
}

// receiptRows is Rows of receipts.
func (a *access) receiptRows(after string, n int) ([]job.Row, error) {
	if n <= 0 {
		return nil, nil
	}
	var out []job.Row
	own := func(key string) *touched {
		if !a.writer {
			return nil
		}
		return a.touches.find((*[16]byte)([]byte(key)))
	}
	lo := rowKey(nil, job.Receipts, after)
	if after != "" {
		lo = append(lo, 0)
	}
	_, err := a.h.scanAround(lo, rowKey(nil, job.Receipts+1, ""), func(key, value []byte) error {
		if len(key) != receiptKeyLen {
			return corrupt("the key of a receipt is damaged")
		}
		if x := own(string(key[2:])); x != nil && x.wrote {
			return nil
		}
		row, err := decodeRow(job.Receipts, string(key[2:]), value)
		if out = append(out, row); err == nil && len(out) == n {
			err = errEnough
		}
		return err
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if a.writer {
		for i := range a.touches.list {
			if x := &a.touches.list[i]; x.wrote && x.now != nil && x.now.Key() > after {
				out = append(out, x.now)
			}
		}
		slices.SortFunc(out, func(a, b job.Row) int { return cmp.Compare(a.Key(), b.Key()) })
	}
	return out[:min(n, len(out))], nil
}

// dueReceipts is DueRows of receipts.
func (a *access) dueReceipts(until job.Millis, n int) ([]job.Row, error) {
	if n <= 0 {
		return nil, nil
	}
	d := dueScan{a: a, n: n}
	if a.writer {
		for i := range a.touches.list {
			if x := &a.touches.list[i]; x.wrote && x.now != nil && x.now.Expires != 0 && x.now.Expires <= until {
				d.own = append(d.own, x.now)
			}
		}
		slices.SortFunc(d.own, func(a, b *job.Receipt) int { return cmp.Compare(a.Expires, b.Expires) })
	}
	_, err := a.h.scanAround([]byte{keyReceiptAt}, receiptAtKey(nil, until+1, nil), func(key, value []byte) error {
		list, err := readReceiptList(key, value)
		if err == nil {
			err = d.pass(list.due)
		}
		d.hashes = append(append(d.hashes, list.first), list.rest...)
		return err
	})
	if err == nil {
		err = d.pass(until + 1)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return d.out, err
}

// dueScan goes through what is due, soonest first: what the transaction wrote and
// what lists on disk name.
type dueScan struct {
	a      *access
	n      int
	own    []*job.Receipt // written here, soonest first
	hashes [][16]byte     // due at the same time
	at     job.Millis     // that time
	out    []job.Row
}

// round takes in what is due at a time, in the order of the keys.
func (d *dueScan) round(due job.Millis) error {
	for len(d.own) > 0 && d.own[0].Expires == due {
		d.hashes, d.own = append(d.hashes, d.own[0].Hash), d.own[1:]
	}
	slices.SortFunc(d.hashes, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	d.hashes = slices.Compact(d.hashes)
	for i := range d.hashes {
		r, err := d.a.receipt(&d.hashes[i])
		if job.KindOf(err) == job.Unprocessable {
			continue // it stays
		}
		if err != nil {
			return err
		}
		if r != nil && r.Expires == due {
			if d.out = append(d.out, r); len(d.out) == d.n {
				return errEnough
			}
		}
	}
	d.hashes = d.hashes[:0]
	return nil
}

// pass ends the rounds before a time.
func (d *dueScan) pass(next job.Millis) error {
	if next == d.at {
		return nil
	}
	err := d.round(d.at)
	for err == nil && len(d.own) > 0 && d.own[0].Expires < next {
		err = d.round(d.own[0].Expires)
	}
	d.at = next
	return err
}

// loadReceipts finds out when the first receipt is due. That there are none, which
// is usual, need not be found out part by part.
func (s *Store) loadReceipts(h *handle) error {
	a := &access{s: s, h: h}
	some, err := a.receiptRows("", 1)
	if err != nil {
		return err
	}
	if len(some) == 0 {
		s.known.empty()
		return nil
	}
	first, err := a.dueReceipts(job.MaxMillis, 1)
	if len(first) > 0 {
		s.rows.receiptDue = first[0].Due()
	}
	return err
}
