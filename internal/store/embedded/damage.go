package embedded

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// damage is what was met of tables that cannot be read.
type damage struct {
	mu    sync.Mutex
	files map[string]bool // that were told of
}

// found notes a damaged table; the first place in each is logged.
func (d *damage) found(path string, why error, logf func(string, ...any)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[path] {
		return
	}
	if d.files == nil {
		d.files = map[string]bool{}
	}
	d.files[path] = true
	logf("%s is damaged: %s; jobs that stand there are set aside, all others go on; restore a backup, or have them done again", path, firstLine(why.Error()))
}

// gap is a range of keys that cannot be read: from after one that can to the next
// that can, or to the end of what was asked for.
type gap struct {
	from, to []byte
	why      error
}

// scanAround is scan that passes by what is damaged, as narrowly as it can: Pebble
// does not tell where a bad block ends.
func (h *handle) scanAround(from, to []byte, f func(key, value []byte) error) (gaps []gap, err error) {
	last := from
	for {
		err := h.scan(from, to, func(key, value []byte) error {
			last = append(append([]byte{}, key...), 0)
			return f(key, value)
		})
		if !h.unreadable(err) {
			return gaps, err
		}
		g := gap{from: last, to: h.readableFrom(last, to), why: err}
		gaps = append(gaps, g)
		if bytes.Compare(g.to, to) >= 0 {
			return gaps, nil
		}
		from, last = g.to, g.to
	}
}

// unreadable says that an error is that of a damaged place, which is no reason to
// give the database up.
func (h *handle) unreadable(err error) bool {
	return job.KindOf(err) == job.Corrupt && h.poison.Load() == nil
}

// readableFrom finds the first key, about, from which on the database can be read
// again. from cannot. It takes keys for numbers, steps on by ever more, then halves.
func (h *handle) readableFrom(from, to []byte) []byte {
	const width = 24 // bytes that are counted in; ids have fewer
	number := func(key []byte) *big.Int {
		padded := make([]byte, width)
		copy(padded, key)
		return new(big.Int).SetBytes(padded)
	}
	key := func(n *big.Int) []byte { return n.FillBytes(make([]byte, width)) }
	bad, good := number(from), number(to)
	for bit := uint(8 * (width - 17)); bit < 8*width; bit++ {
		next := new(big.Int).Lsh(big.NewInt(1), bit)
		if next.Add(next, bad).Cmp(good) >= 0 || key(next)[0] != from[0] {
			break
		}
		if h.readable(key(next), to) {
			good = next
			break
		}
		bad = next
	}
	for {
		middle := new(big.Int).Add(bad, good)
		switch middle.Rsh(middle, 1); {
		case middle.Cmp(bad) == 0:
			return key(good)
		case h.readable(key(middle), to):
			good = middle
		default:
			bad = middle
		}
	}
}

// readable says whether the database can be read from a key on.
func (h *handle) readable(from, to []byte) bool {
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return false
	}
	it.First()
	bad := it.Error() != nil
	return it.Close() == nil && !bad
}

// lost finds the jobs whose rows stand in gaps, by their payloads, which have the
// same ids. Where those cannot be read either, nobody knows what was there, and the
// store is not opened.
func (s *Store) lost(h *handle, gaps []gap) error {
	for _, g := range gaps {
		from, to := bytes.Clone(g.from), bytes.Clone(g.to)
		from[0], to[0] = keyPayload, to[0]-keyJob+keyPayload
		err := h.scan(from, to, func(key, value []byte) error {
			var id job.ID
			if len(key) != 1+len(id) {
				return nil // the inspection tells of it
			}
			copy(id[:], key[1:])
			if s.index.listing.at(listed{id: id}) != nil {
				return nil
			}
			row, err := h.get(jobKey(nil, id))
			switch {
			case h.unreadable(err):
				s.setAside(id, id, len(value), err)
				return nil
			case err != nil || row == nil:
				return err
			}
			return s.loadJob(id, row)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// setAside notes a job that is there and cannot be read.
func (s *Store) setAside(id, payload job.ID, size int, why error) {
	s.unreadable = append(s.unreadable, store.Unreadable{ID: id, Payload: payload, Size: uint32(size), Why: fmt.Sprint(why)}) //nolint:gosec // of a payload
}

// Unreadable implements store.Reader.
func (a *access) Unreadable() []store.Unreadable {
	var out []store.Unreadable
	for _, u := range a.s.unreadable {
		if a.s.index.listing.at(listed{id: u.ID}) == nil { // else it was set aside
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(x, y store.Unreadable) int { return cmp.Compare(x.ID.String(), y.ID.String()) })
	return out
}
