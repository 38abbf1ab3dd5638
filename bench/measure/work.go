package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/internal/bench/gauge"
)

const (
	steadyBatch    = 50
	steadyBulks    = 4
	steadySingles  = 16
	steadyUnderWay = 20_000
)

// workers are those of one queue.
type workers struct {
	ctx    context.Context //nolint:containedctx // ends when they fail, for whoever waits meanwhile
	cancel context.CancelCauseFunc
	ended  chan error
}

var errStopped = errors.New("the workers were told to stop")

func (r *run) startWorkers(ctx context.Context, q *queue) *workers {
	w := &workers{ended: make(chan error, 1)}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	go func() {
		err := r.server.Work(w.ctx, q.name, q)
		if err != nil {
			err = fmt.Errorf("working: %w", err)
		} else if w.ctx.Err() == nil {
			err = errors.New("the workers ended by themselves")
		}
		w.ended <- err
		w.cancel(err)
	}()
	return w
}

// stop returns when no worker is left.
func (w *workers) stop() error {
	w.cancel(errStopped)
	return <-w.ended
}

// until waits for done, or the end of the workers.
func (w *workers) until(done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// steady measures producers and workers at once.
func (r *run) steady(ctx context.Context) error {
	w, err := r.steadyRate(ctx)
	r.rate = w.rate
	return err
}

// backlog is steady while the jobs of memory wait in another queue.
func (r *run) backlog(ctx context.Context) error {
	w, err := r.steadyRate(ctx)
	if err == nil && r.rate > 0 {
		r.figure("ratio to steady", "", w.rate/r.rate, nil)
	}
	return err
}

// steadyRate measures a closed loop: at most steadyUnderWay jobs are between
// enqueue and acknowledgement. Afterwards the queue is drained.
func (r *run) steadyRate(ctx context.Context) (window, error) {
	q, err := r.newQueue(ctx)
	if err != nil {
		return window{}, err
	}
	st := &stage{}
	q.credit = gauge.NewCredit(steadyUnderWay)
	workers := r.startWorkers(ctx, q)
	defer q.credit.EndWith(workers.ctx)()
	loads := slices.Repeat([]load{{batch: 1, stage: st, credit: q.credit}}, steadySingles+steadyBulks)
	if r.system.Bulk != "" {
		for i := range steadyBulks {
			loads[i].batch = steadyBatch
		}
	}
	p, err := r.startProducers(workers.ctx, q, loads)
	if err != nil {
		return window{}, errors.Join(err, workers.stop())
	}
	w, err := r.window(p.ctx, st, q.acknowledged.Load)
	_, wrong := p.wait()
	err = errors.Join(wrong, err)
	if err == nil {
		err = workers.until(q.reach())
	}
	if err := errors.Join(err, workers.stop()); err != nil {
		return w, err
	}
	r.figure("end to end", "jobs/s", w.rate, w.cost)
	return w, r.verify(ctx, q)
}

// drain measures how fast workers empty the queue that memory has filled. The
// clock starts with the first delivery.
func (r *run) drain(ctx context.Context) error {
	d, err := r.drainFor(ctx, r.waiting, drainWindows*r.opts.Window)
	if err != nil {
		return err
	}
	r.figure("take and acknowledge", "jobs/s", float64(d.jobs)/d.took.Seconds(), d.cost)
	return nil
}

// storm has every job fail once and then succeed.
func (r *run) storm(ctx context.Context) error {
	if r.system.Retry == "" {
		return errNotApplicable
	}
	q, err := r.newQueue(ctx)
	if err != nil {
		return err
	}
	q.failFirst, q.failedAt, q.waited = true, make(map[int64]time.Duration, r.opts.Storm), phasePatience
	if err := r.fill(ctx, q, r.opts.Storm, stormWindows*r.opts.Window); err != nil {
		return err
	}
	if err := quiet(ctx, r.server); err != nil {
		return err
	}
	d, err := r.drainFor(ctx, q, phasePatience)
	if err != nil {
		return err
	}
	r.figure("fail once, wait, succeed", "jobs/s", float64(d.jobs)/d.took.Seconds(), d.cost)
	r.figure("shortest wait", "s", q.waited.Seconds(), nil)
	r.figure("jobs that failed", "jobs", float64(d.jobs), nil)
	return nil
}

// drained is what workers did to a queue.
type drained struct {
	jobs int64
	took time.Duration // since the first delivery
	cost *result.Cost
}

// drainFor takes and acknowledges all that a queue has, or what can be done in
// the time given. All of it ends with the last answer to an acknowledgement, or
// where those are not answered, when the server says that the queue is empty.
func (r *run) drainFor(ctx context.Context, q *queue, most time.Duration) (d drained, err error) {
	m, err := startMeter(r.server)
	if err != nil {
		return d, err
	}
	before, _, _ := q.counts()
	q.expectFirst()
	reached := q.reach()
	w := r.startWorkers(ctx, q)
	enough := time.NewTimer(most)
	defer enough.Stop()
	select {
	case <-reached:
		if !r.system.AcksAnswered {
			err = r.verify(ctx, q)
		}
	case <-enough.C:
	case <-w.ctx.Done():
		err = context.Cause(w.ctx)
	}
	after, _, _ := q.counts()
	d.jobs, d.took = after-before, gauge.Now()-q.firstAt()
	if err == nil {
		d.cost, err = m.read(d.jobs)
	}
	if err := errors.Join(err, w.stop()); err != nil {
		return d, err
	}
	if d.jobs == 0 {
		return d, errors.New("not a single job was delivered")
	}
	return d, r.verify(ctx, q)
}
