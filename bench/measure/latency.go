package measure

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/reprisehq/reprise/bench/system"
	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// latencyConnections share the enqueues, so that one slow answer does not keep
// the next request from leaving on time.
const latencyConnections = 8

// latency measures the time from when a job was due to be enqueued until an
// idle worker has received it. The times count from when a job was due, however
// late it left, so that a slow server cannot hide behind its own slowness.
func (r *run) latency(ctx context.Context) error {
	q, err := r.newQueue(ctx)
	if err != nil {
		return err
	}
	o := newOpenLoop(r.opts.Rate, r.opts.warmUp(), r.opts.Window)
	received := make([]time.Duration, 0, o.total)
	awake := make(chan struct{})
	q.received = func(number int64, at time.Duration) {
		if number == 0 {
			close(awake)
		} else if number >= o.first {
			received = append(received, at-o.due(number))
		}
	}
	w := r.startWorkers(ctx, q)
	var m *meter
	err = r.latencyOn(w, q, awake, func() (err error) {
		m, err = startMeter(r.server)
		return err
	}, o)
	if err := errors.Join(err, w.stop()); err != nil {
		return err
	}
	cost, err := m.read(o.total)
	if err != nil {
		return err
	}
	r.figure("enqueue to worker p50", "ms", gauge.Percentile(received, 50), cost)
	r.figure("enqueue to worker p99", "ms", gauge.Percentile(received, 99), nil)
	return r.verify(ctx, q)
}

// latencyOn sends job 0 ahead, so that workers are known to be there before
// the clock starts.
func (r *run) latencyOn(w *workers, q *queue, awake <-chan struct{}, begin func() error, o *openLoop) error {
	scout, err := r.startProducers(w.ctx, q, []load{{batch: 1, limit: 1}})
	if err != nil {
		return err
	}
	if _, err := scout.wait(); err != nil {
		return err
	}
	if err := w.until(awake); err != nil {
		return err
	}
	q.issued.Store(o.total)
	if err := begin(); err != nil {
		return err
	}
	if err := r.sendAll(w.ctx, q, o); err != nil {
		return err
	}
	return w.until(q.reach())
}

// openLoop is when jobs 1 to total-1 are due: at a fixed rate whatever the
// server does.
type openLoop struct {
	start    atomic.Int64 // set when the first is about to leave; a time.Duration
	interval time.Duration
	first    int64 // number of the first job that is measured
	total    int64
}

func newOpenLoop(rate float64, warmUp, window time.Duration) *openLoop {
	interval := time.Duration(float64(time.Second) / rate)
	return &openLoop{
		interval: interval,
		first:    1 + int64(warmUp/interval),
		total:    1 + int64((warmUp+window)/interval),
	}
}

func (o *openLoop) due(number int64) time.Duration {
	return time.Duration(o.start.Load()) + time.Duration(number)*o.interval
}

// sendAll enqueues each job when it is due.
func (r *run) sendAll(ctx context.Context, q *queue, o *openLoop) error {
	arrivals := make(chan int64, o.total) // never full
	g, ctx := errgroup.WithContext(ctx)
	for range latencyConnections {
		p, err := r.server.Producer(ctx, q.name)
		if err != nil {
			close(arrivals)
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error { return errors.Join(send(ctx, q, p, arrivals), p.Close()) })
	}
	o.start.Store(int64(gauge.Now()))
	g.Go(func() error {
		defer close(arrivals)
		return o.pace(ctx, arrivals)
	})
	return g.Wait()
}

func send(ctx context.Context, q *queue, p system.Producer, arrivals <-chan int64) error {
	payload := newPayload()
	for number := range arrivals {
		putNumber(payload, number)
		if err := p.Enqueue(ctx, slices.Clone(payload)); err != nil {
			return err
		}
		q.enqueued.Add(1)
	}
	return nil
}

// pace makes the arrivals. It sleeps in the kernel, on a thread of its own,
// because the timers of Go are up to a millisecond late.
func (o *openLoop) pace(ctx context.Context, arrivals chan<- int64) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for number := int64(1); number < o.total; number++ {
		for {
			left := o.due(number) - gauge.Now()
			if left <= 0 {
				break
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			rest := syscall.NsecToTimespec(int64(left))
			_ = syscall.Nanosleep(&rest, nil) // a signal ends it early, and the loop goes on
		}
		arrivals <- number
	}
	return nil
}
