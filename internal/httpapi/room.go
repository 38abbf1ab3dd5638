package httpapi

// room is what one answer may hold in memory until its reader has it. All
// together have max_inflight_bytes, beside that of bodies: a slow reader holds
// a page for as long as it is let.
type room struct {
	h    *handler
	held int64
}

// copies of a row that an answer has: as it was read, and as it is sent.
const copies = 2

func (h *handler) room() *room { return &room{h: h} }

// take implements engine.Room. One answer alone always has room.
func (o *room) take(bytes int) error {
	n := copies * int64(bytes)
	o.held += n
	if all := o.h.answers.Add(n); all > o.h.inflightMax && all > o.held {
		return errAnswers
	}
	return nil
}

func (o *room) leave() { o.h.answers.Add(-o.held) }
