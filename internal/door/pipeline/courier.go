package pipeline

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
)

// courier delivers the chunks of one output: it takes them from its queue, hands each to
// the sink, and settles it with what the sink says.
type courier struct {
	engine *part.Engine
	log    *slog.Logger
	out    *Output
	loops  sync.WaitGroup
	stop   context.CancelFunc
}

// tryAgain is how long a loop waits when the engine cannot serve it.
const tryAgain = time.Second

func (c *courier) start(ctx context.Context) {
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	for n := range c.out.Lanes {
		c.loops.Go(func() { c.follow(ctx, c.out.Queue+" "+strconv.Itoa(n)) })
	}
}

// end stops, and returns when what was on its way is settled: what the target did not
// answer for goes back without blame.
func (c *courier) end() {
	c.stop()
	c.loops.Wait()
}

func (c *courier) follow(ctx context.Context, name string) {
	for ctx.Err() == nil {
		h := c.engine.NewCaller(job.Anonymous, name, 0, engine.StreamOptions{Queues: []string{c.out.Queue}})
		h.Want, h.Raw = 1, true
		list, err := c.engine.Take(ctx, h, nil)
		for i := range list {
			c.deliver(ctx, &list[i])
		}
		if err != nil {
			wait(ctx, tryAgain)
		}
	}
}

// wait waits, and reports whether ctx goes on.
func wait(ctx context.Context, span time.Duration) bool {
	t := time.NewTimer(span)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (c *courier) deliver(ctx context.Context, d *engine.Delivery) {
	c.out.Count.Deliveries.Add(1)
	c.out.Count.Delivering.Add(1)
	defer c.out.Count.Delivering.Add(-1)
	whole := sizeOf(d.Payload)
	r := connect.Result{Outcome: job.Released}
	if ctx.Err() == nil {
		r = c.out.Sink.Deliver(ctx, &connect.Batch{Queue: c.out.Queue, Messages: []connect.Message{{
			ID: d.Job.ID.String(), Attempt: int(d.Job.Attempts) + 1, Type: connect.TagOf(d.Job), Body: d.Payload,
		}}})[0]
	}
	s := engine.Settle{
		ID: d.Job.ID, Token: d.Lease.Token, Outcome: r.Outcome, Failure: r.Failure,
		RetryAfter: r.RetryAfter, NotBefore: r.NotBefore, Delay: r.Delay,
	}
	if p := r.Parts; p != nil {
		s.Rest = p.Rest
		for i := range p.Pieces {
			x := &p.Pieces[i]
			s.Pieces = append(s.Pieces, engine.Piece{Payload: x.Body, Outcome: x.Outcome, Failure: x.Failure, RetryAfter: x.RetryAfter})
		}
	}
	v, err := c.engine.Settle(context.WithoutCancel(ctx), []engine.Settle{s})
	if err == nil {
		err = v[0].Err
	}
	if job.KindOf(err) == job.NotFound || job.KindOf(err) == job.Superseded {
		return // an operator took it away meanwhile
	}
	if err != nil {
		c.log.WarnContext(ctx, "a chunk was delivered, and that could not be kept: it will be delivered again",
			"output", c.out.Name, "chunk", d.Job.ID.String(), "error", err)
		return
	}
	c.out.Count.partly(&r, v[0].State, whole, sizeOf, c.out.retries())
	if r.Outcome == job.OK {
		c.out.refuses.Store(false)
	}
	c.tell(ctx, d.Job, &r, &v[0])
}

// tell writes the lines of the original, of what went wrong and of what went well after all.
func (c *courier) tell(ctx context.Context, j *job.Job, r *connect.Result, v *engine.Verdict) {
	at := []any{"output", c.out.Name, "chunk", j.ID.String(), "tag", connect.TagOf(j)}
	why := append(at[:len(at):len(at)], "error", r.Failure.Message)
	switch {
	case r.Outcome == job.OK && j.Attempts > 0:
		c.log.InfoContext(ctx, "a chunk was delivered by a retry", append(at, "retry", j.Attempts)...)
	case r.Outcome == job.Died:
		c.log.ErrorContext(ctx, "a chunk was refused for good; it is among the dead jobs", why...)
	case r.Outcome == job.Retried && v.State == job.Dead:
		c.log.ErrorContext(ctx, "a chunk cannot be retried any more; it is among the dead jobs", why...)
	case r.Outcome == job.Retried && v.Job != nil:
		c.log.WarnContext(ctx, "a chunk could not be delivered; it will be tried again",
			append(why, "retry_in", time.Duration(max(0, v.Job.ReadyAt-c.engine.Now())*job.Millis(time.Millisecond)).Round(time.Second).String())...)
	}
}

// sizeOf is how much is in a chunk; a broken one counts as far as it can be read.
func sizeOf(chunk []byte) size {
	return size{countOf(chunk), int64(len(chunk))}
}
