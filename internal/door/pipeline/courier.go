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

// tell tells what goes wrong, at most once a minute for an output and what became of the
// chunk, and that it goes well again.
func (c *courier) tell(ctx context.Context, j *job.Job, r *connect.Result, v *engine.Verdict) {
	now := c.engine.Now()
	if r.Outcome == job.OK {
		if c.out.failing.end() {
			c.log.InfoContext(ctx, "an output delivers again", "output", c.out.Name)
		}
		return
	}
	about := func(more int64) []any {
		return []any{"output", c.out.Name, "chunk", j.ID.String(), "tag", connect.TagOf(j), "retry", j.Attempts, "error", r.Failure.Message, "more_since", more}
	}
	switch {
	case r.Outcome == job.Released:
	case r.Outcome == job.Died:
		if more, ok := c.out.refusing.again(now); ok {
			c.log.ErrorContext(ctx, "chunks were refused for good; they are among the dead jobs", about(more)...)
		}
	case v.State == job.Dead:
		if more, ok := c.out.spent.again(now); ok {
			c.log.ErrorContext(ctx, "chunks cannot be retried any more; they are among the dead jobs", about(more)...)
		}
	default:
		if more, ok := c.out.failing.again(now); ok {
			c.log.WarnContext(ctx, "chunks could not be delivered; they will be tried again", about(more)...)
		}
	}
}

// rarely says when something that happens often is told.
type rarely struct {
	mu   sync.Mutex
	at   job.Millis // when it was told; 0 = it does not happen
	more int64      // how often it happened since
}

// tellEvery is how often the same is told again.
const tellEvery = job.Minute

// again notes that it happened, and reports whether that is to be told, with how often it
// happened untold.
func (r *rarely) again(now job.Millis) (more int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at > 0 && now < r.at+tellEvery {
		r.more++
		return 0, false
	}
	more, r.at, r.more = r.more, now, 0
	return more, true
}

// end notes that it does not happen any more, and reports whether it did.
func (r *rarely) end() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.at > 0
	r.at, r.more = 0, 0
	return was
}

// sizeOf is how much is in a chunk; a broken one counts as far as it can be read.
func sizeOf(chunk []byte) size {
	return size{countOf(chunk), int64(len(chunk))}
}
