package engine

import (
	"context"
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// committer is the only goroutine that decides anything, and the state that only it
// touches.
type committer struct {
	*Engine
	ids      *job.IDs
	start    uint32
	seq      block
	holders  map[string]*Holder // streams by holder name
	hungry   hungry
	queues   map[string]bool    // names seen, for max_queues
	gaveBack job.Millis         // when names of them were given back last
	leases   int                // live leases of all holders
	emptied  map[string]emptied // by queue; replaced, never changed
	watch    watch
	disk     disk
	stats    Stats
	fed      bool   // the last run left holders to be served again
	streams  [3]int // holders by job.HolderKind; of unary calls those that wait
	run      Tx
	faults   faults
	inflight chan *batch // transactions that wait for the disk
}

func (c *committer) init(e *Engine) {
	c.Engine, c.inflight = e, make(chan *batch)
	c.holders, c.queues = map[string]*Holder{}, map[string]bool{}
	c.faults = faults{jobs: map[job.ID]string{}, rest: map[resting]job.Millis{}}
}

// batch is one transaction and who waits for it.
type batch struct {
	ops    []*op
	commit store.Commit
	took   time.Duration // until the store had it
	err    error
	gifts  []gift
	sleep  time.Duration        // until the next deadline; 0 = none
	more   bool                 // there is work left that needs no new command
	told   int                  // of its commands: so many were answered
	heals  bool                 // the last one before the store is opened again; it does nothing
	tell   []func(unknown bool) // what parts have to say when it is on disk
	news   []string             // names that somebody may wait for news of
}

// gift is a delivery for a holder, handed over once the batch is on disk.
type gift struct {
	to *Holder
	d  Delivery
}

func (b *batch) final() bool { return len(b.ops) > 0 && b.ops[len(b.ops)-1].final }

// commitLoop is the committer: the only goroutine that decides anything.
func (c *committer) commitLoop() {
	defer close(c.inflight)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.commands.kick:
		case <-timer.C:
		}
		for {
			if c.health.failed.Load() && !c.heal() {
				timer.Reset(healEvery)
				if c.commands.ended() {
					for list := c.gather(); len(list) > 0; list = c.gather() {
						refuse(list, errStopped)
					}
					return
				}
				break
			}
			b := c.runOnce()
			final, sleep, more := b.final(), b.sleep, b.more
			c.inflight <- b // from here on it belongs to answers
			if final {
				c.dismiss() // also when the stop could not be written
				return
			}
			if sleep > 0 {
				timer.Reset(sleep)
			}
			if !more && !c.commands.waiting() {
				break
			}
		}
	}
}

// gather takes the next batch of commands.
func (c *committer) gather() []*op {
	most := c.opts.BatchOpsMax
	if c.faults.apart > 0 {
		c.faults.apart--
		most = 1
	}
	return c.commands.take(most, c.opts.BatchBytesMax)
}

// runOnce executes the commands that are there when the transaction begins, the
// clock's duties and deliveries, and hands the commit on. It does not wait for
// the disk.
func (c *committer) runOnce() *batch {
	b := &batch{}
	r := &c.run
	watch := startWatch()
	for again := true; again; { // without what was at fault
		b.commit, b.err = c.store.Update(context.Background(), func(tx store.Tx) error {
			r.reset(c.Engine, tx)
			r.look()
			if b.ops == nil { // the second time they are the same
				b.ops = c.gather()
			}
			return r.attempt(func() error { return r.all(b) })
		})
		f := isFault(b.err)
		again = f != nil && c.blame(b, f)
	}
	if b.err != nil {
		if b.ops == nil { // it did not even begin
			b.ops = c.gather()
		}
		c.health.fail(b.err)
		return b
	}
	if b.err = c.health.behind("publish", r.publish); b.err != nil { // what is in memory is made anew from the store
		b.gifts, r.gifts = r.gifts, nil
		return b
	}
	b.took, b.gifts, b.more, b.tell, b.news = watch.took(), r.gifts, r.fed || r.ticked, r.tell, r.news
	r.gifts = nil
	return b
}

const healEvery = time.Second

// heal opens the store again after a failed commit and recovers. It reports
// whether the engine works.
func (c *committer) heal() bool {
	if c.faults.wait {
		c.faults.wait = false
		return false
	}
	c.inflight <- &batch{heals: true} // everything before has been answered once this is taken
	list := c.gather()
	if n := len(list); n > 0 && list[n-1].final { // the stop comes after all others, and is to come yet
		c.commands.putBack(list[n-1:])
		list = list[:n-1]
	}
	refuse(list, c.health.state.Load())
	c.dismiss()
	ctx := context.Background()
	if err := c.store.Reopen(ctx); err != nil {
		c.log.Error("the store cannot be opened again; will try on", "error", err)
		return false
	}
	var err error
	if fault := c.health.behind("recover", func() { err = c.recover(ctx, func(*Tx) error { return nil }) }); fault != nil {
		err = fault
	}
	if err != nil {
		c.log.Error("recovering after a failed commit; will try on", "error", err)
		return false
	}
	c.stats.Faults += c.health.mended()
	c.log.Warn("the store works again; everything that was acknowledged is there")
	return true
}

// dismiss ends what waits for a committer that cannot serve it.
func (c *committer) dismiss() {
	for h := range c.hungry.all() {
		h.finish(ErrStreamEnded)
		h.place = nil
	}
	c.hungry = hungry{}
}
