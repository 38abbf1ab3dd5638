package bench

import (
	"context"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// latencyConnections share the enqueues, so that one slow answer does not keep
// the next request from leaving on time.
const latencyConnections = 8

// latency measures the time from when a job was due to be enqueued until an
// idle worker has received it.
func (r *run) latency(ctx context.Context) error {
	s, err := r.server(ctx)
	if err != nil {
		return err
	}
	rate := r.opts.Rate
	if rate == 0 {
		rate = LatencyRate
	}
	q := r.newQueue()
	o := newOpenLoop(&producer{queue: q, batch: 1, payload: r.opts.Payload},
		rate, r.opts.warmUp(), r.opts.Window, latencyConnections)
	received := &histogram{}
	m := startMeter(s)
	if err := r.latencyOn(ctx, s, o, received); err != nil {
		return err
	}
	r.cost("enqueue to worker", m.read(q.done.Load()))
	if err := r.verify(ctx, s, q); err != nil {
		return err
	}
	r.reportLatency(o, received, rate)
	return nil
}

func (r *run) latencyOn(ctx context.Context, s *server, o *openLoop, received *histogram) error {
	c, ctx := newCrew(ctx)
	q := o.producer.queue
	settler := newSettler(q)
	settled := settler.start(ctx, c, s.addr)
	settle := settler.handler(ctx)
	o.start = gauge.Now()
	c.start(1, func(int) error {
		return work(ctx, s.addr, q, func(line []byte) error {
			at := gauge.Now()
			if number, ok := lineSequence(line); ok && number >= o.first {
				received.add(at - o.due(number))
			}
			return settle(line)
		})
	})
	c.start(1, func(int) error { return o.pace(ctx) })
	sent := c.start(latencyConnections, func(i int) error { return o.send(ctx, s.addr, i) })
	err := until(ctx, "enqueueing", sent, q.enqueued.Load)
	if err == nil {
		err = until(ctx, "receiving", settler.reach(q.enqueued.Load()), q.done.Load)
	}
	if err == nil {
		settler.close()
		err = until(ctx, "acknowledging", settled, q.done.Load)
	}
	return c.finish(err)
}

func (r *run) reportLatency(o *openLoop, received *histogram, rate float64) {
	figures := []struct {
		name string
		p    float64
		goal *Goal
	}{
		{"enqueue to worker p50", 50, nil},
		{"enqueue to worker p95", 95, nil},
		{"enqueue to worker p99", 99, nil},
		{"enqueue to worker p99.9", 99.9, nil},
		{"enqueue to worker max", 100, nil},
	}
	if rate <= LatencyRate {
		figures[2].goal = r.goal(atMost(5))
	}
	for _, f := range figures {
		r.figure(f.name, "ms", milliseconds(received.percentile(f.p)), f.goal)
	}
	r.figure("enqueue to answer p99", "ms", milliseconds(merged(o.answered).percentile(99)), nil)
	r.figure("generator late p99", "ms", milliseconds(merged(o.late).percentile(99)), nil)
	r.log.printf("latency at %.0f/s: p50 %.2f ms, p99 %.2f ms", rate,
		milliseconds(received.percentile(50)), milliseconds(received.percentile(99)))
}
