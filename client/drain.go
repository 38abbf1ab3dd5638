package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// drain stops the run in order: nothing more starts, what waits is given
// back, what runs may finish. The stream was closed, which leaves two things to
// care for: jobs that were on their way are lost from sight, and leases lapse
// when a worker stays away for too long. So the worker comes back to a queue
// that nobody fills. The server offers again all it believes the worker to
// hold, what it does not know is given back, and nothing new comes. Without
// open the server refused the stream, and there is none.
func (r *run) drain(ctx context.Context, open bool, executors <-chan struct{}, stopHandlers func()) error {
	running := r.halt()
	waiting := r.unstarted()
	r.opts.Events.Draining(running, len(waiting))
	for _, h := range waiting {
		r.giveBack(h)
	}
	attached, detach := context.WithCancel(ctx)
	defer detach()
	known := make(chan struct{})
	var linger sync.WaitGroup
	if open {
		linger.Go(func() { r.linger(attached, sync.OnceFunc(func() { close(known) })) })
	} else {
		close(known)
	}
	err := r.await(executors, stopHandlers)
	limit := time.NewTimer(r.opts.times.flush) // a server that only swallows what is sent
	defer limit.Stop()
	select {
	case <-known:
	case <-limit.C:
	}
	detach()
	linger.Wait()
	return err
}

// unstarted empties the queue.
func (r *run) unstarted() (list []*held) {
	for {
		select {
		case h := <-r.queue:
			list = append(list, h)
		default:
			return list
		}
	}
}

// await waits for the handlers until DrainTimeout, ends their ctx, and waits a
// little more. A handler that still does not return keeps its lease, which
// will lapse: giving the job back would have two run it at once.
func (r *run) await(executors <-chan struct{}, stopHandlers func()) error {
	patience := time.NewTimer(r.opts.DrainTimeout)
	defer patience.Stop()
	select {
	case <-executors:
		return nil
	case <-patience.C:
	}
	stopHandlers()
	grace := time.NewTimer(r.opts.times.grace)
	defer grace.Stop()
	select {
	case <-executors:
		return nil
	case <-grace.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Errorf("%d handlers did not return when the drain was over; their jobs will run again", r.running)
}

// linger keeps the worker present until ctx ends. It calls known once the
// server has offered all that the worker holds, or cannot be asked.
func (r *run) linger(ctx context.Context, known func()) {
	events := r.opts.Events
	events.Connected = func() {}
	events.Disconnected = func(err error, wait time.Duration) {
		known() // unknown ones lapse by themselves
		r.opts.Events.Disconnected(err, wait)
	}
	s := r.stream(1)
	s.events = &events
	s.queues = []string{"draining-" + r.opts.ID}
	var quiet *time.Timer
	s.connected = func() {
		r.settler.hurry()
		quiet = time.AfterFunc(r.opts.times.quiet, known)
	}
	s.beat = known
	s.deliver = func(j wire.Job) {
		quiet.Reset(r.opts.times.quiet)
		if h := r.accept(j); h != nil {
			r.giveBack(h)
		}
	}
	if s.run(ctx) != nil { // refused for good
		known()
	}
	if quiet != nil {
		quiet.Stop()
	}
}
