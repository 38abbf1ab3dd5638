package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// MessageHandler handles one message of an inbox. nil is success; an error is
// noted or, inside the time to live of the message, not; Dead, Release and the
// others of this package say more. In an inbox that is ordered the messages
// behind one that failed are not handled before it was.
type MessageHandler func(ctx context.Context, m *wire.InboxMessage) error

// InboxWorkerOptions of an InboxWorker.
type InboxWorkerOptions struct {
	// Groups is how many groups are handled at the same time. 0 = 1. Messages of
	// one group are handled one after another.
	Groups int
	// Lease is how long messages stay with a worker that is not heard of any
	// more; while a handler runs they are kept. 0 = 30 s.
	Lease time.Duration
	// ID names the worker to people. "" = made from host, process and chance.
	ID string
	// Failed hears of calls that did not work; they are repeated. nil = nobody.
	Failed func(error)
}

// InboxWorker runs a handler on the messages of an inbox that is delivered to
// workers. Make it with NewInboxWorker.
type InboxWorker struct {
	client  *Client
	inbox   string
	handler MessageHandler
	opts    InboxWorkerOptions
}

// NewInboxWorker makes a worker; Run starts it.
func NewInboxWorker(c *Client, inbox string, handler MessageHandler, opts InboxWorkerOptions) (*InboxWorker, error) {
	if handler == nil || inbox == "" {
		return nil, errors.New("a worker of an inbox needs its name and a handler")
	}
	if opts.Groups < 0 || opts.Lease < 0 || opts.Lease > 0 && opts.Lease < time.Second {
		return nil, errors.New("groups cannot be negative, and a lease lasts at least a second")
	}
	opts.Groups = max(opts.Groups, 1)
	opts.Lease = cmp.Or(opts.Lease, 30*time.Second)
	opts.ID = cmp.Or(opts.ID, workerID())
	usual(&opts.Failed, func(error) {})
	return &InboxWorker{c, inbox, handler, opts}, nil
}

// Run handles messages until ctx ends; messages that were not begun then go
// back. It returns an error if the server refuses the worker for good.
func (w *InboxWorker) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for range w.opts.Groups {
		all.Go(func() {
			if err := w.follow(ctx); err != nil {
				stop(err)
			}
		})
	}
	all.Wait()
	if why := context.Cause(ctx); !errors.Is(why, ctx.Err()) {
		return why
	}
	return nil
}

func (w *InboxWorker) follow(ctx context.Context) error {
	waits := backoff{first: 250 * time.Millisecond, most: 5 * time.Second}
	wait := min(20*time.Second, w.client.opts.Timeout/2)
	for ctx.Err() == nil {
		turn, err := w.client.LeaseTurn(ctx, w.inbox, wire.InboxLease{
			Worker: w.opts.ID, LeaseMS: w.opts.Lease.Milliseconds(), WaitMS: wait.Milliseconds(),
		})
		if refused, ok := errors.AsType[*Error](err); ok && !refused.Temporary() {
			return err
		}
		if err != nil {
			if ctx.Err() == nil {
				w.opts.Failed(err)
				pause(ctx, waits.wait(), nil)
			}
			continue
		}
		waits = backoff{first: 250 * time.Millisecond, most: 5 * time.Second}
		w.handle(ctx, turn)
	}
	return nil
}

// handle handles the messages of a turn and settles each right after its own
// end, also when ctx has ended.
func (w *InboxWorker) handle(ctx context.Context, turn *wire.InboxTurn) {
	if len(turn.Messages) == 0 {
		return
	}
	keep := &keeper{client: w.client, list: turn.Messages, lease: w.opts.Lease}
	defer keep.start(context.WithoutCancel(ctx))()
	recalled := map[string]bool{}
	for i := range turn.Messages {
		m := &turn.Messages[i]
		if recalled[m.ID] { // it went back with one before it, an operator paused it, or it expired
			keep.done(1)
			continue
		}
		s := wire.Settle{Outcome: wire.OutcomeRelease}
		if ctx.Err() == nil {
			s = Outcome(guarded(func() error { return w.handler(ctx, &m.InboxMessage) }))
			if s.Outcome != wire.OutcomeOK && ctx.Err() != nil { // we stopped the handler
				s = wire.Settle{Outcome: wire.OutcomeRelease}
			}
		}
		s.ID, s.Lease = m.ID, m.Lease
		keep.done(1)
		verdicts, err := w.settle(ctx, s)
		if err != nil {
			w.opts.Failed(err)
			return // what is left lapses, and comes again
		}
		if v := verdicts[0]; v.Code != "" {
			w.opts.Failed(fmt.Errorf("settling message %s: %s (%s)", m.ID, v.Error, v.Code))
			w.look(ctx, turn.Messages[i+1:], recalled) // what the verdict would tell
		}
		for _, id := range verdicts[0].Recalled {
			recalled[id] = true
		}
	}
}

func (w *InboxWorker) settle(ctx context.Context, s wire.Settle) (verdicts []wire.Verdict, err error) {
	err = w.client.repeat(ctx, true, func() (err error) {
		verdicts, err = w.client.Settle(context.WithoutCancel(ctx), []wire.Settle{s})
		return err
	})
	return verdicts, err
}

// look finds out which messages are not ours any more.
func (w *InboxWorker) look(ctx context.Context, list []wire.InboxLeased, recalled map[string]bool) {
	if len(list) == 0 {
		return
	}
	verdicts, err := w.client.Extend(context.WithoutCancel(ctx), extensions(list, w.opts.Lease))
	if err != nil {
		return // it shows when they are settled
	}
	for _, v := range verdicts {
		if v.Code != "" {
			recalled[v.ID] = true
		}
	}
}

func extensions(list []wire.InboxLeased, lease time.Duration) []wire.Extension {
	out := make([]wire.Extension, len(list))
	for i, m := range list {
		out[i] = wire.Extension{ID: m.ID, Lease: m.Lease, MS: lease.Milliseconds()}
	}
	return out
}

// keeper prolongs the leases of a turn that goes on.
type keeper struct {
	client *Client
	lease  time.Duration

	mu   sync.Mutex
	list []wire.InboxLeased // those that are not settled yet
}

// start begins; what it returns ends it.
func (k *keeper) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var loop sync.WaitGroup
	loop.Go(func() {
		for pause(ctx, k.lease/3, nil) {
			k.mu.Lock()
			list := extensions(k.list, k.lease)
			k.mu.Unlock()
			if len(list) > 0 {
				_, _ = k.client.Extend(ctx, list) // what a lease is worth shows when it is settled
			}
		}
	})
	return func() { cancel(); loop.Wait() }
}

// done tells that the first n are settled.
func (k *keeper) done(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = k.list[n:]
}

// DecodeMessage reads the payload of a message into v.
func DecodeMessage(m *wire.InboxMessage, v any) error {
	if err := json.Unmarshal(m.Payload, v); err != nil {
		return fmt.Errorf("reading the payload: %w", err)
	}
	return nil
}
