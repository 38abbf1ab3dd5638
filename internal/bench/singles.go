package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprisehq/reprise/internal/bench/gauge"
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
		r.log.printf("singles %d/%d: %s jobs/s", pair, r.opts.Pairs, thousands(with.rate))
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
		r.figure("ratio store / null server", "", with.rate/without.rate, r.goal(atLeast(0.6)))
		if with.cost.Known && with.cost.cpuPerJob() > 0 {
			// What the ratio would be were nothing else on the machine and the
			// disk no obstacle.
			r.figure("the same by processor time", "", without.cost.cpuPerJob()/with.cost.cpuPerJob(), nil)
		}
	}
	r.log.printf("singles %d/%d: store %s, null server %s jobs/s, ratio %.3f",
		pair, r.opts.Pairs, thousands(with.rate), thousands(without.rate), with.rate/without.rate)
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

// singlesOn measures one server.
func (r *run) singlesOn(ctx context.Context, s *server, q *queue, of string) (window, error) {
	if r.opts.Rate > 0 {
		return r.openSingles(ctx, s, q, of)
	}
	w, answered, err := r.enqueueFor(ctx, s, q, 1, r.opts.Connections)
	if err != nil {
		return window{}, err
	}
	r.reportSingles(of, w, answered)
	return w, nil
}

func (r *run) reportSingles(of string, w window, answered *histogram) {
	r.figure(of, "jobs/s", w.rate, nil)
	r.figure(of+", answer p50", "ms", milliseconds(answered.percentile(50)), nil)
	r.figure(of+", answer p99", "ms", milliseconds(answered.percentile(99)), nil)
	r.cost(of, w.cost)
}

// enqueueFor measures a closed loop of enqueues.
func (r *run) enqueueFor(ctx context.Context, s *server, q *queue, batch, connections int) (window, *histogram, error) {
	return r.enqueueWith(ctx, s, q, batch, connections, "")
}

// enqueueWith is the same with further fields of each job.
func (r *run) enqueueWith(ctx context.Context, s *server, q *queue, batch, connections int, extra string) (window, *histogram, error) {
	c, ctx := newCrew(ctx)
	st := &stage{}
	p := &producer{queue: q, batch: batch, payload: r.opts.Payload, extra: extra, stage: st}
	took := make([]histogram, connections)
	produced := c.start(connections, func(i int) error { return p.run(ctx, s.addr, &took[i]) })
	w, err := r.window(ctx, s, st, q.enqueued.Load)
	if err == nil {
		err = until(ctx, "enqueueing", produced, q.enqueued.Load)
	}
	return w, merged(took), c.finish(err)
}

// openSingles measures enqueues at Options.Rate.
func (r *run) openSingles(ctx context.Context, s *server, q *queue, of string) (window, error) {
	c, ctx := newCrew(ctx)
	p := &producer{queue: q, batch: 1, payload: r.opts.Payload}
	o := newOpenLoop(p, r.opts.Rate, r.opts.warmUp(), r.opts.Window, r.opts.Connections)
	m, start := startMeter(s), gauge.Now()
	o.start = start
	c.start(1, func(int) error { return o.pace(ctx) })
	sent := c.start(r.opts.Connections, func(i int) error { return o.send(ctx, s.addr, i) })
	err := until(ctx, "enqueueing", sent, q.enqueued.Load)
	took := gauge.Now() - start
	if err := c.finish(err); err != nil {
		return window{}, err
	}
	jobs := q.enqueued.Load()
	w := window{float64(jobs) / took.Seconds(), m.read(jobs)}
	answered := merged(o.answered)
	r.reportSingles(of, w, answered)
	r.figure(of+", answer p99.9", "ms", milliseconds(answered.percentile(99.9)), nil)
	r.figure(of+", answer max", "ms", milliseconds(answered.max), nil)
	r.figure(of+", generator late p99", "ms", milliseconds(merged(o.late).percentile(99)), nil)
	return w, nil
}
