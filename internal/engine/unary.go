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
	return (&unaryCall{e, h}).wait(ctx)
}

// unaryCall is a call that waits for jobs.
type unaryCall struct {
	*Engine

	h *Holder
}

func (c *unaryCall) wait(ctx context.Context) ([]Delivery, error) {
	for {
		out, err := c.h.collect()
		if err != nil {
			return nil, errWaitEnded
		}
		if len(out) > 0 {
			return c.answer(ctx, out)
		}
		select {
		case <-c.h.bell:
		case <-ctx.Done():
			return c.giveUp(ctx)
		}
	}
}

// giveUp takes a waiting unary call out of line; jobs that were given to it
// at the same moment are answered after all.
func (c *unaryCall) giveUp(ctx context.Context) ([]Delivery, error) {
	err := c.Do(context.Background(), 0, func(r *Tx) error { r.left[c.h] = true; return nil })
	out, ended := c.h.collect()
	if len(out) > 0 {
		return c.answer(ctx, out)
	}
	if ended != nil {
		return nil, errWaitEnded
	}
	return nil, err
}

// answer reads the payloads of what a unary call was given.
func (c *unaryCall) answer(ctx context.Context, list []Delivery) ([]Delivery, error) {
	if room, ok := ctx.Value(roomKey{}).(Room); ok {
		if err := room(bytesOf(list)); err != nil {
			c.giveBack(ctx, list)
			return nil, err
		}
	}
	return c.bodies.fill(list, c.h.Raw)
}

// giveBack releases what nobody will hear of. If that fails, it lapses.
func (c *unaryCall) giveBack(ctx context.Context, list []Delivery) {
	back := make([]Settle, len(list))
	for i := range list {
		back[i] = Settle{ID: list[i].Job.ID, Token: list[i].Lease.Token, Outcome: job.Released}
	}
	_, _ = c.Settle(context.WithoutCancel(ctx), back)
}
