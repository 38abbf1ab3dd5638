package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

func reprise(sync string, class Class) System {
	return System{
		Name:         "Reprise " + sync,
		Class:        class,
		Durability:   "serve --sync " + sync,
		Bulk:         "API",
		Workers:      fmt.Sprintf("%d workers of the Go client, each %d handlers, prefetch %d", Takers, HandlersEach, PrefetchEach),
		Retry:        "the handler asks for it (RetryIn)",
		AcksAnswered: true,
		Install: func(ctx context.Context, env *Env) (string, error) {
			text, err := env.output(ctx, "", env.Reprise, "version")
			return text + ", its own Go client", err
		},
		New: func(env *Env, dir string) Server {
			return &repriseServer{program: env.Reprise, sync: sync, dir: dir, daemon: daemon{signal: syscall.SIGTERM}}
		},
	}
}

type repriseServer struct {
	daemon
	program, sync, dir string
	client             *client.Client
}

func (s *repriseServer) Start(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	if s.client, err = client.New("http://127.0.0.1:"+strconv.Itoa(port), client.Options{}); err != nil {
		return err
	}
	return s.run(ctx, command{
		program: s.program,
		args:    []string{"serve", "--port", strconv.Itoa(port), "--root-dir", filepath.Join(s.dir, "root"), "--sync", s.sync},
	}, s.client.Ready)
}

func (s *repriseServer) Stop() error {
	if s.client != nil {
		s.client.Close()
	}
	return s.daemon.Stop()
}

func (s *repriseServer) Create(context.Context, string) error { return nil }

// Producer shares one client, as the client's documentation says; it keeps a
// connection for each caller.
func (s *repriseServer) Producer(_ context.Context, queue string) (Producer, error) {
	return &repriseProducer{client: s.client, queue: queue}, nil
}

type repriseProducer struct {
	client *client.Client
	queue  string
	jobs   []client.Job
}

func (p *repriseProducer) Enqueue(ctx context.Context, payload []byte) error {
	_, err := p.client.Enqueue(ctx, p.job(payload))
	return err
}

func (p *repriseProducer) EnqueueBulk(ctx context.Context, payloads [][]byte) error {
	p.jobs = p.jobs[:0]
	for _, payload := range payloads {
		p.jobs = append(p.jobs, p.job(payload))
	}
	_, err := p.client.EnqueueBulk(ctx, p.jobs)
	return err
}

func (p *repriseProducer) job(payload []byte) client.Job {
	return client.Job{Queue: p.queue, Type: "bench", Payload: json.RawMessage(payload)}
}

func (p *repriseProducer) Close() error { return nil }

func (s *repriseServer) Work(ctx context.Context, queue string, h Handler) error {
	var refused atomic.Int64
	handle := func(_ context.Context, d *client.Delivery) error {
		if err := h.Handle(d.Job.Payload); err != nil {
			return client.RetryIn(err, RetryDelay)
		}
		return nil
	}
	events := client.Events{
		Settled: func(settle wire.Settle, _ wire.Verdict) {
			if settle.Outcome == wire.OutcomeOK {
				h.Acknowledged(1)
			}
		},
		Refused: func(wire.Settle, wire.Verdict) { refused.Add(1) },
	}
	g, ctx := errgroup.WithContext(ctx)
	for range Takers {
		w, err := client.NewWorker(s.client, handle, client.WorkerOptions{
			Queues: []string{queue}, Concurrency: HandlersEach, Prefetch: PrefetchEach, Events: events,
		})
		if err != nil {
			return err
		}
		g.Go(func() error { return w.Run(ctx) })
	}
	err := g.Wait()
	if n := refused.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d acknowledgements were refused", n))
	}
	return err
}

func (s *repriseServer) Count(ctx context.Context, queue string) (int64, error) {
	return s.client.Count(ctx, client.Filter{
		Queues: []string{queue}, Statuses: []string{wire.Scheduled, wire.Ready, wire.InFlight},
	})
}
