package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

const (
	// stormBackoff waits as little as a job can say, so that the phase
	// measures failures and not patience. Under a server that counts the
	// present failure the exponent adds a second.
	stormBackoff     = `,"retry_limit":3,"backoff":{"exponent":1,"base_ms":10,"jitter_ms":0}`
	stormConnections = 64
	stormPart        = 10 // of Options.Jobs
)

// storm has every job fail once and then succeed.
type storm struct {
	queue    *queue
	settler  *settler
	failing  chan jobID
	jobs     int64
	failed   atomic.Int64
	lastFail time.Duration // when the last failure was answered; set before all closes
	all      chan struct{} // closes when all jobs have failed once
}

func (r *run) storm(ctx context.Context) error {
	s, err := r.server(ctx)
	if err != nil {
		return err
	}
	q := r.newQueue()
	st := &storm{
		queue:   q,
		settler: newSettler(q),
		failing: make(chan jobID, takeConnections*prefetch),
		all:     make(chan struct{}),
		jobs:    max(r.opts.Jobs/stormPart, 1),
	}
	if err := r.fill(ctx, s, q, st.jobs, stormBackoff); err != nil {
		return err
	}
	if err := quiet(ctx, s); err != nil {
		return err
	}
	m, start := startMeter(s), gauge.Now()
	if err := st.run(ctx, s.addr); err != nil {
		return err
	}
	took := gauge.Now() - start
	cost := m.read(st.jobs)
	if err := r.verify(ctx, s, q); err != nil {
		return err
	}
	failing := st.lastFail - start
	rate := float64(st.jobs) / failing.Seconds()
	r.figure("failures", "failures/s", rate, nil)
	r.figure("until the last job succeeded", "s", took.Seconds(), nil)
	r.figure("fail once, then succeed", "jobs/s", float64(st.jobs)/took.Seconds(), nil)
	r.cost("fail once, then succeed", cost)
	r.log.printf("storm: %s failures/s, all %s jobs done in %.1f s", thousands(rate), thousands(float64(st.jobs)), took.Seconds())
	return nil
}

func (st *storm) run(ctx context.Context, addr site) error {
	c, ctx := newCrew(ctx)
	settled := st.settler.start(ctx, c, addr)
	settle := st.settler.handler(ctx)
	c.start(takeConnections, func(int) error {
		return work(ctx, addr, st.queue, func(line []byte) error {
			attempts, ok := lineAttempts(line)
			switch {
			case ok && attempts == 0:
				return st.toFail(ctx, line)
			case ok && attempts == 1:
				return settle(line)
			default:
				return fmt.Errorf("verification: a job that failed once was delivered with other attempts: %s", clip(line))
			}
		})
	})
	c.start(stormConnections, func(int) error { return st.fail(ctx, addr) })
	progress := func() int64 { return st.failed.Load() + st.queue.done.Load() }
	err := until(ctx, "failing and succeeding", st.settler.reach(st.jobs), progress)
	if err == nil { // a job may be delivered again before its failure is answered
		err = until(ctx, "failing", st.all, progress)
	}
	if err == nil {
		st.settler.close()
		err = until(ctx, "acknowledging", settled, progress)
	}
	return c.finish(err)
}

func (st *storm) toFail(ctx context.Context, line []byte) error {
	id, ok := lineID(line)
	if !ok {
		return fmt.Errorf("a line of the take stream has no id: %s", clip(line))
	}
	select {
	case st.failing <- jobID(id):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fail reports failures over one connection until ctx ends.
func (st *storm) fail(ctx context.Context, addr site) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.close()
	request := newFailureRequest(addr.head())
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-st.failing:
			answer, err := c.roundTrip(request.of(id))
			if err != nil {
				return err
			}
			if answer.status != 200 {
				return answer.unexpected("failure of job " + string(id[:]))
			}
			if err := st.count(); err != nil {
				return err
			}
		}
	}
}

// count notes one failure that was answered. More of them than jobs means that
// the server delivers failed jobs as if they were new.
func (st *storm) count() error {
	failed := st.failed.Add(1)
	if failed > st.jobs {
		return notEqual("the number of failed attempts", failed, st.jobs)
	}
	if failed == st.jobs {
		st.lastFail = gauge.Now()
		close(st.all)
	}
	return nil
}
