package bench

import (
	"context"
	"errors"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// openLoop enqueues jobs at a fixed rate whatever the server does. All times
// count from when a request was due, however late it left, so a slow server
// cannot hide behind its own slowness (coordinated omission).
type openLoop struct {
	producer *producer
	start    time.Duration
	interval time.Duration
	first    int64 // number of the first job that is measured
	total    int64
	arrivals chan int64

	answered []histogram // from due to answer, one per connection
	late     []histogram // from due to sending
}

// arrivalsMax is how many overdue requests an open loop keeps.
const arrivalsMax = 1 << 20

// errOverdue ends an open loop whose rate the server cannot follow at all.
var errOverdue = errors.New("the server is too slow for this rate: a million requests are overdue")

func newOpenLoop(p *producer, rate float64, warmUp, window time.Duration, connections int) *openLoop {
	interval := time.Duration(float64(time.Second) / rate)
	return &openLoop{
		producer: p,
		interval: interval,
		first:    int64(warmUp / interval),
		total:    int64((warmUp+window)/interval) + 1,
		arrivals: make(chan int64, arrivalsMax),
		answered: make([]histogram, connections),
		late:     make([]histogram, connections),
	}
}

// due is when job number must leave. The number is in the payload, so whoever
// receives the job knows this time too.
func (o *openLoop) due(number int64) time.Duration {
	return o.start + time.Duration(number)*o.interval
}

// pace makes the arrivals; start must be set.
func (o *openLoop) pace(ctx context.Context) error {
	defer close(o.arrivals)
	p, err := newPacer(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	for n := range o.total {
		if err := p.until(o.due(n)); err != nil {
			return err
		}
		select {
		case o.arrivals <- n:
		default:
			return errOverdue
		}
	}
	return nil
}

// send enqueues what arrives over one connection, one job a request.
func (o *openLoop) send(ctx context.Context, addr site, connection int) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.close()
	p := o.producer
	request := newEnqueueRequest(addr.head(), p.queue.name, 1, p.payload, p.extra)
	for number := range o.arrivals {
		due := o.due(number)
		left := gauge.Now()
		if err := p.send(c, request, number); err != nil {
			return err
		}
		if number >= o.first {
			o.late[connection].add(left - due)
			o.answered[connection].add(gauge.Now() - due)
		}
	}
	return nil
}

// merged is the sum of histograms.
func merged(all []histogram) *histogram {
	sum := &histogram{}
	for i := range all {
		sum.merge(&all[i])
	}
	return sum
}
