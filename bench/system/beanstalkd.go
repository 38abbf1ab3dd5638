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

	"github.com/beanstalkd/go-beanstalk"
	"golang.org/x/sync/errgroup"
)

// beanstalkd with one of its fsync flags; "" is its default, every 50 ms.
func beanstalkd(fsync string, class Class) System {
	name, args := "beanstalkd default", []string{}
	if fsync != "" {
		name, args = "beanstalkd "+fsync, []string{fsync}
	}
	durability := "-b DIR " + fsync
	if fsync == "" {
		durability = "-b DIR (default: fsync at most every 50 ms)"
	}
	return System{
		Name:         name,
		Class:        class,
		Durability:   durability,
		Bulk:         "pipelined",
		Workers:      fmt.Sprintf("%d connections, each reserve, then delete", handlers),
		Retry:        "release with a delay",
		AcksAnswered: true,
		Install: func(ctx context.Context, env *Env) (string, error) {
			if err := env.apt(ctx, "beanstalkd", "beanstalkd"); err != nil {
				return "", err
			}
			text, err := env.output(ctx, "", "beanstalkd", "-v")
			return text + ", go-beanstalk " + moduleVersion("github.com/beanstalkd/go-beanstalk"), err
		},
		New: func(_ *Env, dir string) Server {
			return &beanstalkdServer{args: args, dir: filepath.Join(dir, "binlog"), daemon: daemon{signal: syscall.SIGTERM}}
		},
	}
}

type beanstalkdServer struct {
	daemon
	args      []string
	dir, addr string
}

func (s *beanstalkdServer) Start(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	s.addr = "127.0.0.1:" + strconv.Itoa(port)
	args := append([]string{"-l", "127.0.0.1", "-p", strconv.Itoa(port), "-b", s.dir}, s.args...)
	return s.run(ctx, command{program: "beanstalkd", args: args}, dialable(s.addr))
}

func (s *beanstalkdServer) Create(context.Context, string) error { return nil }

const (
	beanstalkPriority  = 1024
	beanstalkTTR       = 2 * time.Minute // longer than any phase
	beanstalkReserving = time.Second     // the protocol counts in seconds
)

func (s *beanstalkdServer) Producer(_ context.Context, queue string) (Producer, error) {
	c, err := beanstalk.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	return &beanstalkdProducer{conn: c, tube: beanstalk.NewTube(c, queue)}, nil
}

type beanstalkdProducer struct {
	conn *beanstalk.Conn
	tube *beanstalk.Tube
}

func (p *beanstalkdProducer) Enqueue(_ context.Context, payload []byte) error {
	_, err := p.tube.Put(payload, beanstalkPriority, 0, beanstalkTTR)
	return err
}

// EnqueueBulk pipelines: the protocol has no command for many jobs, but the
// client sends what concurrent callers ask of one connection one after the
// other and matches the answers.
func (p *beanstalkdProducer) EnqueueBulk(ctx context.Context, payloads [][]byte) error {
	var g errgroup.Group
	for _, payload := range payloads {
		g.Go(func() error { return p.Enqueue(ctx, payload) })
	}
	return g.Wait()
}

func (p *beanstalkdProducer) Close() error { return p.conn.Close() }

func (s *beanstalkdServer) Work(ctx context.Context, queue string, h Handler) error {
	g, ctx := errgroup.WithContext(ctx)
	for range handlers {
		g.Go(func() error { return s.take(ctx, queue, h) })
	}
	return g.Wait()
}

// take works one connection until ctx ends. It does not interrupt a reserve:
// the answer may be on its way, and with it a job.
func (s *beanstalkdServer) take(ctx context.Context, queue string, h Handler) error {
	c, err := beanstalk.Dial("tcp", s.addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is held by now
	tubes := beanstalk.NewTubeSet(c, queue)
	for ctx.Err() == nil {
		id, payload, err := tubes.Reserve(beanstalkReserving)
		if errors.Is(err, beanstalk.ErrTimeout) {
			continue
		}
		if err != nil {
			return err
		}
		if h.Handle(payload) != nil {
			err = c.Release(id, beanstalkPriority, RetryDelay)
		} else if err = c.Delete(id); err == nil {
			h.Acknowledged(1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *beanstalkdServer) Count(_ context.Context, queue string) (int64, error) {
	c, err := beanstalk.Dial("tcp", s.addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }() // only read from
	stats, err := beanstalk.NewTube(c, queue).Stats()
	if errors.Is(err, beanstalk.ErrNotFound) { // a tube without jobs does not exist
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
		n, err := strconv.ParseInt(stats["current-jobs-"+state], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("stats of tube %s: %w", queue, err)
		}
		sum += n
	}
	return sum, nil
}
