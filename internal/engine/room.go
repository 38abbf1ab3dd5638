package engine

import (
	"context"
)

// PageBytes is how much of payloads, results and error records a page may hold:
// it ends early behind what fits, and behind one row at least.
const PageBytes = 16 << 20

// Room is asked before so many bytes come into memory for an answer. It may wait
// until there is room, or refuse the answer with its error.
type Room func(bytes int) error

type roomKey struct{}

// WithRoom has a unary call ask for room before it reads the payloads of what it
// was given. If there is none, the call gives that back and fails.
func WithRoom(ctx context.Context, room Room) context.Context {
	return context.WithValue(ctx, roomKey{}, room)
}

func bytesOf(list []Delivery) (n int) {
	for i := range list {
		n += int(list[i].Job.PayloadSize)
	}
	return n
}

// Full reports whether a unary call has all payloads that one answer may have.
func (r *crowd) Full(h *Holder) bool { return h.Want > 0 && r.bytes[h] >= PageBytes }
