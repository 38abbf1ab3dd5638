package bench

import (
	"context"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// restart measures how long a server with a backlog is away: once after it was
// asked to end, once after it was killed.
func (r *run) restart(ctx context.Context) error {
	s, err := r.server(ctx)
	if err != nil {
		return err
	}
	q := r.newQueue()
	if err := r.fill(ctx, s, q, r.opts.Jobs, ""); err != nil {
		return err
	}
	before := gauge.Now()
	if err := s.stop(); err != nil {
		return err
	}
	r.figure("SIGTERM to exit", "s", (gauge.Now() - before).Seconds(), nil)
	if s, err = r.again(ctx, s, q, "after SIGTERM"); err != nil {
		return err
	}
	s.kill()
	_, err = r.again(ctx, s, q, "after SIGKILL")
	return err
}

// again starts a new server on the directory of one that has ended.
func (r *run) again(ctx context.Context, ended *server, q *queue, after string) (*server, error) {
	r.servers = nil // the directory now belongs to the new one
	s, err := r.serverIn(ctx, ended.dir)
	if err != nil {
		return nil, err
	}
	got, err := r.firstJob(ctx, s, q)
	if err != nil {
		return nil, err
	}
	listening, first := (s.listening - s.started).Seconds(), (got - s.started).Seconds()
	r.figure(after+", exec to listening", "s", listening, atMost(5))
	r.figure(after+", exec to first job", "s", first, atMost(5))
	r.log.printf("restart %s: listening after %.2f s, first job after %.2f s", after, listening, first)
	return s, r.verify(ctx, s, q)
}

// firstJob takes one job, gives it back by leaving, and returns when it came.
func (r *run) firstJob(ctx context.Context, s *server, q *queue) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	c, err := dial(ctx, s.addr)
	if err != nil {
		return 0, err
	}
	defer c.close()
	stream, err := c.open(takeRequest(s.addr.head(), q.name, 1))
	if err != nil {
		return 0, err
	}
	_, err = stream.next()
	return gauge.Now(), err
}
