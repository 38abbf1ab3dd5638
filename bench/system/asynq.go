package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
)

// asynqCheck is how often idle workers look for tasks, and retries are looked
// for, in place of Asynq's 1 s and 5 s: its defaults would be all that the
// latency and storm phases measure.
const (
	asynqTaskCheck  = 10 * time.Millisecond
	asynqRetryCheck = 100 * time.Millisecond
)

// asynqOnRedis is Asynq on a Redis with an append-only file.
func asynqOnRedis(fsync string, class Class) System {
	return System{
		Name:       "Asynq AOF " + fsync,
		Class:      class,
		Durability: "Redis appendonly yes, appendfsync " + fsync,
		Workers: fmt.Sprintf("%d asynq.Server, each concurrency %d, TaskCheckInterval %v",
			Takers, HandlersEach, asynqTaskCheck),
		Retry: fmt.Sprintf("RetryDelayFunc, DelayedTaskCheckInterval %v", asynqRetryCheck),
		Install: func(ctx context.Context, env *Env) (string, error) {
			if err := env.apt(ctx, "redis-server", "redis-server"); err != nil {
				return "", err
			}
			text, err := env.output(ctx, "", "redis-server", "--version")
			if err != nil {
				return "", err
			}
			version, err := firstVersion(text)
			return "Asynq " + moduleVersion("github.com/hibiken/asynq") + ", Redis " + version, err
		},
		New: func(_ *Env, dir string) Server {
			return &asynqServer{fsync: fsync, dir: dir, daemon: daemon{signal: syscall.SIGTERM}}
		},
	}
}

type asynqServer struct {
	daemon
	fsync, dir string
	redis      asynq.RedisClientOpt
	client     *asynq.Client // shared by producers, as its documentation says
	inspector  *asynq.Inspector
}

// asynqConnections is enough for each of the producers to have its own.
const asynqConnections = 128

func (s *asynqServer) Start(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.redis = asynq.RedisClientOpt{Addr: "127.0.0.1:" + strconv.Itoa(port), PoolSize: asynqConnections}
	s.client, s.inspector = asynq.NewClient(s.redis), asynq.NewInspector(s.redis)
	return s.run(ctx, command{
		program: "redis-server",
		args: []string{
			"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", s.dir,
			"--save", "", "--appendonly", "yes", "--appendfsync", s.fsync,
			"--loglevel", "warning",
		},
	}, func(context.Context) error { return s.client.Ping() }) // fails while Redis loads its file
}

func (s *asynqServer) Stop() error {
	return errors.Join(s.disconnect(), s.daemon.Stop())
}

func (s *asynqServer) Kill() error {
	return errors.Join(s.disconnect(), s.daemon.Kill())
}

func (s *asynqServer) disconnect() error {
	if s.process == nil {
		return nil
	}
	return errors.Join(s.client.Close(), s.inspector.Close())
}

func (s *asynqServer) Create(context.Context, string) error { return nil }

func (s *asynqServer) Producer(_ context.Context, queue string) (Producer, error) {
	return &asynqProducer{client: s.client, options: []asynq.Option{asynq.Queue(queue)}}, nil
}

type asynqProducer struct {
	client  *asynq.Client
	options []asynq.Option
}

func (p *asynqProducer) Enqueue(ctx context.Context, payload []byte) error {
	_, err := p.client.EnqueueContext(ctx, asynq.NewTask("bench", payload), p.options...)
	return err
}

func (p *asynqProducer) EnqueueBulk(context.Context, [][]byte) error {
	return errors.ErrUnsupported // Asynq's client enqueues one task a call
}

func (p *asynqProducer) Close() error { return nil } // the client lives with the server

func (s *asynqServer) Work(ctx context.Context, queue string, h Handler) error {
	handle := func(_ context.Context, task *asynq.Task) error {
		if err := h.Handle(task.Payload()); err != nil {
			return err
		}
		h.Acknowledged(1)
		return nil
	}
	var servers []*asynq.Server
	defer func() {
		for _, server := range servers {
			server.Shutdown()
		}
	}()
	for range Takers {
		server := asynq.NewServer(s.redis, asynq.Config{
			Concurrency:              HandlersEach,
			Queues:                   map[string]int{queue: 1},
			TaskCheckInterval:        asynqTaskCheck,
			DelayedTaskCheckInterval: asynqRetryCheck,
			RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return RetryDelay },
			Logger:                   silent{},
			LogLevel:                 asynq.FatalLevel,
		})
		if err := server.Start(asynq.HandlerFunc(handle)); err != nil {
			return err
		}
		servers = append(servers, server)
	}
	<-ctx.Done()
	return nil
}

func (s *asynqServer) Count(_ context.Context, queue string) (int64, error) {
	info, err := s.inspector.GetQueueInfo(queue)
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int64(info.Size - info.Completed), nil
}

// silent drops what a library would log, except what ends the process.
type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}
