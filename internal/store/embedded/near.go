package embedded

import (
	"encoding/binary"

	"github.com/reprisehq/reprise/internal/job"
)

// near is a map by id. Ids that were drawn one after the other, as jobs that
// come in and go out together were, lie side by side in memory, where a hash
// would scatter them: under load the misses of a Go map were a seventh of what
// the server did.
//
// A bucket has room for nearRoom ids of a run of nearRun, so that two runs may
// lie across each other; what finds none is in spill.
type near[V any] struct {
	buckets []nearBucket[V] // a power of two of them, made when the first value comes
	mask    uint32
	spill   map[job.ID]V
}

const (
	nearRun  = 4
	nearRoom = 8
)

type nearBucket[V any] struct {
	ids    [nearRoom]job.ID // zero: free
	values [nearRoom]V
}

// newNear makes a map that is at its best with up to size values; size is a
// power of two.
func newNear[V any](size uint32) near[V] {
	return near[V]{mask: size/nearRun - 1, spill: map[job.ID]V{}}
}

// bucket is where an id belongs: its counter tells (job.ID).
func (m *near[V]) bucket(id job.ID) *nearBucket[V] {
	return &m.buckets[binary.BigEndian.Uint32(id[8:])/nearRun&m.mask]
}

// get returns the value of an id, or none.
func (m *near[V]) get(id job.ID) (v V, ok bool) {
	if m.buckets == nil {
		return v, false
	}
	b := m.bucket(id)
	for i := range b.ids {
		if b.ids[i] == id {
			return b.values[i], true
		}
	}
	if len(m.spill) == 0 {
		return v, false
	}
	v, ok = m.spill[id]
	return v, ok
}

// set keeps a value under an id, which is not zero.
func (m *near[V]) set(id job.ID, v V) {
	if m.buckets == nil {
		m.buckets = make([]nearBucket[V], m.mask+1)
	}
	b, free := m.bucket(id), -1
	for i := range b.ids {
		switch {
		case b.ids[i] == id:
			b.values[i] = v
			return
		case free < 0 && b.ids[i].IsZero():
			free = i
		}
	}
	if _, spilled := m.spill[id]; free < 0 || spilled {
		m.spill[id] = v
		return
	}
	b.ids[free], b.values[free] = id, v
}

// drop forgets an id, if it is there.
func (m *near[V]) drop(id job.ID) {
	if m.buckets == nil {
		return
	}
	b := m.bucket(id)
	for i := range b.ids {
		if b.ids[i] == id {
			var none V
			b.ids[i], b.values[i] = job.ID{}, none
			return
		}
	}
	delete(m.spill, id)
}
