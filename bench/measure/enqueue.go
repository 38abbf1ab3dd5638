package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/bench/system"
	"github.com/reprisehq/reprise/internal/bench/gauge"
)

const bulkBatch = 500

// singles measures single enqueues.
func (r *run) singles(ctx context.Context) error {
	return r.enqueueFor(ctx, 1, r.opts.Connections, "single enqueues")
}

// bulk measures enqueues in batches, where the client has a way to do that.
func (r *run) bulk(ctx context.Context) error {
	if r.system.Bulk == "" {
		return errNotApplicable
	}
	return r.enqueueFor(ctx, bulkBatch, r.opts.BulkConnections, fmt.Sprintf("batches of %d", bulkBatch))
}

func (r *run) enqueueFor(ctx context.Context, batch, connections int, name string) error {
	q, err := r.newQueue(ctx)
	if err != nil {
		return err
	}
	st := &stage{}
	p, err := r.startProducers(ctx, q, slices.Repeat([]load{{batch: batch, stage: st}}, connections))
	if err != nil {
		return err
	}
	w, err := r.window(p.ctx, st, q.enqueued.Load)
	took, wrong := p.wait()
	if err := errors.Join(wrong, err); err != nil {
		return err
	}
	r.figure(name, "jobs/s", w.rate, w.cost)
	r.figure("answer p50", "ms", gauge.Percentile(took, 50), nil)
	r.figure("answer p99", "ms", gauge.Percentile(took, 99), nil)
	return r.verify(ctx, q)
}

// fill enqueues so many jobs as fast as the client can, or what it can in the
// time given, outside of any measurement.
func (r *run) fill(ctx context.Context, q *queue, jobs int64, most time.Duration) error {
	st := &stage{}
	l, connections := load{batch: bulkBatch, limit: jobs, stage: st}, r.opts.BulkConnections
	if r.system.Bulk == "" {
		l.batch, connections = 1, r.opts.Connections
	}
	start := gauge.Now()
	p, err := r.startProducers(ctx, q, slices.Repeat([]load{l}, connections))
	if err != nil {
		return err
	}
	defer time.AfterFunc(most, func() { st.at.Store(stopped) }).Stop()
	if _, err := p.wait(); err != nil {
		return err
	}
	r.opts.Log("%-24s %-8s %d jobs enqueued in %.1f s", r.system.Name, r.phase, q.enqueued.Load(), (gauge.Now() - start).Seconds())
	return r.verify(ctx, q)
}

// producers are closed loops that run until their loads say so, or the first
// error.
type producers struct {
	group *errgroup.Group
	ctx   context.Context //nolint:containedctx // ends with the first error of the group, for whoever waits meanwhile
	mu    sync.Mutex
	took  []time.Duration
}

// startProducers opens all connections before the first enqueue.
func (r *run) startProducers(ctx context.Context, q *queue, loads []load) (*producers, error) {
	open := make([]system.Producer, 0, len(loads))
	for range loads {
		p, err := r.server.Producer(ctx, q.name)
		if err != nil {
			for _, p := range open {
				err = errors.Join(err, p.Close())
			}
			return nil, fmt.Errorf("opening a producer: %w", err)
		}
		open = append(open, p)
	}
	all := &producers{}
	all.group, all.ctx = errgroup.WithContext(ctx)
	for i, l := range loads {
		all.group.Go(func() error {
			took, err := q.produce(all.ctx, open[i], l)
			all.mu.Lock()
			all.took = append(all.took, took...)
			all.mu.Unlock()
			return errors.Join(err, open[i].Close())
		})
	}
	return all, nil
}

// wait returns when all producers have, with the times of their answers.
func (p *producers) wait() ([]time.Duration, error) {
	err := p.group.Wait()
	return p.took, err
}

// window is one measured stretch of a timed phase.
type window struct {
	rate float64 // jobs a second
	cost *result.Cost
}

// window lets a phase that is running warm up, measures it and stops its
// producers. It grows longer than Options.Window when by then nothing was done.
func (r *run) window(ctx context.Context, st *stage, count func() int64) (window, error) {
	defer st.at.Store(stopped)
	if err := gauge.Wait(ctx, r.opts.warmUp()); err != nil {
		return window{}, err
	}
	st.at.Store(measuring)
	m, err := startMeter(r.server)
	if err != nil {
		return window{}, err
	}
	before, start := count(), gauge.Now()
	for {
		if err := gauge.Wait(ctx, r.opts.Window); err != nil {
			return window{}, err
		}
		if jobs, took := count()-before, gauge.Now()-start; jobs > 0 {
			cost, err := m.read(jobs)
			return window{float64(jobs) / took.Seconds(), cost}, err
		}
	}
}
