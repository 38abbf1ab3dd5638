package embedded

import "sync"

// names gives every distinct text a small number and shares its memory, so
// that index entries hold no pointers and a million jobs share one queue name.
type names struct {
	mu   sync.RWMutex // payload and view readers decode jobs beside the writer
	num  map[string]uint32
	list []string
	free []uint32 // numbers that are given back
}

func newNames() *names { return &names{num: map[string]uint32{}} }

func (n *names) of(s string) uint32 {
	n.mu.RLock()
	v, ok := n.num[s]
	n.mu.RUnlock()
	if ok {
		return v
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if v, ok = n.num[s]; ok {
		return v
	}
	if last := len(n.free) - 1; last >= 0 {
		v, n.free = n.free[last], n.free[:last]
		n.list[v] = s
	} else {
		v = uint32(len(n.list))
		n.list = append(n.list, s)
	}
	n.num[s] = v
	return v
}

// keep gives back the numbers that are not used.
func (n *names) keep(used func(uint32) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s, v := range n.num {
		if !used(v) {
			delete(n.num, s)
			n.list[v] = ""
			n.free = append(n.free, v)
		}
	}
}

// known returns the number of a text that was seen before.
func (n *names) known(s string) (uint32, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	v, ok := n.num[s]
	return v, ok
}

// share returns the text of b, without a new copy if it was seen before.
func (n *names) share(b []byte) string {
	n.mu.RLock()
	v, ok := n.num[string(b)]
	if ok {
		s := n.list[v]
		n.mu.RUnlock()
		return s
	}
	n.mu.RUnlock()
	return string(b)
}
