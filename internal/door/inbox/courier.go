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

	mu     sync.Mutex
	round  int64         // of the latest run for those who lease; 0 = none has begun, or the inbox is not polled
	opened chan struct{} // closed when the next one begins
}

func newCourier(d *Door, x *Inbox, sink connect.Sink) *courier {
	return &courier{engine: d.engine, door: d, inbox: x, sink: sink, opened: make(chan struct{})}
}

// tryAgain is how long a loop waits when the engine cannot serve it.
const tryAgain = job.Second

// start begins to deliver.
func (c *courier) start(ctx context.Context) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the call that sets it up
	c.stop = stop
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
	began := c.engine.Now()
	for at := s.Next(began, began); wait(ctx, at-c.engine.Now()); at = s.Next(began, max(c.engine.Now(), at+1)) {
		run(ctx)
	}
}

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
			c.deliver(ctx, &turns[i], engine.Under{})
		}
		if err != nil {
			wait(ctx, tryAgain)
		}
	}
}

// open lets those who lease visit every group once more.
func (c *courier) open(ctx context.Context) {
	n, err := c.engine.Round(ctx)
	if err != nil {
		return // the next run will do
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.opened)
	c.round, c.opened = n, make(chan struct{})
}

// current is the run that goes on for those who lease, and when it is over.
func (c *courier) current() (round int64, over <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.round, c.opened
}

// alone runs while this server has the lock of the inbox. What outlives it
// delivers nothing more: its time ends with the lock, and before each turn and
// each delivery the engine is asked whether the lock is still the run's own. What
// it settles is settled by the tokens of its leases.
func (c *courier) alone(ctx context.Context, run func(context.Context, engine.Under)) {
	most := c.door.o.LockMost
	if most == 0 {
		run(ctx, engine.Under{})
		return
	}
	timed, cancel := context.WithTimeout(ctx, time.Duration(most)*time.Millisecond) // ends no later than the lock
	defer cancel()
	lock, got, err := c.engine.Lock(ctx, job.LockAsk{Name: "inbox/" + c.inbox.Name, By: c.door.o.Node, Most: most})
	if err != nil || !got {
		return // another one runs: this run is left out
	}
	run(timed, engine.Under{Lock: lock.Name, Token: lock.Token})
	if _, err := c.engine.Unlock(context.WithoutCancel(ctx), lock.Name, lock.Token); err != nil {
		c.door.log.WarnContext(ctx, "the run of an inbox outlived its lock", "inbox", c.inbox.Name, "error", err)
	}
}

// run visits every group that has something due. Each gets a batch; one of all
// messages is delivered a page at a time.
func (c *courier) run(ctx context.Context, under engine.Under) {
	for more := true; more && ctx.Err() == nil; {
		round, err := c.engine.Round(ctx)
		if err != nil {
			return
		}
		var rest atomic.Bool
		var visits sync.WaitGroup
		for range c.inbox.HTTP.Concurrent {
			visits.Go(func() {
				if c.visit(ctx, round, under) {
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
func (c *courier) visit(ctx context.Context, round int64, under engine.Under) (rest bool) {
	for ctx.Err() == nil {
		turns, err := c.engine.LeaseTurns(ctx, engine.TurnOptions{
			Worker: c.holder(), Queue: c.inbox.Name, Members: c.members(), Local: true, Before: round, Once: true, Under: under,
		})
		if err != nil || len(turns) == 0 {
			return rest
		}
		for i := range turns {
			whole := c.deliver(ctx, &turns[i], under)
			rest = rest || whole && c.inbox.BatchSize < 0 && len(turns[i].Deliveries) == c.members()
		}
	}
	return rest
}

func (c *courier) holder() string { return "inbox/" + c.inbox.Name }

// members is how many messages of a group are fetched at a time: a batch of a
// given size at once, one of all a page at a time.
func (c *courier) members() int {
	if n := c.inbox.BatchSize; n > 0 {
		return n
	}
	return min(c.inbox.PageSize, engine.TurnMax)
}

// deliver hands the messages of a turn over, and settles each right after its
// own result. It reports whether none of them failed.
func (c *courier) deliver(ctx context.Context, t *engine.Turn, under engine.Under) (whole bool) {
	step := 1
	if c.inbox.HTTP.Batch {
		step = len(t.Deliveries)
	}
	whole = true
	for part := range slices.Chunk(t.Deliveries, step) {
		part, left := c.checked(ctx, part, under)
		if whole = whole && left; len(part) > 0 {
			results := c.hand(ctx, t, part)
			c.settle(ctx, part, results)
			for _, r := range results {
				whole = whole && r.Outcome == job.OK
			}
		}
		if !whole && c.inbox.Ordered() {
			return false // those behind it went back with it
		}
	}
	return whole
}

// checked returns the messages that may still be delivered. One that expired, or
// that somebody took out of line meanwhile, goes back, and so do all when the lock
// that the run is under is over; left is whether the turn goes on without it in
// order.
func (c *courier) checked(ctx context.Context, list []engine.Delivery, under engine.Under) (may []engine.Delivery, left bool) {
	if c.engine.HoldsLock(ctx, under) != nil {
		c.settle(ctx, list, released(len(list)))
		return nil, false
	}
	for i := range list {
		d := &list[i]
		switch err := c.engine.MayDeliver(ctx, d.Job.ID, d.Lease.Token); {
		case err == nil:
			may = append(may, *d)
			continue
		case errors.Is(err, engine.ErrExpired): // it leaves, and the others come closer
			c.settle(ctx, list[i:i+1], released(1))
			continue
		case errors.Is(err, engine.ErrOutOfLine):
			c.settle(ctx, list[i:i+1], released(1))
		}
		if c.inbox.Ordered() {
			return may, false
		}
	}
	return may, true
}

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
