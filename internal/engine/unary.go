package engine

import (
	"context"
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// errWaitEnded is what a waiting unary call is answered then.
var errWaitEnded = &job.Error{
	Kind: job.Unavailable, Text: "send the request again in a moment", Cause: ErrStreamEnded,
}

// Lease takes up to o.Max jobs for o.For each, or for LeaseDefault: every
// unary lease has an end. It blocks until there is at
// least one, or ctx ends: then it answers nothing, without an error. What it gets
// ends behind PageBytes of payloads.
func (e *Engine) Lease(ctx context.Context, o LeaseOptions) ([]Delivery, error) {
	name := o.Worker
	if name == "" {
		name = fmt.Sprintf("%016x", e.rnd())
	}
	name = unaryPrefix + name
	if o.Secret != "" {
		var err error
		if name, err = e.registered(context.WithoutCancel(ctx), o.Worker, o.Secret); err != nil {
			return nil, err
		}
	}
	h := NewHolder(job.Unary, name, StreamOptions{Queues: o.Queues, Properties: o.Properties})
	h.life, h.Want = o.For, max(o.Max, 1)
	if h.life <= 0 {
		h.life = LeaseDefault
	}
	return e.Take(ctx, h, nil)
}

// Take waits until a unary call has what it asks for, or ctx ends. check may refuse it.
func (e *Engine) Take(ctx context.Context, h *Holder, check func(*Tx) error) ([]Delivery, error) {
	err := e.Do(context.WithoutCancel(ctx), 0, func(r *Tx) error {
		if check != nil {
			if err := check(r); err != nil {
				return err
			}
		}
		r.asking = append(r.asking, h)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for {
		out, err := h.collect()
		if err != nil {
			return nil, errWaitEnded
		}
		if len(out) > 0 {
			return e.answer(ctx, out)
		}
		select {
		case <-h.bell:
		case <-ctx.Done():
			return e.giveUp(ctx, h)
		}
	}
}

// giveUp takes a waiting unary call out of line; jobs that were given to it
// at the same moment are answered after all.
func (e *Engine) giveUp(ctx context.Context, h *Holder) ([]Delivery, error) {
	err := e.Do(context.Background(), 0, func(r *Tx) error { r.left[h] = true; return nil })
	out, ended := h.collect()
	if len(out) > 0 {
		return e.answer(ctx, out)
	}
	if ended != nil {
		return nil, errWaitEnded
	}
	return nil, err
}
