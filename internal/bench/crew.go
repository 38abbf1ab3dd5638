package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// stallPatience is how long a phase may go without any progress.
const stallPatience = time.Minute

// errOver ends the context of a crew whose work is done.
var errOver = errors.New("the work is done")

// crew is a set of goroutines that end together: the first error ends the
// context of all.
type crew struct {
	wg     sync.WaitGroup
	cancel context.CancelCauseFunc
	once   sync.Once
	err    error // set once, before the context ends
}

func newCrew(ctx context.Context) (*crew, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &crew{cancel: cancel}, ctx
}

// start runs f(0) to f(n-1) as members. The returned channel closes when all
// of these have returned.
func (c *crew) start(n int, f func(i int) error) <-chan struct{} {
	var these sync.WaitGroup
	these.Add(n)
	for i := range n {
		c.wg.Go(func() {
			defer these.Done()
			if err := f(i); err != nil {
				c.fail(err)
			}
		})
	}
	done := make(chan struct{})
	c.wg.Go(func() {
		these.Wait()
		close(done)
	})
	return done
}

func (c *crew) fail(err error) {
	c.once.Do(func() {
		c.err = err
		c.cancel(err)
	})
}

// finish dismisses the crew, because of err if that is not nil: members see
// their context end, and what they return for it is ignored. It returns when
// all are gone, with the first error of all.
func (c *crew) finish(err error) error {
	c.fail(err)
	c.cancel(errOver)
	c.wg.Wait()
	return c.err
}

// until waits for done, and fails when ctx ends first or progress stands
// still for stallPatience.
func until(ctx context.Context, what string, done <-chan struct{}, progress func() int64) error {
	tick := time.NewTicker(stallPatience / 10)
	defer tick.Stop()
	last, moved := progress(), gauge.Now()
	for {
		select {
		case <-done:
			if ctx.Err() != nil { // members also end when their context does
				return context.Cause(ctx)
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if p := progress(); p != last {
				last, moved = p, gauge.Now()
			} else if gauge.Now()-moved >= stallPatience {
				return fmt.Errorf("%s: nothing has moved for %v; %d jobs were done before", what, stallPatience, p)
			}
		}
	}
}
