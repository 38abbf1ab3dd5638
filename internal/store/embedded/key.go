package embedded

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// keyIndex says who stands under a key. It holds hashes of 128 bits under
// seeds that nobody outside knows, and so no pointers: a key costs 32 bytes
// however long it is, and nothing to the garbage collector.
type keyIndex struct {
	seeds  [2]maphash.Seed
	owners map[[16]byte]job.ID
}

func newKeyIndex() keyIndex {
	return keyIndex{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, map[[16]byte]job.ID{}}
}

func (k *keyIndex) hash(key rule.Key) (h [16]byte) {
	kind := uint64(key.Kind)
	binary.LittleEndian.PutUint64(h[:8], maphash.String(k.seeds[0], key.Name)+kind)
	binary.LittleEndian.PutUint64(h[8:], maphash.String(k.seeds[1], key.Name)+kind)
	return h
}

func (x *index) moveKey(old, j *job.Job, a, b *rule.Entries) {
	if a.Key == b.Key {
		return
	}
	if a.Key.Kind != rule.NoKey {
		if h := x.keys.hash(a.Key); x.keys.owners[h] == old.ID {
			delete(x.keys.owners, h)
		}
	}
	if b.Key.Kind != rule.NoKey {
		x.keys.owners[x.keys.hash(b.Key)] = j.ID
	}
}

func (a *access) Owner(key rule.Key) (id job.ID, ok bool) {
	if key.Kind == rule.NoKey {
		return id, false
	}
	keys := &a.s.index.keys
	id, ok = keys.owners[keys.hash(key)]
	return id, ok
}

// checkKey refuses a job that comes under a key which another job stands under.
func (t *tx) checkKey(old, j *job.Job) error {
	if j == nil || !j.HoldsKey || old != nil && old.HoldsKey {
		return nil
	}
	if owner, taken := t.Owner(rule.KeyOf(j)); taken && owner != j.ID {
		return job.Errorf(job.Internal, "job %s would stand under the key of job %s", j.ID, owner)
	}
	return nil
}
