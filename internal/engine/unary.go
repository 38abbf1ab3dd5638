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
	h := e.NewCaller(job.Unary, o.Worker, o.For, StreamOptions{Queues: o.Queues, Properties: o.Properties})
	h.Want = max(o.Max, 1)
	return e.Take(ctx, h, nil)
}

// UnaryHolder is the holder of what a worker leases.
func UnaryHolder(worker string) string { return unaryPrefix + worker }

// NewCaller is a call of a worker ("" = a name is made up) that is to Take jobs. The
// leases of an anonymous one have no end of their own, those of a unary one live for
// life; 0 = LeaseDefault.
func (e *Engine) NewCaller(kind job.HolderKind, worker string, life job.Millis, o StreamOptions) *Holder {
	if worker == "" {
		worker = fmt.Sprintf("%016x", e.rnd())
	}
	prefix := unaryPrefix
	switch {
	case kind == job.Anonymous:
		prefix, life = anonymousPrefix, 0
	case life <= 0:
		life = LeaseDefault
	}
	h := NewHolder(kind, prefix+worker, o)
	h.life = life
	return h
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
