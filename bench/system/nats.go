package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// natsJetStream is JetStream with a work-queue stream of one replica in files.
func natsJetStream(sync string, class Class) System {
	durability := "sync_interval: " + sync
	if sync == "default" {
		durability = "sync_interval: 2m (its default)"
	}
	return System{
		Name:       "NATS JetStream " + sync,
		Class:      class,
		Durability: durability,
		Bulk:       "pipelined",
		Workers: fmt.Sprintf("%d connections, each Consume with PullMaxMessages %d; Ack is not answered",
			Takers, PrefetchEach),
		Retry: "NakWithDelay",
		Install: func(ctx context.Context, env *Env) (string, error) {
			program, err := env.build(ctx, "github.com/nats-io/nats-server/v2", "nats-server")
			if err != nil {
				return "", err
			}
			text, err := env.output(ctx, "", program, "--version")
			return text + ", nats.go " + moduleVersion("github.com/nats-io/nats.go"), err
		},
		New: func(env *Env, dir string) Server {
			return &natsServer{program: filepath.Join(env.Tools, "nats-server"), sync: sync, dir: dir, daemon: daemon{signal: syscall.SIGTERM}}
		},
	}
}

type natsServer struct {
	daemon
	program, sync, dir, url string
}

func (s *natsServer) Start(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	config := fmt.Sprintf("listen: \"127.0.0.1:%d\"\njetstream {\n  store_dir: %q\n", port, filepath.Join(s.dir, "store"))
	if s.sync != "default" {
		config += "  sync_interval: " + s.sync + "\n"
	}
	path := filepath.Join(s.dir, "nats.conf")
	if err := os.WriteFile(path, []byte(config+"}\n"), 0o600); err != nil {
		return err
	}
	s.url = "nats://127.0.0.1:" + strconv.Itoa(port)
	return s.run(ctx, command{program: s.program, args: []string{"-c", path}}, func(ctx context.Context) error {
		c, js, err := s.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = js.AccountInfo(ctx)
		return err
	})
}

func (s *natsServer) connect(options ...jetstream.JetStreamOpt) (*nats.Conn, jetstream.JetStream, error) {
	c, err := nats.Connect(s.url, nats.NoReconnect())
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(c, options...)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, js, nil
}

const (
	natsWorkers = "workers" // the one consumer of each stream
	natsAckWait = 2 * time.Minute
)

func (s *natsServer) Create(ctx context.Context, queue string) error {
	c, js, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: queue, Subjects: []string{queue}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
	})
	if err != nil {
		return err
	}
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: natsWorkers, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: natsAckWait, MaxAckPending: 2 * Takers * PrefetchEach,
	})
	return err
}

// natsPendingMax is more than one bulk.
const natsPendingMax = 4096

func (s *natsServer) Producer(_ context.Context, queue string) (Producer, error) {
	c, js, err := s.connect(jetstream.WithPublishAsyncMaxPending(natsPendingMax))
	if err != nil {
		return nil, err
	}
	return &natsProducer{conn: c, stream: js, subject: queue}, nil
}

type natsProducer struct {
	conn    *nats.Conn
	stream  jetstream.JetStream
	subject string
}

func (p *natsProducer) Enqueue(ctx context.Context, payload []byte) error {
	_, err := p.stream.Publish(ctx, p.subject, payload)
	return err
}

func (p *natsProducer) EnqueueBulk(ctx context.Context, payloads [][]byte) error {
	answers := make([]jetstream.PubAckFuture, len(payloads))
	for i, payload := range payloads {
		answer, err := p.stream.PublishAsync(p.subject, payload)
		if err != nil {
			return err
		}
		answers[i] = answer
	}
	for _, answer := range answers {
		select {
		case <-answer.Ok():
		case err := <-answer.Err():
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (p *natsProducer) Close() error {
	p.conn.Close()
	return nil
}

func (s *natsServer) Work(ctx context.Context, queue string, h Handler) error {
	g, ctx := errgroup.WithContext(ctx)
	for range Takers {
		g.Go(func() error { return s.take(ctx, queue, h) })
	}
	return g.Wait()
}

func (s *natsServer) take(ctx context.Context, queue string, h Handler) (err error) {
	c, js, err := s.connect()
	if err != nil {
		return err
	}
	defer func() { // the last acknowledgements must have left
		err = errors.Join(err, c.FlushTimeout(stopPatience))
		c.Close()
	}()
	consumer, err := js.Consumer(ctx, queue, natsWorkers)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	failed := make(chan error, 1)
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		var err error
		if h.Handle(m.Data()) != nil {
			err = m.NakWithDelay(RetryDelay)
		} else if err = m.Ack(); err == nil {
			h.Acknowledged(1)
		}
		if err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	}, jetstream.PullMaxMessages(PrefetchEach))
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	consuming.Drain() // what was delivered is handled, no more is asked for
	<-consuming.Closed()
	return err
}

func (s *natsServer) Count(ctx context.Context, queue string) (int64, error) {
	c, js, err := s.connect()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	stream, err := js.Stream(ctx, queue)
	if err != nil {
		return 0, err
	}
	return int64(stream.CachedInfo().State.Msgs), nil
}
