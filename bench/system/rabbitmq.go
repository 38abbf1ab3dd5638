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

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"
)

// rabbitmqProgram is the server itself; the command in PATH is a wrapper that
// wants to become another user.
const rabbitmqProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// One acknowledgement covers up to rabbitmqAckMax deliveries, or what came
// within rabbitmqAckPatience.
const (
	rabbitmqAckMax      = 100
	rabbitmqAckPatience = time.Millisecond
)

func rabbitmq() System {
	return System{
		Name:       "RabbitMQ quorum",
		Class:      D3,
		Durability: "quorum queue of one node, publisher confirms",
		Bulk:       "pipelined",
		Workers: fmt.Sprintf("%d connections, each basic.consume with prefetch %d; up to %d acknowledged at once, not answered",
			Takers, PrefetchEach, rabbitmqAckMax),
		Install: func(ctx context.Context, env *Env) (string, error) {
			if err := env.apt(ctx, rabbitmqProgram, "rabbitmq-server"); err != nil {
				return "", err
			}
			text, err := env.output(ctx, "", "dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server")
			return "RabbitMQ " + text + ", amqp091-go " + moduleVersion("github.com/rabbitmq/amqp091-go"), err
		},
		New: func(_ *Env, dir string) Server {
			return &rabbitmqServer{dir: dir, daemon: daemon{signal: syscall.SIGTERM}}
		},
	}
}

// rabbitmqServer runs a node and, outside of what is measured, the port mapper
// that every Erlang node wants.
type rabbitmqServer struct {
	daemon
	dir, url string
	mapper   *process
}

func (s *rabbitmqServer) Start(ctx context.Context) error {
	var ports [3]int
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return err
		}
	}
	listen, dist, mapper := strconv.Itoa(ports[0]), strconv.Itoa(ports[1]), strconv.Itoa(ports[2])
	for _, name := range []string{"plugins", "rabbitmq.conf"} {
		text := map[string]string{"plugins": "[].\n", "rabbitmq.conf": "listeners.tcp.1 = 127.0.0.1:" + listen + "\n"}[name]
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	environment := []string{
		"HOME=" + s.dir,
		"ERL_EPMD_PORT=" + mapper, "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=bench@localhost", "RABBITMQ_DIST_PORT=" + dist,
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(s.dir, "mnesia"), "RABBITMQ_LOG_BASE=" + filepath.Join(s.dir, "log"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(s.dir, "rabbitmq.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(s.dir, "plugins"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RUNNING_UNDER_SYSTEMD=true", // no shell in between, so that a signal reaches the node
	}
	var err error
	s.mapper, err = execute(command{program: "epmd", args: []string{"-port", mapper, "-address", "127.0.0.1"}, env: environment})
	if err != nil {
		return err
	}
	if err := untilServed(ctx, s.mapper, dialable("127.0.0.1:"+mapper)); err != nil {
		return errors.Join(err, s.Kill())
	}
	s.url = "amqp://guest:guest@127.0.0.1:" + listen + "/"
	err = s.run(ctx, command{program: rabbitmqProgram, env: environment}, func(context.Context) error {
		c, err := amqp.Dial(s.url)
		if err != nil {
			return err
		}
		return c.Close()
	})
	if err != nil {
		return errors.Join(err, s.Kill())
	}
	return nil
}

func (s *rabbitmqServer) Stop() error {
	err := s.daemon.Stop()
	s.stopMapper()
	return err
}

func (s *rabbitmqServer) Kill() error {
	err := s.daemon.Kill()
	s.stopMapper()
	return err
}

func (s *rabbitmqServer) stopMapper() {
	if s.mapper != nil {
		s.mapper.kill()
		s.mapper = nil
	}
}

// channel opens a connection with one channel.
func (s *rabbitmqServer) channel() (*amqp.Connection, *amqp.Channel, error) {
	c, err := amqp.Dial(s.url)
	if err != nil {
		return nil, nil, err
	}
	ch, err := c.Channel()
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, ch, nil
}

func (s *rabbitmqServer) Create(_ context.Context, queue string) error {
	c, ch, err := s.channel()
	if err != nil {
		return err
	}
	_, err = ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	return errors.Join(err, c.Close())
}

func (s *rabbitmqServer) Producer(_ context.Context, queue string) (Producer, error) {
	c, ch, err := s.channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &rabbitmqProducer{conn: c, channel: ch, queue: queue}, nil
}

type rabbitmqProducer struct {
	conn    *amqp.Connection
	channel *amqp.Channel
	queue   string
}

func (p *rabbitmqProducer) publish(ctx context.Context, payload []byte) (*amqp.DeferredConfirmation, error) {
	return p.channel.PublishWithDeferredConfirmWithContext(ctx, "", p.queue, true, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Body: payload})
}

func confirmed(ctx context.Context, d *amqp.DeferredConfirmation) error {
	ok, err := d.WaitContext(ctx)
	if err == nil && !ok {
		err = errors.New("a message was not confirmed")
	}
	return err
}

func (p *rabbitmqProducer) Enqueue(ctx context.Context, payload []byte) error {
	d, err := p.publish(ctx, payload)
	if err != nil {
		return err
	}
	return confirmed(ctx, d)
}

func (p *rabbitmqProducer) EnqueueBulk(ctx context.Context, payloads [][]byte) error {
	waiting := make([]*amqp.DeferredConfirmation, len(payloads))
	for i, payload := range payloads {
		var err error
		if waiting[i], err = p.publish(ctx, payload); err != nil {
			return err
		}
	}
	for _, d := range waiting {
		if err := confirmed(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (p *rabbitmqProducer) Close() error { return p.conn.Close() }

func (s *rabbitmqServer) Work(ctx context.Context, queue string, h Handler) error {
	g, ctx := errgroup.WithContext(ctx)
	for range Takers {
		g.Go(func() error { return s.take(ctx, queue, h) })
	}
	return g.Wait()
}

// take consumes until ctx ends. Closing the connection gives back what was
// delivered and not handled.
func (s *rabbitmqServer) take(ctx context.Context, queue string, h Handler) (err error) {
	c, ch, err := s.channel()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := ch.Qos(PrefetchEach, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	ended := c.NotifyClose(make(chan *amqp.Error, 1))
	tick := time.NewTicker(rabbitmqAckPatience)
	defer tick.Stop()
	var last amqp.Delivery
	unacknowledged := 0
	acknowledge := func() error {
		if unacknowledged == 0 {
			return nil
		}
		if err := last.Ack(true); err != nil {
			return err
		}
		h.Acknowledged(unacknowledged)
		unacknowledged = 0
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return acknowledge()
		case reason := <-ended:
			return fmt.Errorf("the server closed a consumer: %w", reason)
		case <-tick.C:
			if err := acknowledge(); err != nil {
				return err
			}
		case d, ok := <-deliveries:
			if !ok {
				deliveries = nil // ended says why
				continue
			}
			if err := h.Handle(d.Body); err != nil {
				return err // there is no retry with a delay
			}
			last = d
			if unacknowledged++; unacknowledged == rabbitmqAckMax {
				if err := acknowledge(); err != nil {
					return err
				}
			}
		}
	}
}

func (s *rabbitmqServer) Count(_ context.Context, queue string) (int64, error) {
	c, ch, err := s.channel()
	if err != nil {
		return 0, err
	}
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	return int64(q.Messages), errors.Join(err, c.Close())
}
