package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// receiptList is what one entry of keyReceiptAt says.
type receiptList struct {
	due   job.Millis
	first [16]byte   // also in the key
	rest  [][16]byte // of the value
}

func readReceiptList(key, value []byte) (l receiptList, err error) {
	if len(key) != 1+8+16 || len(value)%16 != 0 {
		return l, corrupt("a list of receipts is damaged")
	}
	l.due = job.Millis(binary.BigEndian.Uint64(key[1:]))
	copy(l.first[:], key[9:])
	for ; len(value) > 0; value = value[16:] {
		l.rest = append(l.rest, [16]byte(value))
	}
	return l, nil
}

// touch is the receipt of a hash, on its way to be written.
func (t *tx) touch(hash *[16]byte) (*touched, error) {
	if x := t.touches.find(hash); x != nil {
		return x, nil
	}
	if _, err := t.receipt(hash); err != nil {
		return nil, err
	}
	return t.touches.find(hash), nil
}

// writeReceipt makes a receipt of what is there; nil takes it away.
func (t *tx) writeReceipt(hash *[16]byte, r *job.Receipt) error {
	x, err := t.touch(hash)
	if err != nil {
		return err
	}
	if x.now != nil && x.now.Expires == t.receiptDue && t.receiptDue != 0 {
		t.receiptStale = true
	}
	if x.now, x.wrote = r, true; r != nil && r.Expires != 0 && (t.receiptDue == 0 || r.Expires < t.receiptDue) {
		t.receiptDue, t.receiptStale = r.Expires, false
	}
	return nil
}

// NextRow implements store.Reader.
func (t *tx) NextRow(table job.Table) job.Millis {
	if table != job.Receipts {
		return t.access.NextRow(table)
	}
	_ = t.soonestReceipt() // an error comes again at the end of the transaction
	return t.receiptDue
}

// soonestReceipt looks up when the next receipt is due, where that may have changed.
func (t *tx) soonestReceipt() error {
	if !t.receiptStale {
		return nil
	}
	next, err := t.dueReceipts(job.MaxMillis, 1)
	if err != nil {
		return err
	}
	t.receiptDue, t.receiptStale = 0, false
	if len(next) > 0 {
		t.receiptDue = next[0].Due()
	}
	return nil
}

// writeReceipts writes, at the end of the transaction, the receipts that came, and
// deletes those that went, in the order of their keys: each finds its place in the
// memory table next to the one before.
func (t *tx) writeReceipts() error {
	if len(t.touches.list) == 0 {
		return nil
	}
	if err := t.soonestReceipt(); err != nil {
		return err
	}
	if t.orderReceipts() {
		if err := t.sweepLists(); err != nil {
			return err
		}
	}
	due := dueLists{}
	for _, o := range t.order {
		x := &t.touches.list[o.at]
		t.key = append(append(t.key[:0], keyRow, byte(job.Receipts)), x.hash[:]...)
		if x.now == nil {
			if err := t.batch.Delete(t.key, nil); err != nil {
				return err
			}
			continue
		}
		t.value = appendReceipt(t.value[:0], x.now)
		if err := t.batch.Set(t.key, t.value, nil); err != nil {
			return err
		}
		if x.now.Expires != 0 && (x.was == nil || x.was.Expires != x.now.Expires) {
			due.add(x.now.Expires, x.hash)
		}
	}
	return due.write(t)
}

// orderReceipts sorts what the transaction changed. It reports whether some are due
// at another time now, or never.
func (t *tx) orderReceipts() (moved bool) {
	all, order := t.touches.list, t.order[:0]
	for i := range all {
		if x := &all[i]; x.wrote && (x.was != nil || x.now != nil) {
			order = append(order, sortable{binary.BigEndian.Uint64(x.hash[:]), int32(i)})
			moved = moved || x.was != nil && x.was.Expires != 0 && (x.now == nil || x.now.Expires != x.was.Expires)
		}
	}
	t.order = order
	slices.SortFunc(order, func(a, b sortable) int {
		if a.head != b.head {
			if a.head < b.head {
				return -1
			}
			return 1
		}
		return bytes.Compare(all[a.at].hash[:], all[b.at].hash[:])
	})
	return moved
}

// dueLists are hashes by when they are due.
type dueLists struct {
	of   map[job.Millis][][16]byte // but for the list
	at   job.Millis
	list [][16]byte // due then: those of one call are due together
}

func (d *dueLists) add(at job.Millis, hash [16]byte) {
	if at != d.at {
		d.keep()
		d.at, d.list = at, d.of[at]
	}
	d.list = append(d.list, hash)
}

func (d *dueLists) keep() {
	if d.of == nil {
		d.of = map[job.Millis][][16]byte{}
	}
	if d.at != 0 {
		d.of[d.at] = d.list
	}
}

func (d *dueLists) write(t *tx) error {
	d.keep()
	for _, at := range slices.Sorted(maps.Keys(d.of)) {
		for part := range slices.Chunk(d.of[at], listMax) {
			if err := t.writeList(at, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortable is a touched receipt by the head of its hash.
type sortable struct {
	head uint64
	at   int32
}

// writeList writes what is due at a time, with what a list of the same name holds
// already: a receipt that comes a second time within a millisecond.
func (t *tx) writeList(at job.Millis, hashes [][16]byte) error {
	t.key = receiptAtKey(t.key[:0], at, hashes[0][:])
	t.value = t.value[:0]
	for i := range hashes[1:] {
		t.value = append(t.value, hashes[1+i][:]...)
	}
	before, err := t.h.get(t.key)
	if err != nil && !t.h.unreadable(err) {
		return err
	}
	return t.batch.Set(t.key, append(t.value, before...), nil)
}

// sweepLists deletes the first lists, as far as nothing of them is left.
func (t *tx) sweepLists() error {
	err := t.h.scan([]byte{keyReceiptAt}, []byte{keyReceiptAt + 1}, func(key, value []byte) error {
		list, err := readReceiptList(key, value)
		if err != nil {
			return err
		}
		for _, hash := range append(list.rest, list.first) {
			r, err := t.receipt(&hash)
			if err != nil && job.KindOf(err) != job.Unprocessable {
				return err
			}
			if err != nil || r != nil && r.Expires == list.due {
				return errEnough
			}
		}
		return t.batch.Delete(key, nil)
	})
	if errors.Is(err, errEnough) || t.h.unreadable(err) {
		err = nil
	}
	return err
}

// keepReceipts makes true in memory what the transaction did to receipts.
func (t *tx) keepReceipts() {
	for i := range t.touches.list {
		x := &t.touches.list[i]
		switch {
		case x.was == nil && x.now != nil:
			t.s.known.add(&x.hash)
		case x.was != nil && x.now == nil:
			t.s.known.drop(&x.hash)
		}
	}
	t.s.rows.receiptDue = t.receiptDue
}
