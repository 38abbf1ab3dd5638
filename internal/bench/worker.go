package bench

import (
	"context"
	"errors"
)

// prefetch is how many jobs one take stream may hold unacknowledged.
const prefetch = 2000

// errPaused ends a worker whose jobs are no longer wanted. Its connection
// stays open, so that what it holds is not given back before the
// acknowledgements under way are answered.
var errPaused = errors.New("no more jobs wanted")

// work reads a take stream until ctx ends or handle returns errPaused.
func work(ctx context.Context, addr site, q *queue, handle func(line []byte) error) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.close()
	s, err := c.open(takeRequest(addr.head(), q.name, prefetch))
	if err != nil {
		return err
	}
	for {
		line, err := s.next()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		switch err := handle(line); {
		case errors.Is(err, errPaused):
			<-ctx.Done()
			return nil
		case err != nil:
			return err
		}
	}
}
