package bench

import (
	"context"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// producer enqueues jobs; each of its goroutines has a connection of its own.
type producer struct {
	queue   *queue
	batch   int // jobs per request; 1 uses POST /jobs, more POST /jobs/bulk
	payload int
	extra   string        // further fields of each job, see newEnqueueRequest
	stage   *stage        // says when to stop; nil: at the limit
	limit   int64         // numbers to use up, counted over the whole queue
	credit  *gauge.Credit // jobs that may be under way; nil: any number
}

// run enqueues in a closed loop: the next request leaves when the last one was
// answered. took receives the time of each answer while measuring.
func (p *producer) run(ctx context.Context, addr site, took *histogram) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.close()
	request := newEnqueueRequest(addr.head(), p.queue.name, p.batch, p.payload, p.extra)
	for {
		at := warming
		if p.stage != nil {
			if at = p.stage.at.Load(); at == stopped {
				return nil
			}
		}
		if p.credit != nil && !p.credit.Acquire(int64(p.batch)) {
			return nil
		}
		first := p.queue.issue(p.batch)
		if p.limit > 0 && first+int64(p.batch) > p.limit {
			return p.last(c, addr, first)
		}
		sent := gauge.Now()
		if err := p.send(c, request, first); err != nil {
			return err
		}
		if at == measuring {
			took.add(gauge.Now() - sent)
		}
	}
}

// last sends what a whole batch would exceed the limit with.
func (p *producer) last(c *conn, addr site, first int64) error {
	if first >= p.limit {
		return nil
	}
	request := newEnqueueRequest(addr.head(), p.queue.name, int(p.limit-first), p.payload, p.extra)
	return p.send(c, request, first)
}

func (p *producer) send(c *conn, request *enqueueRequest, first int64) error {
	request.number(first)
	answer, err := c.roundTrip(request.bytes)
	if err != nil {
		return err
	}
	if answer.status != 201 {
		return answer.unexpected("enqueue")
	}
	p.queue.enqueued.Add(int64(len(request.numbers)))
	return nil
}
