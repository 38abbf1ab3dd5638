package engine

import (
	"cmp"
	"container/list"
	"iter"
	"slices"
)

// hungry is the holders that are connected or wait, longest unserved first. What
// a batch does to it costs as much as the holders it changed, however many there
// are: most of ten thousand engines run something meanwhile.
type hungry struct {
	line     list.List // of *holder
	arrivals uint64    // at the end of the line, so far
	unary    int       // calls that wait
}

// push puts a holder at the end.
func (w *hungry) push(h *Holder) {
	w.arrivals++
	h.arrival, h.place = w.arrivals, w.line.PushBack(h)
	w.unary += oneIf(h.Want > 0)
}

// served puts a holder that got something behind all others.
func (w *hungry) served(h *Holder) {
	w.arrivals++
	h.arrival = w.arrivals
	w.line.MoveToBack(h.place)
}

func (w *hungry) remove(h *Holder) {
	if h.place != nil {
		w.line.Remove(h.place)
		h.place = nil
		w.unary -= oneIf(h.Want > 0)
	}
}

func (w *hungry) all() iter.Seq[*Holder] {
	return func(yield func(*Holder) bool) {
		for at := w.line.Front(); at != nil && yield(at.Value.(*Holder)); at = at.Next() {
		}
	}
}

// freed are the holders whose leases changed, or that read, in their order.
func (w *hungry) freed(r *Tx) (out []*Holder) {
	for h := range r.held {
		if h.place != nil {
			out = append(out, h)
		}
	}
	for h := range r.reads {
		if _, too := r.held[h]; h.place != nil && !too {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(h, g *Holder) int { return cmp.Compare(h.arrival, g.arrival) })
	return out
}

// settle follows a run that is applied.
func (w *hungry) settle(r *Tx) {
	for i := range r.gifts {
		if h := r.gifts[i].to; h.Want == 0 && h.Opts.Prefetch == 0 {
			h.unread++
		}
	}
	for _, h := range inOrder(r.joined) {
		w.push(h)
	}
	for _, h := range r.asking {
		w.push(h)
	}
	for _, h := range w.freed(r) {
		switch {
		case h.Want > 0 && h.held > 0: // it is answered
			w.remove(h)
		case r.held[h] > 0:
			w.served(h)
		}
	}
	for h := range r.left {
		w.remove(h)
	}
}
