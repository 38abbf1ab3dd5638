package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// What River's own benchmark sets.
const (
	riverWorkersMax = 2000
	riverCooldown   = 2 * time.Millisecond
	riverPoll       = 20 * time.Millisecond
)

const (
	riverConnections    = 80 // of the pool: 64 producers, fetching, completing, listening
	postgresConnections = 100
)

func riverOnPostgres() System {
	return System{
		Name:       "River on PostgreSQL",
		Class:      D3,
		Durability: "PostgreSQL with default settings (synchronous_commit on)",
		Bulk:       "API",
		Workers: fmt.Sprintf("one river.Client, %d workers, FetchCooldown %v, FetchPollInterval %v, as in its own benchmark",
			riverWorkersMax, riverCooldown, riverPoll),
		Retry:        "NextRetry of the worker",
		AcksAnswered: true,
		Install:      installRiver,
		New: func(_ *Env, dir string) Server {
			return &riverServer{dir: dir, daemon: daemon{signal: syscall.SIGINT}} // SIGINT: do not wait for clients
		},
	}
}

func installRiver(ctx context.Context, env *Env) (string, error) {
	if _, err := postgresProgram("postgres"); err != nil {
		if err := env.apt(ctx, "postgres", "postgresql"); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			if _, missing := postgresProgram("postgres"); missing != nil {
				return "", err
			}
		}
	}
	program, err := postgresProgram("postgres")
	if err != nil {
		return "", err
	}
	text, err := env.output(ctx, "", program, "--version")
	if err != nil {
		return "", err
	}
	version, err := firstVersion(text)
	return "River " + moduleVersion("github.com/riverqueue/river") + ", PostgreSQL " + version, err
}

// postgresProgram finds a server program where Debian puts it, outside PATH;
// of several versions the newest.
func postgresProgram(name string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", errors.Join(err, fmt.Errorf("PostgreSQL's %s is not installed", name))
	}
	return slices.MaxFunc(found, func(a, b string) int { return postgresMajor(a) - postgresMajor(b) }), nil
}

func postgresMajor(program string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(program)))) // 0 sorts what is no number first
	return n
}

type riverServer struct {
	daemon
	dir  string
	pool *pgxpool.Pool
}

func (s *riverServer) Start(ctx context.Context) error {
	owner, err := postgresAccount()
	if err != nil {
		return err
	}
	program, err := postgresProgram("postgres")
	if err != nil {
		return err
	}
	data := filepath.Join(s.dir, "postgres")
	_, missing := os.Stat(data)
	if missing != nil {
		if err := s.initialise(data, owner); err != nil {
			return err
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	s.pool, err = pgxpool.New(ctx, fmt.Sprintf(
		"postgres://bench@127.0.0.1:%d/postgres?sslmode=disable&pool_max_conns=%d", port, riverConnections))
	if err != nil {
		return err
	}
	err = s.run(ctx, command{
		program: program, dir: data, user: owner,
		args: []string{
			"-D", data, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", "",
			"-c", "max_connections=" + strconv.Itoa(postgresConnections),
		},
	}, s.pool.Ping)
	if err != nil || missing == nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(s.pool), &rivermigrate.Config{Logger: quietLog()})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// initialise makes a database directory. PostgreSQL does not run as root.
func (s *riverServer) initialise(data string, owner *account) error {
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		if err := os.Chown(data, int(owner.uid), int(owner.gid)); err != nil {
			return err
		}
	}
	program, err := postgresProgram("initdb")
	if err != nil {
		return err
	}
	p, err := execute(command{
		program: program, dir: data, user: owner,
		args: []string{"-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-sync"},
	})
	if err != nil {
		return err
	}
	<-p.exited
	if !p.cmd.ProcessState.Success() {
		return p.alive()
	}
	return nil
}

// postgresAccount is whom PostgreSQL runs as when this process is root's.
func postgresAccount() (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &account{uint32(uid), uint32(gid)}, errors.Join(err1, err2)
}

func (s *riverServer) Stop() error {
	s.disconnect()
	return s.daemon.Stop()
}

func (s *riverServer) Kill() error {
	s.disconnect()
	return s.daemon.Kill()
}

func (s *riverServer) disconnect() {
	if s.pool != nil {
		s.pool.Close()
		s.pool = nil
	}
}

func (s *riverServer) Create(context.Context, string) error { return nil }

// riverArgs are a payload that is JSON already.
type riverArgs struct{ payload json.RawMessage }

func (riverArgs) Kind() string                   { return "bench" }
func (a riverArgs) MarshalJSON() ([]byte, error) { return a.payload, nil }
func (a *riverArgs) UnmarshalJSON(text []byte) error {
	a.payload = slices.Clone(text)
	return nil
}

func (s *riverServer) Producer(_ context.Context, queue string) (Producer, error) {
	c, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{Logger: quietLog()})
	if err != nil {
		return nil, err
	}
	return &riverProducer{client: c, options: &river.InsertOpts{Queue: queue}}, nil
}

type riverProducer struct {
	client  *river.Client[pgx.Tx]
	options *river.InsertOpts
	jobs    []river.InsertManyParams
}

func (p *riverProducer) Enqueue(ctx context.Context, payload []byte) error {
	_, err := p.client.Insert(ctx, riverArgs{payload}, p.options)
	return err
}

func (p *riverProducer) EnqueueBulk(ctx context.Context, payloads [][]byte) error {
	p.jobs = p.jobs[:0]
	for _, payload := range payloads {
		p.jobs = append(p.jobs, river.InsertManyParams{Args: riverArgs{payload}, InsertOpts: p.options})
	}
	_, err := p.client.InsertManyFast(ctx, p.jobs)
	return err
}

func (p *riverProducer) Close() error { return nil } // the pool lives with the server

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	handler Handler
}

func (w *riverWorker) Work(_ context.Context, job *river.Job[riverArgs]) error {
	return w.handler.Handle(job.Args.payload)
}

func (w *riverWorker) NextRetry(*river.Job[riverArgs]) time.Time { return time.Now().Add(RetryDelay) }

// riverEventsMax is more completions than are ever told of at once: River
// drops those that nobody takes in time.
const riverEventsMax = 1 << 18

func (s *riverServer) Work(ctx context.Context, queue string, h Handler) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{handler: h})
	c, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Logger:            quietLog(),
		Workers:           workers,
		Queues:            map[string]river.QueueConfig{queue: {MaxWorkers: riverWorkersMax}},
		FetchCooldown:     riverCooldown,
		FetchPollInterval: riverPoll,
	})
	if err != nil {
		return err
	}
	completed, unsubscribe := c.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: riverEventsMax, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	told := make(chan struct{})
	go func() {
		defer close(told)
		for range completed {
			h.Acknowledged(1)
		}
	}()
	defer func() {
		unsubscribe()
		<-told
	}()
	beyond := context.WithoutCancel(ctx) // ctx must not abort jobs, only end the taking
	if err := c.Start(beyond); err != nil {
		return err
	}
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(beyond, stopPatience)
	defer cancel()
	return c.Stop(stopping)
}

func (s *riverServer) Count(ctx context.Context, queue string) (n int64, err error) {
	err = s.pool.QueryRow(ctx,
		"SELECT count(*) FROM river_job WHERE queue = $1 AND finalized_at IS NULL", queue).Scan(&n)
	return n, err
}

func quietLog() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
