package bench

import "context"

// backlog compares the steady state of an empty server with that of one that
// has many jobs waiting: in another queue, and in the same.
func (r *run) backlog(ctx context.Context) error {
	empty, err := r.server(ctx)
	if err != nil {
		return err
	}
	full := empty
	if r.opts.URL == "" {
		if full, err = r.server(ctx); err != nil {
			return err
		}
	}
	b := &backlog{run: r, empty: empty, full: full, waiting: r.newQueue()}
	if full != empty {
		return b.interleaved(ctx)
	}
	return b.inTurn(ctx)
}

type backlog struct {
	run         *run
	empty, full *server
	waiting     *queue
}

// interleaved takes the three measurements turn by turn.
func (b *backlog) interleaved(ctx context.Context) error {
	if err := b.fill(ctx); err != nil {
		return err
	}
	for range b.run.opts.Pairs {
		reference, err := b.measure(ctx, "empty queue", b.empty, b.run.newQueue(), false)
		if err != nil {
			return err
		}
		if err := b.compare(ctx, reference); err != nil {
			return err
		}
	}
	return nil
}

// inTurn is for a single server, which can be empty only at first.
func (b *backlog) inTurn(ctx context.Context) error {
	references := make([]float64, b.run.opts.Pairs)
	for i := range references {
		var err error
		if references[i], err = b.measure(ctx, "empty queue", b.empty, b.run.newQueue(), false); err != nil {
			return err
		}
	}
	if err := b.fill(ctx); err != nil {
		return err
	}
	for _, reference := range references {
		if err := b.compare(ctx, reference); err != nil {
			return err
		}
	}
	return nil
}

func (b *backlog) fill(ctx context.Context) error {
	return b.run.fill(ctx, b.full, b.waiting, b.run.opts.Jobs, "")
}

// compare measures with the backlog and notes the ratios to the reference.
func (b *backlog) compare(ctx context.Context, reference float64) error {
	r := b.run
	other, err := b.measure(ctx, "backlog in another queue", b.full, r.newQueue(), false)
	if err != nil {
		return err
	}
	same, err := b.measure(ctx, "backlog in the same queue", b.full, b.waiting, true)
	if err != nil {
		return err
	}
	r.figure("ratio another queue / empty", "", other/reference, r.goal(atLeast(0.8)))
	r.figure("ratio same queue / empty", "", same/reference, r.goal(atLeast(0.8)))
	r.log.printf("backlog: empty %s, another queue %s, same queue %s jobs/s",
		thousands(reference), thousands(other), thousands(same))
	return nil
}

func (b *backlog) measure(ctx context.Context, of string, s *server, q *queue, keep bool) (float64, error) {
	if err := quiet(ctx, b.empty, b.full); err != nil {
		return 0, err
	}
	w, err := b.run.steadyOn(ctx, s, q, keep)
	if err != nil {
		return 0, err
	}
	b.run.figure(of, "jobs/s", w.rate, nil)
	b.run.cost(of, w.cost)
	return w.rate, nil
}
