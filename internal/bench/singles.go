package bench

import (
	"context"
	"errors"
	"fmt"
)

// singles compares durable single enqueues with the same requests to a server
// that has no store, turn by turn, so that both see the same machine.
func (r *run) singles(ctx context.Context) error {
	for pair := 1; pair <= r.opts.Pairs; pair++ {
		if err := r.singlesPair(ctx, pair); err != nil {
			return err
		}
		if pair < r.opts.Pairs {
			if err := r.stopServers(ctx, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) singlesPair(ctx context.Context, pair int) error {
	store, err := r.server(ctx)
	if err != nil {
		return err
	}
	var null *server
	if r.opts.URL == "" {
		if null, err = r.nullServer(ctx); err != nil {
			return err
		}
	}
	q := r.newQueue()
	with, err := r.singlesOn(ctx, store, q, "store")
	if err != nil {
		return err
	}
	if err := r.verify(ctx, store, q); err != nil {
		return err
	}
	if null == nil {
		r.log.printf("singles %d/%d: %s jobs/s", pair, r.opts.Pairs, thousands(with))
		return nil
	}
	if err := quiet(ctx, store, null); err != nil {
		return err
	}
	forgotten := r.newQueue()
	without, err := r.singlesOn(ctx, null, forgotten, "null server")
	if err != nil {
		return err
	}
	if kept, err := null.count(ctx, forgotten.name); err != nil || kept != 0 {
		return errors.Join(err, fmt.Errorf("the server without a store has %d jobs, so it is nothing to compare with", kept))
	}
	if r.opts.Rate == 0 {
		r.figure("ratio store / null server", "", with/without, r.goal(atLeast(0.6)))
	}
	r.log.printf("singles %d/%d: store %s, null server %s jobs/s, ratio %.3f",
		pair, r.opts.Pairs, thousands(with), thousands(without), with/without)
	return nil
}

// goal keeps a goal that was set for durable work from a run that is not, or
// may not be.
func (r *run) goal(g *Goal) *Goal {
	if r.opts.Sync != "always" || r.opts.URL != "" {
		return nil
	}
	return g
}

// singlesOn measures one server and returns jobs a second.
func (r *run) singlesOn(ctx context.Context, s *server, q *queue, of string) (float64, error) {
	var w window
	var answered *histogram
	var err error
	if r.opts.Rate > 0 {
		w, answered, err = r.openSingles(ctx, s, q, of)
	} else {
		w, answered, err = r.enqueueFor(ctx, s, q, 1, r.opts.Connections)
	}
	if err != nil {
		return 0, err
	}
	r.figure(of, "jobs/s", w.rate, nil)
	r.figure(of+", answer p50", "ms", milliseconds(answered.percentile(50)), nil)
	r.figure(of+", answer p99", "ms", milliseconds(answered.percentile(99)), nil)
	if r.opts.Rate > 0 {
		r.figure(of+", answer p99.9", "ms", milliseconds(answered.percentile(99.9)), nil)
		r.figure(of+", answer max", "ms", milliseconds(answered.max), nil)
	}
	r.cost(of, w.cost)
	return w.rate, nil
}

// enqueueFor measures a closed loop of enqueues.
func (r *run) enqueueFor(ctx context.Context, s *server, q *queue, batch, connections int) (window, *histogram, error) {
	c, ctx := newCrew(ctx)
	st := &stage{}
	p := &producer{queue: q, batch: batch, payload: r.opts.Payload, stage: st}
	took := make([]histogram, connections)
	produced := c.start(connections, func(i int) error { return p.run(ctx, s.addr, &took[i]) })
	w, err := r.window(ctx, s, st, q.enqueued.Load)
	if err == nil {
		err = until(ctx, "enqueueing", produced, q.enqueued.Load)
	}
	return w, merged(took), c.finish(err)
}

// openSingles measures enqueues at Options.Rate.
func (r *run) openSingles(ctx context.Context, s *server, q *queue, of string) (window, *histogram, error) {
	c, ctx := newCrew(ctx)
	p := &producer{queue: q, batch: 1, payload: r.opts.Payload}
	o := newOpenLoop(p, r.opts.Rate, r.opts.warmUp(), r.opts.Window, r.opts.Connections)
	m, start := startMeter(s), now()
	o.start = start
	c.start(1, func(int) error { return o.pace(ctx) })
	sent := c.start(r.opts.Connections, func(i int) error { return o.send(ctx, s.addr, i) })
	err := until(ctx, "enqueueing", sent, q.enqueued.Load)
	took := now() - start
	if err := c.finish(err); err != nil {
		return window{}, nil, err
	}
	r.figure(of+", generator late p99", "ms", milliseconds(merged(o.late).percentile(99)), nil)
	jobs := q.enqueued.Load()
	return window{float64(jobs) / took.Seconds(), m.read(jobs)}, merged(o.answered), nil
}
