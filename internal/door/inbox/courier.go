package inbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// courier delivers what an inbox holds: it takes turns of groups from the
// engine, hands their messages to the sink, and settles each with what the sink
// says. When an inbox is polled, its runs are here, also for those who lease.
type courier struct {
	engine *engine.Engine
	door   *Door
	inbox  *Inbox
	sink   connect.Sink // nil = whoever leases

	loops sync.WaitGroup
	stop  context.CancelFunc

	round atomic.Int64 // of the run that goes on; 0 = none has begun, or the inbox is not polled
}

func newCourier(d *Door, x *Inbox, sink connect.Sink) *courier {
	return &courier{engine: d.engine, door: d, inbox: x, sink: sink}
}

// tryAgain is how long a loop waits when the engine cannot serve it.
const tryAgain = job.Second

// start begins to deliver.
func (c *courier) start(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	polled := c.inbox.Query.Interval > 0
	switch {
	case c.sink != nil && !polled:
		for range c.inbox.HTTP.Concurrent {
			c.loops.Go(func() { c.follow(ctx) })
		}
	case c.sink != nil:
		c.loops.Go(func() { c.every(ctx, c.inbox.Query, func(ctx context.Context) { c.alone(ctx, c.run) }) })
	case polled:
		c.loops.Go(func() { c.every(ctx, c.inbox.Query, c.open) })
	}
	if c.inbox.Cleanup.Interval > 0 {
		c.loops.Go(func() { c.every(ctx, c.inbox.Cleanup, c.cleanUp) })
	}
}

// end stops and waits until what was on its way is settled.
func (c *courier) end() {
	c.stop()
	c.loops.Wait()
	if c.sink != nil {
		_ = c.sink.Close() // nothing is on its way any more
	}
}

// every runs by a schedule until ctx ends.
func (c *courier) every(ctx context.Context, s Schedule, run func(context.Context)) {
	began := nowMillis()
	for at := s.Next(began, began); wait(ctx, at-nowMillis()); at = s.Next(began, max(nowMillis(), at+1)) {
		run(ctx)
	}
}

func nowMillis() job.Millis { return job.Millis(time.Now().UnixMilli()) }

// wait waits, and reports whether ctx goes on.
func wait(ctx context.Context, span job.Millis) bool {
	t := time.NewTimer(time.Duration(span) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// follow delivers whatever is due, as soon as it is.
func (c *courier) follow(ctx context.Context) {
	for ctx.Err() == nil {
		turns, err := c.engine.LeaseTurns(ctx, engine.TurnOptions{
			Worker: c.holder(), Queue: c.inbox.Name, Members: c.members(), Local: true,
		})
		for i := range turns {
			c.deliver(ctx, &turns[i])
		}
		if err != nil {
			wait(ctx, tryAgain)
		}
	}
}

// open lets those who lease visit every group once more.
func (c *courier) open(ctx context.Context) {
	if n, err := c.engine.Round(ctx); err == nil {
		c.round.Store(n)
	}
}

// alone runs while this server has the lock of the inbox. What outlives it
// delivers nothing more: its time ends with the lock, and what it settles is
// settled by the tokens of its leases.
func (c *courier) alone(ctx context.Context, run func(context.Context)) {
	most := c.door.o.LockMost
	if most == 0 {
		run(ctx)
		return
	}
	ends := time.Now().Add(time.Duration(most) * time.Millisecond) // no later than the lock's
	lock, got, err := c.engine.Lock(ctx, job.LockAsk{Name: "inbox/" + c.inbox.Name, By: c.door.o.Node, Most: most})
	if err != nil || !got {
		return // another one runs: this run is left out
	}
	timed, cancel := context.WithDeadline(ctx, ends)
	defer cancel()
	run(timed)
	if _, err := c.engine.Unlock(context.WithoutCancel(ctx), lock.Name, lock.Token); err != nil {
		c.door.log.WarnContext(ctx, "the run of an inbox outlived its lock", "inbox", c.inbox.Name, "error", err)
	}
}

// run visits every group that has something due. Each gets a batch; one of all
// messages is delivered a page at a time.
func (c *courier) run(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		round, err := c.engine.Round(ctx)
		if err != nil {
			return
		}
		var rest atomic.Bool
		var visits sync.WaitGroup
		for range c.inbox.HTTP.Concurrent {
			visits.Go(func() {
				if c.visit(ctx, round) {
					rest.Store(true)
				}
			})
		}
		visits.Wait()
		more = rest.Load()
	}
}

// visit delivers turns of a run until there are none. It reports whether a
// group may have more of its batch.
func (c *courier) visit(ctx context.Context, round int64) (rest bool) {
	for ctx.Err() == nil {
		turns, err := c.engine.LeaseTurns(ctx, engine.TurnOptions{
			Worker: c.holder(), Queue: c.inbox.Name, Members: c.members(), Local: true, Before: round, Once: true,
		})
		if err != nil || len(turns) == 0 {
			return rest
		}
		for i := range turns {
			whole := c.deliver(ctx, &turns[i])
			rest = rest || whole && c.inbox.BatchSize < 0 && len(turns[i].Deliveries) == c.members()
		}
	}
	return rest
}

func (c *courier) holder() string { return "inbox/" + c.inbox.Name }

// members is how many messages of a group are fetched at a time.
func (c *courier) members() int {
	if n := c.inbox.BatchSize; n > 0 && n < c.inbox.PageSize {
		return n
	}
	return min(c.inbox.PageSize, engine.TurnMax)
}

// deliver hands the messages of a turn over, and settles each right after its
// own result. It reports whether none of them failed.
func (c *courier) deliver(ctx context.Context, t *engine.Turn) (whole bool) {
	step := 1
	if c.inbox.HTTP.Batch {
		step = len(t.Deliveries)
	}
	whole = true
	for part := range slices.Chunk(t.Deliveries, step) {
		if part = c.inTime(ctx, part); len(part) == 0 {
			continue
		}
		results := c.hand(ctx, t, part)
		c.settle(ctx, part, results)
		for _, r := range results {
			whole = whole && r.Outcome == job.OK
		}
		if !whole && c.inbox.Ordered() {
			return false // those behind it went back with it
		}
	}
	return whole
}

// inTime returns those that are not expired; of the others the engine is told.
func (c *courier) inTime(ctx context.Context, list []engine.Delivery) (fresh []engine.Delivery) {
	for i := range list {
		if at := list[i].Job.ExpiresAt; at > 0 && at <= c.engine.Now() {
			c.settle(ctx, list[i:i+1], []connect.Result{tooLate})
		} else {
			fresh = append(fresh, list[i])
		}
	}
	return fresh
}

// tooLate is the result of a message that is not delivered any more. The engine
// sees that it is expired, and says so.
var tooLate = connect.Result{Outcome: job.Retried, Failure: job.Failure{Type: "expired", Message: "it expired before it was delivered"}}

// hand gives messages to the sink, which blames nobody once ctx has ended. What
// the target gives back without a time, it gets again later.
func (c *courier) hand(ctx context.Context, t *engine.Turn, list []engine.Delivery) []connect.Result {
	if ctx.Err() != nil {
		return released(len(list))
	}
	b := &connect.Batch{Queue: t.Queue, Group: t.Group, Stop: c.inbox.Ordered(), Messages: make([]connect.Message, len(list))}
	for i := range list {
		j := list[i].Job
		b.Messages[i] = connect.Message{
			ID: cmp.Or(MessageIDOf(j), j.ID.String()), Attempt: int(j.Attempts) + 1, Type: j.Type,
			Header: headersOf(j), Body: list[i].Payload,
		}
	}
	results := c.sink.Deliver(ctx, b)
	for i := range results {
		if r := &results[i]; r.Outcome == job.Released && r.Delay == 0 && ctx.Err() == nil {
			r.Delay = cmp.Or(c.inbox.Query.Interval/2, tryLater)
		}
	}
	return results
}

// tryLater is when a message is delivered again that the target gave back
// without saying when.
const tryLater = 6 * job.Second

func released(n int) []connect.Result {
	list := make([]connect.Result, n)
	for i := range list {
		list[i].Outcome = job.Released
	}
	return list
}

// settle tells the engine what became of messages, also when the courier shall
// stop. One that an operator took away meanwhile is not there any more.
func (c *courier) settle(ctx context.Context, list []engine.Delivery, results []connect.Result) {
	ends := make([]engine.Settle, len(list))
	for i, r := range results {
		d := &list[i]
		ends[i] = engine.Settle{
			ID: d.Job.ID, Token: d.Lease.Token, Outcome: r.Outcome, Failure: r.Failure,
			RetryAfter: r.RetryAfter, NotBefore: r.NotBefore, Delay: r.Delay,
		}
	}
	if _, err := c.engine.Settle(context.WithoutCancel(ctx), ends); err != nil {
		c.door.log.WarnContext(ctx, "messages were delivered, and that could not be kept: they will be delivered again",
			"inbox", c.inbox.Name, "group", list[0].Job.Group, "messages", len(list), "error", err)
	}
}

// cleanUp forgets the messages that expired.
func (c *courier) cleanUp(ctx context.Context) {
	n, err := c.engine.DeleteAll(ctx, engine.Search{
		Filter: engine.Filter{Queues: []string{c.inbox.Name}, States: []job.State{job.Dead}},
		Where:  func(j *job.Job) bool { return j.Reason == job.Expired },
	})
	if n > 0 {
		err = errors.Join(err, c.engine.Note(ctx, job.Actor{Name: "clean-up"}, "clean up expired messages", "inbox "+c.inbox.Name, n))
	}
	if err != nil && ctx.Err() == nil {
		c.door.log.WarnContext(ctx, "the clean-up of an inbox was broken off", "inbox", c.inbox.Name, "error", err)
	}
}

// Lease gives whoever leases the messages of one group, in its order.
func (d *Door) Lease(ctx context.Context, x *Inbox, worker string, life job.Millis) (*wire.InboxTurn, error) {
	answer := &wire.InboxTurn{Messages: []wire.InboxLeased{}}
	if x.HTTP != nil {
		return nil, job.Errorf(job.WrongState, "inbox %q delivers to %s by itself; nobody leases from it", x.Name, x.HTTP.URL)
	}
	o := engine.TurnOptions{Worker: worker, Queue: x.Name, Members: x.BatchSize, For: life, Before: x.courier.round.Load()}
	if o.Before == 0 && x.Query.Interval > 0 {
		return answer, nil // the first run is yet to come
	}
	turns, err := d.engine.LeaseTurns(ctx, o)
	if err != nil || len(turns) == 0 {
		return answer, err
	}
	answer.Group, answer.Ordered = turns[0].Group, x.Ordered()
	for _, t := range turns[0].Deliveries {
		answer.Messages = append(answer.Messages, wire.InboxLeased{
			InboxMessage: Show(t.Job, t.Payload), Lease: string(t.Lease.Token.AppendTo(nil)),
		})
	}
	return answer, nil
}
