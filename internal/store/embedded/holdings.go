package embedded

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// holdings are the jobs that run, by who runs them: by holder, or by host.
type holdings struct {
	of     map[string]*holding
	vacant []string   // who lost the last job since the latest sweep, and may have another by now
	spare  []*holding // empty ones: most holders have one job at a time
}

// holding is the jobs of one holder.
type holding struct {
	few  []job.ID            // up to holdingFew of them, in no order
	many map[job.ID]struct{} // all of them, once there were more; nil = there never were
}

const (
	holdingFew = 8
	spareMax   = 256 // empty holdings that are kept
)

func newHoldings() holdings { return holdings{of: map[string]*holding{}} }

func (h *holding) len() int {
	if h == nil {
		return 0
	}
	return len(h.few) + len(h.many)
}

func (h *holding) has(id job.ID) bool {
	if h == nil {
		return false
	}
	if h.many != nil {
		_, ok := h.many[id]
		return ok
	}
	return slices.Contains(h.few, id)
}

// ids are the jobs in their order.
func (h *holding) ids() []job.ID {
	out := make([]job.ID, 0, h.len())
	if h != nil {
		out = append(out, h.few...)
		for id := range h.many {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, job.ID.Compare)
	return out
}

func (x *holdings) has(name string, id job.ID) bool { return x.of[name].has(id) }

func (x *holdings) add(name string, id job.ID) {
	h := x.of[name]
	if h == nil {
		if n := len(x.spare) - 1; n >= 0 {
			h, x.spare = x.spare[n], x.spare[:n]
		} else {
			h = &holding{}
		}
		x.of[name] = h
	}
	switch {
	case h.many != nil:
		h.many[id] = struct{}{}
	case slices.Contains(h.few, id):
	case len(h.few) < holdingFew:
		h.few = append(h.few, id)
	default:
		h.many = map[job.ID]struct{}{id: {}}
		for _, other := range h.few {
			h.many[other] = struct{}{}
		}
		h.few = nil
	}
}

func (x *holdings) drop(name string, id job.ID) {
	h := x.of[name]
	if h == nil {
		return
	}
	if h.many != nil {
		delete(h.many, id)
	} else if at := slices.Index(h.few, id); at >= 0 {
		last := len(h.few) - 1
		h.few[at], h.few = h.few[last], h.few[:last]
	}
	if h.len() == 0 {
		x.vacant = append(x.vacant, name)
	}
}

// sweep forgets those who have nothing. It comes between transactions: in one of
// them who ends a job mostly gets another.
func (x *holdings) sweep() {
	for _, name := range x.vacant {
		if h := x.of[name]; h != nil && h.len() == 0 {
			delete(x.of, name)
			if len(x.spare) < spareMax {
				x.spare = append(x.spare, h)
			}
		}
	}
	clear(x.vacant)
	x.vacant = x.vacant[:0]
}
