package inbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/lock"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
)

// courier delivers what an inbox holds: it takes turns of groups from the
// engine, hands their messages to the sink, and settles each with what the sink
// says. When an inbox is polled, its runs are here, also for those who lease.
type courier struct {
	engine *part.Engine
	door   *Door
	inbox  *Inbox
	sink   connect.Sink // nil = whoever leases

	loops sync.WaitGroup
	stop  context.CancelFunc

	mu     sync.Mutex
	round  int64         // of the latest run; 0 = none has begun, or the inbox is not polled
	opened chan struct{} // closed when the next one begins
	visits int           // that deliver now
	under  lock.Under    // the lock that they have; the zero value = none
	rests  []*turn.Rest  // of batches that go on
}

func newCourier(d *Door, x *Inbox, sink connect.Sink) *courier {
	return &courier{engine: d.engine, door: d, inbox: x, sink: sink, stop: func() {}, opened: make(chan struct{})}
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
		c.loops.Go(func() { c.every(ctx, c.inbox.Query, c.run) })
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
		turns, err := c.next(ctx, turn.Options{Worker: c.holder(), Members: c.members(), Local: true})
		for i := range turns {
			c.deliver(ctx, &turns[i], lock.Under{})
		}
		if err != nil {
			wait(ctx, tryAgain)
		}
	}
}

// next takes the next turn: of a group that is in line, else of a batch that goes
// on. So all groups have had their first page when one gets its second.
func (c *courier) next(ctx context.Context, o turn.Options) ([]turn.Turn, error) {
	o.Queue = c.inbox.Name
	c.mu.Lock()
	n := len(c.rests)
	c.mu.Unlock()
	line := o
	line.Once = o.Once || n > 0
	turns, err := c.engine.Turns.Lease(ctx, line)
	for ; err == nil && len(turns) == 0 && n > 0; n-- {
		behind := o
		if behind.Behind = c.firstRest(); behind.Behind == nil {
			break
		}
		if turns, err = c.engine.Turns.Lease(ctx, behind); err != nil {
			c.goOn(behind.Behind)
		}
		if job.KindOf(err) == job.WrongState { // its latest turn goes on
			err = nil
		}
	}
	if err == nil && len(turns) == 0 && line.Once != o.Once {
		return c.engine.Turns.Lease(ctx, o)
	}
	return turns, err
}

// goOn lets a batch go on when no other group is in line.
func (c *courier) goOn(rest *turn.Rest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rests = append(c.rests, rest)
}

func (c *courier) firstRest() (rest *turn.Rest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.rests) > 0 {
		rest, c.rests = c.rests[0], c.rests[1:]
	}
	return rest
}

// open lets those who lease visit every group once more.
func (c *courier) open(ctx context.Context) {
	n, err := c.engine.Turns.Round(ctx)
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

// run begins a run, which visits every group that has something due. Each gets a
// batch, one of all messages a page at a time. Visits of an earlier run that still
// wait for the receiver of a slow group hold up no other: they join this one later.
func (c *courier) run(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	round, err := c.engine.Turns.Round(ctx)
	if err != nil || !c.locks(ctx) {
		return
	}
	c.round = round
	for ; c.visits < c.inbox.HTTP.Concurrent; c.visits++ {
		c.loops.Go(func() { c.visit(ctx) })
	}
}

// locks reports whether this server may run: it has the lock of the inbox, or takes
// it. What outlives the lock delivers nothing more: before each turn and each
// delivery the engine is asked whether it is still the run's own. A request that is
// under way goes on, and what it ends with counts: it is settled by the tokens of
// its leases, which nobody else has meanwhile.
func (c *courier) locks(ctx context.Context) bool {
	most := c.door.o.LockMost
	if most == 0 || c.under.Lock != "" && c.engine.Locks.Holds(ctx, c.under) == nil {
		return true
	}
	held, got, err := c.engine.Locks.Take(ctx, job.LockAsk{Name: "inbox/" + c.inbox.Name, By: c.door.o.Node, Most: most})
	if err != nil || !got {
		return false // another one runs: this run is left out
	}
	c.under = lock.Under{Lock: held.Name, Token: held.Token}
	return true
}

// visit delivers turns of the latest run until there are none.
func (c *courier) visit(ctx context.Context) {
	for {
		c.mu.Lock()
		round, under := c.round, c.under
		c.mu.Unlock()
		turns, err := c.next(ctx, turn.Options{
			Worker: c.holder(), Members: c.members(), Local: true, Before: round, Once: true, While: under.Held,
		})
		for i := range turns {
			c.deliver(ctx, &turns[i], under)
		}
		if (err != nil || len(turns) == 0) && c.leaves(ctx, round) {
			return
		}
	}
}

// leaves ends a visit, unless a run has begun that it did not see. The last one gives
// the lock back.
func (c *courier) leaves(ctx context.Context, round int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.round != round && ctx.Err() == nil {
		return false
	}
	if c.visits--; c.visits > 0 || c.under.Lock == "" {
		return true
	}
	if _, err := c.engine.Locks.Release(context.WithoutCancel(ctx), c.under.Lock, c.under.Token); err != nil {
		c.door.log.WarnContext(ctx, "the run of an inbox outlived its lock", "inbox", c.inbox.Name, "error", err)
	}
	c.under = lock.Under{}
	return true
}

func (c *courier) holder() string { return "inbox/" + c.inbox.Name }

// members is how many messages of a group are fetched at a time: a batch of a
// given size at once, one of all a page at a time.
func (c *courier) members() int {
	if n := c.inbox.BatchSize; n > 0 {
		return n
	}
	return min(c.inbox.PageSize, rule.TurnMax)
}

// deliver hands the messages of a turn over, and settles each right after its own
// result, until the engine says that the turn is over. A page that was full may have more
// of its batch behind it; where the group is in line for that by itself, nothing more is
// to be done.
func (c *courier) deliver(ctx context.Context, t *turn.Turn, under lock.Under) {
	step := 1
	if c.inbox.HTTP.Batch {
		step = len(t.Deliveries)
	}
	whole := true
	for at := 0; at < len(t.Deliveries); at += step {
		if c.engine.Locks.Holds(ctx, under) != nil {
			c.giveBack(ctx, t.Deliveries[at:])
			return
		}
		part, over := c.checked(ctx, t.Deliveries[at:min(at+step, len(t.Deliveries))])
		if len(part) > 0 {
			results := c.hand(ctx, t, part)
			over = c.settle(ctx, part, results, ctx.Err() == nil) || over
			for _, r := range results {
				whole = whole && r.Outcome == job.OK
			}
		}
		if over {
			return
		}
	}
	inLine := c.inbox.Query.Interval == 0 && whole && t.Begins()
	if c.inbox.BatchSize < 0 && len(t.Deliveries) == c.members() && !inLine {
		c.goOn(t.Rest())
	}
}

// checked returns the messages that may still be delivered, and whether the turn is over.
// One that expired, or that somebody took out of line meanwhile, is given back; one whose
// lease is over is left out.
func (c *courier) checked(ctx context.Context, list []engine.Delivery) (may []engine.Delivery, over bool) {
	for i := 0; i < len(list) && !over; i++ {
		d := &list[i]
		switch err := c.engine.Turns.MayDeliver(ctx, d.Job.ID, d.Lease.Token); {
		case err == nil:
			may = append(may, *d)
		case errors.Is(err, turn.ErrExpired), errors.Is(err, turn.ErrOutOfLine):
			over = c.giveBack(ctx, list[i:i+1])
		case job.KindOf(err) != job.Superseded && job.KindOf(err) != job.NotFound: // that cannot be known now
			over = true
		}
	}
	return may, over
}

// hand gives messages to the sink, which blames nobody once ctx has ended.
func (c *courier) hand(ctx context.Context, t *turn.Turn, list []engine.Delivery) []connect.Result {
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
	return c.sink.Deliver(ctx, b)
}

func released(n int) []connect.Result {
	list := make([]connect.Result, n)
	for i := range list {
		list[i].Outcome = job.Released
	}
	return list
}

// giveBack settles messages that were not delivered. It reports whether the turn is over.
func (c *courier) giveBack(ctx context.Context, list []engine.Delivery) (over bool) {
	return c.settle(ctx, list, released(len(list)), false)
}

// settle tells the engine what became of messages, also when the courier shall stop. One
// that an operator took away meanwhile is not there any more. answered is whether the
// target had its time to answer. It reports whether the turn is over: what is behind these
// messages went back with one of them, or is to come again after them.
func (c *courier) settle(ctx context.Context, list []engine.Delivery, results []connect.Result, answered bool) (over bool) {
	ends := make([]engine.Settle, len(list))
	for i, r := range results {
		d := &list[i]
		ends[i] = engine.Settle{
			ID: d.Job.ID, Token: d.Lease.Token, Outcome: r.Outcome, Failure: r.Failure,
			RetryAfter: r.RetryAfter, NotBefore: r.NotBefore, Delay: r.Delay, ByTarget: answered,
		}
	}
	verdicts, err := c.engine.Settle(context.WithoutCancel(ctx), ends)
	if err != nil {
		c.door.log.WarnContext(ctx, "messages were delivered, and that could not be kept: they will be delivered again",
			"inbox", c.inbox.Name, "group", list[0].Job.Group, "messages", len(list), "error", err)
		return true
	}
	return slices.ContainsFunc(verdicts, func(v engine.Verdict) bool { return v.Cut })
}

// cleanUp forgets the messages that expired.
func (c *courier) cleanUp(ctx context.Context) {
	n, _, err := c.engine.Desk.DoAll(ctx, desk.Delete, query.Search{
		Filter: engine.Filter{Queues: []string{c.inbox.Name}, States: []job.State{job.Dead}},
		Where:  func(j *job.Job) bool { return j.Reason == job.Expired },
	})
	if n > 0 {
		err = errors.Join(err, c.engine.Audit.Note(ctx, job.Actor{Name: "clean-up"}, "clean up expired messages", "inbox "+c.inbox.Name, n))
	}
	if err != nil && ctx.Err() == nil {
		c.door.log.WarnContext(ctx, "the clean-up of an inbox was broken off", "inbox", c.inbox.Name, "error", err)
	}
}
