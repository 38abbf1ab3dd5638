package embedded

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/reprisehq/reprise/internal/job"
)

// known tells which receipts may be on disk: work with a key that nobody has used
// is taken in without a look there. It never denies one that is there, and is
// wrong about another in one of 2^40 cases for each it holds.
//
// It holds a fingerprint of every receipt, in 256 parts by the first byte of their
// keys: 4 bytes each, in a table between 3/8 and 3/4 full, which is about 7 MB for
// a million. A part that is not read yet, or that would hold more than partMax, is
// not kept, and what belongs to it is looked up.
type known struct {
	parts [256]part
	room  int // how many receipts this transaction may still read for parts
}

// partMax is the most receipts of a part: 256 of them are 64 MB at most. Only a
// test takes less.
var partMax = 1 << 15

// partsRead bounds what one transaction reads to fill parts: some milliseconds.
const partsRead = 1 << 14

// part is the receipts whose keys begin with one byte.
type part struct {
	whole bool     // all receipts on disk are in here
	slots []uint32 // fingerprints by their leading bits, one behind the other; 0 = free
	count int
	// wait is how many receipts of a part that was too large must go before it is
	// read again.
	wait int
}

// fingerprint is never zero.
func fingerprint(hash *[16]byte) uint32 { return max(binary.BigEndian.Uint32(hash[1:]), 1) }

// begin starts a transaction.
func (k *known) begin() { k.room = partsRead }

// empty says that no receipt is on disk.
func (k *known) empty() {
	for i := range k.parts {
		k.parts[i] = part{whole: true}
	}
}

// denies reports that a receipt is not on disk.
func (k *known) denies(hash *[16]byte) bool {
	p := &k.parts[hash[0]]
	return p.whole && !p.has(fingerprint(hash))
}

// read fills the part that a receipt belongs to, from disk.
func (k *known) read(h *handle, hash *[16]byte) error {
	p := &k.parts[hash[0]]
	if p.whole || p.wait > 0 || k.room <= 0 {
		return nil
	}
	full := part{whole: true}
	from, to := rowKey(nil, job.Receipts, string(hash[:1])), rowKey(nil, job.Receipts+1, "")
	if hash[0] < 255 {
		to = rowKey(nil, job.Receipts, string([]byte{hash[0] + 1}))
	}
	err := h.scan(from, to, func(key, _ []byte) error {
		if len(key) != receiptKeyLen {
			return corrupt("the key of a receipt is damaged")
		}
		if k.room--; full.count == partMax {
			return errEnough
		}
		full.add(fingerprint((*[16]byte)(key[2:])))
		return nil
	})
	if errors.Is(err, errEnough) {
		p.wait = partMax
		return nil
	}
	if err == nil {
		*p = full
	} else if h.unreadable(err) {
		p.wait, err = partMax, nil // each is looked for by itself
	}
	return err
}

// add takes in a receipt that came to the disk.
func (k *known) add(hash *[16]byte) {
	p := &k.parts[hash[0]]
	switch {
	case !p.whole:
	case p.count == partMax:
		*p = part{wait: partMax / 2}
	default:
		p.add(fingerprint(hash))
	}
}

// drop forgets a receipt that left the disk.
func (k *known) drop(hash *[16]byte) {
	if p := &k.parts[hash[0]]; p.whole {
		p.drop(fingerprint(hash))
	} else if p.wait > 0 {
		p.wait--
	}
}

func (p *part) home(print uint32) uint32 { return print >> (32 - bits.Len(uint(len(p.slots)-1))) }

// find is where a fingerprint stands, or the free slot where it would.
func (p *part) find(print uint32) uint32 {
	mask := uint32(len(p.slots) - 1)
	i := p.home(print)
	for p.slots[i] != 0 && p.slots[i] != print {
		i = (i + 1) & mask
	}
	return i
}

func (p *part) has(print uint32) bool { return p.count > 0 && p.slots[p.find(print)] == print }

// add keeps equal fingerprints side by side, one for each receipt.
func (p *part) add(print uint32) {
	if 4*(p.count+1) > 3*len(p.slots) {
		old := p.slots
		p.slots = make([]uint32, max(16, 2*len(old)))
		for _, other := range old {
			if other != 0 {
				p.place(other)
			}
		}
	}
	p.place(print)
	p.count++
}

func (p *part) place(print uint32) {
	mask := uint32(len(p.slots) - 1)
	i := p.home(print)
	for p.slots[i] != 0 {
		i = (i + 1) & mask
	}
	p.slots[i] = print
}

// drop takes out one fingerprint and moves up what stood behind it.
func (p *part) drop(print uint32) {
	if !p.has(print) {
		return
	}
	mask := uint32(len(p.slots) - 1)
	gap := p.find(print)
	for i := (gap + 1) & mask; p.slots[i] != 0; i = (i + 1) & mask {
		if (i-p.home(p.slots[i]))&mask >= (i-gap)&mask { // it may stand where the gap is
			p.slots[gap], gap = p.slots[i], i
		}
	}
	p.slots[gap] = 0
	p.count--
}
