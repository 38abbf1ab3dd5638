package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
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

// answer reads the payloads of what a unary call was given.
func (e *Engine) answer(ctx context.Context, list []Delivery) ([]Delivery, error) {
	if room, ok := ctx.Value(roomKey{}).(Room); ok {
		if err := room(bytesOf(list)); err != nil {
			e.giveBack(ctx, list)
			return nil, err
		}
	}
	return e.fill(list)
}

func bytesOf(list []Delivery) (n int) {
	for i := range list {
		n += int(list[i].Job.PayloadSize)
	}
	return n
}

// giveBack releases what nobody will hear of. If that fails, it lapses.
func (e *Engine) giveBack(ctx context.Context, list []Delivery) {
	back := make([]Settle, len(list))
	for i := range list {
		back[i] = Settle{ID: list[i].Job.ID, Token: list[i].Lease.Token, Outcome: job.Released}
	}
	_, _ = e.Settle(context.WithoutCancel(ctx), back)
}

// full reports whether a unary call has all payloads that one answer may have.
func (r *crowd) full(h *Holder) bool { return h.Want > 0 && r.bytes[h] >= PageBytes }
