package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// idlePatience is how long a stream may hear nothing; the server's heartbeat
// comes every 3 s.
const idlePatience = 6 * time.Second

// dialsMax is how many streams connect at once.
const dialsMax = 64

// idle measures what take streams cost a server that has no work for them:
// memory for each, and processor time for their heartbeats.
func (r *run) idle(ctx context.Context) error {
	s, err := r.server(ctx)
	if err != nil {
		return err
	}
	fresh, err := r.rss(ctx, s)
	if err != nil {
		return err
	}
	i := &idlers{
		addr: s.addr, queue: r.newQueue().name, dials: make(chan struct{}, dialsMax),
		beats: make([]atomic.Int64, r.opts.Streams), all: make(chan struct{}),
	}
	c, ctx := newCrew(ctx)
	c.start(r.opts.Streams, func(at int) error { return i.stay(ctx, at) })
	if err := until(ctx, "opening idle streams", i.all, i.opened.Load); err != nil {
		return c.finish(err)
	}
	return c.finish(r.measureIdle(ctx, s, i, fresh))
}

func (r *run) measureIdle(ctx context.Context, s *server, i *idlers, fresh int64) error {
	if err := gauge.Wait(ctx, r.opts.warmUp()); err != nil {
		return err
	}
	before, m := i.heard(), startMeter(s)
	if err := gauge.Wait(ctx, r.opts.Window); err != nil {
		return err
	}
	cost := m.read(0)
	silent, beats := i.since(before)
	if silent > 0 && r.opts.Window >= idlePatience {
		return fmt.Errorf("%d of %d streams heard nothing for %v", silent, r.opts.Streams, r.opts.Window)
	}
	full, err := gauge.ProcessRSS(s.pid)
	if err != nil {
		return fmt.Errorf("reading the memory of the server: %w", err)
	}
	r.figure("resident with the streams", "MiB", mebibytes(full), atMost(500))
	r.figure("resident when fresh", "MiB", mebibytes(fresh), nil)
	r.figure("growth", "KiB/stream", float64(full-fresh)/1024/float64(r.opts.Streams), nil)
	if cost.Known {
		r.figure("processor", "% of a core", cost.ServerSeconds/cost.Seconds*100, atMost(5))
	}
	r.figure("heartbeats", "1/s", float64(beats)/cost.Seconds, nil)
	r.log.printf("idle: %d streams, %.0f MiB", r.opts.Streams, mebibytes(full))
	return nil
}

// idlers are streams of a queue in which nothing happens.
type idlers struct {
	addr   site
	queue  string
	dials  chan struct{}  // one entry for each that connects
	beats  []atomic.Int64 // pieces that came, for each stream
	opened atomic.Int64
	all    chan struct{} // closed when all are open
}

// stay opens a stream and counts what comes until ctx ends.
func (i *idlers) stay(ctx context.Context, at int) error {
	i.dials <- struct{}{}
	c, err := i.open(ctx)
	<-i.dials
	if err != nil {
		return err
	}
	defer c.close()
	if i.opened.Add(1) == int64(len(i.beats)) {
		close(i.all)
	}
	for {
		c.r = c.w // whatever it is: nobody puts work in
		if err := c.fill(); err != nil {
			return fmt.Errorf("an idle stream ended: %w", err)
		}
		i.beats[at].Add(1)
	}
}

func (i *idlers) open(ctx context.Context) (*conn, error) {
	c, err := dial(ctx, i.addr)
	if err != nil {
		return nil, err
	}
	c.buf = make([]byte, 1<<10) // heartbeats are small, and there are many streams
	if _, err := c.open(takeRequest(i.addr.head(), i.queue, 1)); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (i *idlers) heard() []int64 {
	list := make([]int64, len(i.beats))
	for at := range i.beats {
		list[at] = i.beats[at].Load()
	}
	return list
}

// since counts the streams that heard nothing, and all that was heard.
func (i *idlers) since(before []int64) (silent int, beats int64) {
	for at, n := range i.heard() {
		if n == before[at] {
			silent++
		}
		beats += n - before[at]
	}
	return silent, beats
}
