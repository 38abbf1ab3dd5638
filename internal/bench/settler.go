package bench

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

const (
	// ackIDsMax is how many ids go into one acknowledgement, as the official
	// clients do.
	ackIDsMax = 1000
	// ackPatience is how long an acknowledgement that is not full waits for
	// more ids: between one and two of these.
	ackPatience = time.Millisecond
)

// settler acknowledges jobs in bulk over connections of its own. The one mutex
// also guards the ledger of the queue, so that a job is noted as delivered and
// put into an acknowledgement in one step.
type settler struct {
	queue  *queue
	credit *gauge.Credit // gets back what was acknowledged; nil: no one waits for it
	goal   atomic.Int64  // reached closes when so many jobs of the queue are done; 0: never

	mu      sync.Mutex
	current *ackRequest
	fresh   bool // current grew since the last tick
	closed  bool
	ready   chan *ackRequest // full ones, to be sent
	spare   chan *ackRequest // sent ones, to be used again

	reached chan struct{}
	once    sync.Once
}

// ackRequestsMax bounds the acknowledgements in being, and thereby how far
// readers can run ahead of the answers.
const ackRequestsMax = 64

func newSettler(q *queue) *settler {
	s := &settler{
		queue:   q,
		ready:   make(chan *ackRequest, ackRequestsMax),
		spare:   make(chan *ackRequest, ackRequestsMax),
		reached: make(chan struct{}),
	}
	for range ackRequestsMax {
		s.spare <- &ackRequest{}
	}
	return s
}

// add takes a delivered job. It returns false when the settler is closed: the
// job then counts as not delivered.
func (s *settler) add(ctx context.Context, line []byte) (bool, error) {
	id, ok := lineID(line)
	if !ok {
		return false, fmt.Errorf("a line of the take stream has no id: %s", clip(line))
	}
	number, ok := lineSequence(line)
	if !ok {
		return false, fmt.Errorf("a delivered job does not carry our payload: %s", clip(line))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, nil
	}
	if !s.queue.seen.Mark(number) {
		return false, fmt.Errorf("verification: job %s (number %d) of queue %s was delivered twice", id, number, s.queue.name)
	}
	if s.current == nil {
		select {
		case s.current = <-s.spare:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		s.current.reset()
	}
	s.current.add(id)
	s.fresh = true
	if s.current.ids == ackIDsMax {
		s.handOver()
	}
	return true, nil
}

// handOver passes the current request on; the channel has room for all there
// are. The mutex is held.
func (s *settler) handOver() {
	if s.current != nil {
		s.ready <- s.current
		s.current = nil
	}
}

// tick hands over what stopped growing, until ctx ends.
func (s *settler) tick(ctx context.Context) error {
	t := time.NewTicker(ackPatience)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		s.mu.Lock()
		if !s.fresh {
			s.handOver()
		}
		s.fresh = false
		s.mu.Unlock()
	}
}

// close stops taking jobs and hands over the rest. Goroutines in run return
// when all acknowledgements are answered.
func (s *settler) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.handOver()
	close(s.ready)
}

// run sends acknowledgements over one connection until the settler is closed.
func (s *settler) run(ctx context.Context, addr site) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.close()
	for {
		var r *ackRequest
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r = <-s.ready:
		}
		if r == nil {
			return nil
		}
		ids := int64(r.ids)
		answer, err := c.roundTrip(r.finish(addr.head()))
		if err != nil {
			return err
		}
		if answer.status == 422 {
			return fmt.Errorf("verification: the server does not know %d of %d jobs it delivered: %s",
				bytes.Count(answer.body, []byte(`",`))+1, ids, clip(answer.body))
		}
		if answer.status != 204 {
			return answer.unexpected("bulk acknowledgement")
		}
		s.spare <- r
		s.settled(ids)
	}
}

func (s *settler) settled(ids int64) {
	s.queue.done.Add(ids)
	if s.credit != nil {
		s.credit.Release(ids)
	}
	s.compare()
}

// reach returns a channel that closes when the queue has so many jobs done.
// It is called once.
func (s *settler) reach(jobs int64) <-chan struct{} {
	s.goal.Store(jobs)
	s.compare()
	return s.reached
}

func (s *settler) compare() {
	if goal := s.goal.Load(); goal > 0 && s.queue.done.Load() >= goal {
		s.once.Do(func() { close(s.reached) })
	}
}

// start runs the settler on ackConnections connections. The returned channel
// closes when it was closed and all acknowledgements are answered.
func (s *settler) start(ctx context.Context, c *crew, addr site) <-chan struct{} {
	c.start(1, func(int) error { return s.tick(ctx) })
	return c.start(ackConnections, func(int) error { return s.run(ctx, addr) })
}

// handler makes a worker settle each job as soon as it is delivered.
func (s *settler) handler(ctx context.Context) func(line []byte) error {
	return func(line []byte) error {
		taken, err := s.add(ctx, line)
		if err == nil && !taken {
			return errPaused
		}
		return err
	}
}
