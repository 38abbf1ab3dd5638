// Package server assembles a server from its configuration: it chooses the
// store, connects engine, doors and listeners, starts them in order and stops
// them in reverse. It owns no rule and no vocabulary.
package server

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/jq"
	"github.com/reprisehq/reprise/internal/metrics"
	"github.com/reprisehq/reprise/internal/part"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
	"github.com/reprisehq/reprise/internal/trace"
)

// Run serves until ctx ends, then stops: no new work, streams end, everything
// that was accepted is answered, the store is closed.
func Run(ctx context.Context, cfg config.Config) (err error) {
	log := cfg.Log
	if log == nil {
		log = slog.Default()
	}
	limitMemory(cfg)
	// A small heap is collected very often under load. Memory that is never
	// touched costs nothing and makes the collector wait for 64 MiB of garbage.
	ballast := make([]byte, 64<<20)
	defer runtime.KeepAlive(ballast)
	clock := engine.SystemClock()
	st, err := openStore(cfg, clock, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	spans, err := trace.New(ctx, os.Getenv, Version, log)
	if err != nil {
		return err
	}
	options := engineOptions(cfg)
	options.Lead = spans.Lead(ctx)
	e := part.New(st, clock, secureRandom(), log, options)
	e.Folds.Folder = jobs.Fold(cfg.BodyBytesMax)
	e.Grid.Options = gridpart.Options{Heartbeat: cfg.Grid.HeartbeatInterval, LostAfter: cfg.Grid.LostAfter, BlackHoles: cfg.Grid.Holes()}
	e.Crons.Settings = cfg.Crons
	e.Meter.Named = cfg.MetricsQueues
	e.Tokens.Admin.Store(cfg.HasAdmin())
	if err := spans.Listen(e); err != nil {
		return err
	}
	defer closeSpans(cfg, spans)
	began := time.Now()
	if err := e.Start(ctx); err != nil {
		return unlessStopped(ctx, fmt.Errorf("starting: %w", err), log)
	}
	spans.Start(ctx)
	log.Debug("recovered", "took", time.Since(began).String())
	return listenAndServe(ctx, cfg, e, &upkeep{st, e.Engine, log}, log)
}

func openStore(cfg config.Config, clock engine.Clock, log *slog.Logger) (*embedded.Store, error) {
	sync, err := embedded.ParseSync(string(cfg.Sync))
	if err != nil {
		return nil, err
	}
	tighten(cfg.RootDir, log)
	interval := cfg.SyncInterval
	if sync != embedded.Interval {
		interval = 0
	}
	return embedded.Open(embedded.Options{
		Dir: cfg.RootDir, Now: clock.Wall, Sync: sync, Interval: interval, Cache: cfg.CacheBytes,
		Logf: func(format string, args ...any) {
			log.Error("the store reports trouble", "error", fmt.Sprintf(format, args...))
		},
	})
}

func engineOptions(cfg config.Config) engine.Options {
	rules := rule.DefaultServer()
	rules.Retry, rules.Types, rules.Doors = cfg.Retry, cfg.Types, cfg.Doors
	rules.RetainDone, rules.RetainDead = cfg.RetainDone, cfg.RetainDead
	return engine.Options{
		Server: rules, Queues: cfg.Queues, Changes: httpapi.QueueChanges,
		Idempotency: cfg.IdempotencyWindow, Reattach: cfg.ReattachWindow,
		QueuesMax: cfg.MaxQueues, InFlightMax: cfg.GlobalInFlightLimit,
		Reserve: engine.Reserve{Bytes: cfg.DiskReserve.Bytes, Share: cfg.DiskReserve.Percent / 100},
	}
}

// limitMemory is for this process and for those that evaluate expressions.
func limitMemory(cfg config.Config) {
	if cfg.MemoryLimit > 0 {
		debug.SetMemoryLimit(cfg.MemoryLimit)
	}
	jq.SetMemory(cfg.JQMemory)
}

// changeable are the settings of the API that a reload changes.
func changeable(cfg config.Config) httpapi.Changeable {
	return httpapi.Changeable{AllowHosts: cfg.AllowHost, BackoffCount: cfg.BackoffCount, Retry: cfg.Retry, Strict: cfg.Strict}
}

// upload is how fast bodies have to come.
func upload(cfg config.Config) httpapi.Upload {
	const within = 10
	if cfg.UploadRate == 0 {
		return httpapi.Upload{Bytes: -1}
	}
	return httpapi.Upload{Bytes: within * cfg.UploadRate, Within: within * time.Second}
}

// NewToken makes the text of a token for the configuration.
func NewToken() string { return job.NewSecret(secureRandom()) }

// secureRandom gives unguessable bits: lease tokens are made of them.
func secureRandom() func() uint64 {
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:]) // never fails (crypto/rand)
	src := rand.NewChaCha8(seed)
	var mu sync.Mutex
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return src.Uint64()
	}
}

func listenAndServe(ctx context.Context, cfg config.Config, e *part.Engine, keep *upkeep, log *slog.Logger) error {
	tokens, err := admission(ctx, cfg, e)
	var (
		inboxes   *inbox.Door
		pipes     *pipelines
		doors     stoppers
		listeners []*opened
	)
	if err == nil {
		inboxes, pipes, doors, err = openDoors(ctx, cfg, e, log)
	}
	if err == nil {
		listeners, err = openAll(ctx, cfg)
	}
	if err != nil {
		return errors.Join(unlessStopped(ctx, err, log), stop(cfg, e, doors))
	}
	live, page := httpapi.NewLive(changeable(cfg)), metrics.New(e, Version)
	handler := httpapi.New(httpapi.Options{
		Engine: e, Log: log, Version: Version,
		Tokens: tokens, Guard: cfg.Guard, Profiles: profiles(cfg), StreamsMax: cfg.MaxStreams,
		BodyMax: cfg.BodyBytesMax, InflightMax: cfg.InflightBytesMax, Upload: upload(cfg),
		Heartbeat: cfg.HeartbeatInterval, Null: cfg.Null, Metrics: page, Upkeep: keep, Live: live, Grid: &cfg.Grid, Inboxes: inboxes,
	})
	parts := []reloadable{
		refuseExposure(tokens.Closed), engineSettings(e.Engine), logLevel(log),
		{"names of hosts, defaults of jobs", func(_ context.Context, _, to config.Config) error {
			live.Set(changeable(to))
			return nil
		}},
		{"inboxes", func(ctx context.Context, _, to config.Config) error { return inboxes.Configure(ctx, to.Inboxes) }},
		{"pipelines", func(ctx context.Context, _, to config.Config) error { return pipes.configure(ctx, to) }},
		{"tokens", func(_ context.Context, _, to config.Config) error {
			err := tokens.Configure(to.Tokens)
			if err == nil {
				e.Tokens.Admin.Store(to.HasAdmin())
			}
			return err
		}},
	}
	for _, o := range listeners {
		if o.certificates != nil {
			parts = slices.Insert(parts, 1, certificateFiles(o.certificates))
		}
	}
	go (&reloader{now: cfg, parts: parts, log: log, asked: pipes.asked}).follow(ctx, cfg.Reload)
	crowd := &httpapi.Crowd{Total: connectionsMax(cfg.MaxConnections, descriptors(), log), PerAddress: cfg.MaxPerAddress, Log: log}
	page.Connections(crowd)
	page.Inboxes(inboxes.Stuck)
	storing(log, cfg.RootDir)
	served := make(chan error, len(listeners))
	for _, o := range listeners {
		serves := handler
		if o.api == "admin" {
			serves = httpapi.Admin(handler)
		}
		o.server = httpapi.NewServer(serves)
		o.server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
		go func() { served <- o.serve(crowd) }()
		listening(log, o.api, o.addr, o.scheme)
	}
	if err := notify("READY=1"); err != nil {
		log.Warn("the supervisor could not be told that the server is ready", "error", err)
	}
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("serving: %w", err), stop(cfg, e, doors))
	case <-ctx.Done():
	case <-pipes.over:
	}
	return leave(cfg, e, doors, listeners, log)
}

// leave stops a server that was told to.
func leave(cfg config.Config, e *part.Engine, doors stoppers, listeners []*opened, log *slog.Logger) error {
	log.Info("stopping")
	_ = notify("STOPPING=1")   // it was told to stop us
	err := stop(cfg, e, doors) // ends the streams, so that Shutdown finds idle connections
	limit, cancel := context.WithTimeout(context.Background(), max(cfg.ShutdownTimeout, time.Second))
	defer cancel()
	for _, o := range listeners {
		if o.server.Shutdown(limit) != nil {
			err = errors.Join(err, o.server.Close())
		}
	}
	log.Info("stopped")
	return err
}

// openDoors opens the doors that deliver by themselves. Those that are open are among the
// stoppers, also with an error.
func openDoors(ctx context.Context, cfg config.Config, e *part.Engine, log *slog.Logger) (*inbox.Door, *pipelines, stoppers, error) {
	inboxes, err := openInboxes(ctx, cfg, e, log)
	if err != nil {
		return nil, nil, nil, err
	}
	pipes, err := openPipelines(ctx, cfg, e, log)
	return inboxes, pipes, stoppers{inboxes.Stop, pipes.Stop}, err
}

// unlessStopped is why a start failed, nil if it was only told to stop.
func unlessStopped(ctx context.Context, err error, log *slog.Logger) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("stopped before it listened")
	return nil
}

// stoppers end what delivers by itself.
type stoppers []func()

func stop(cfg config.Config, e *part.Engine, doors stoppers) error {
	for _, end := range doors {
		end() // before the engine, which settles what was delivered
	}
	limit, cancel := context.WithTimeout(context.Background(), max(cfg.ShutdownTimeout, time.Second))
	defer cancel()
	return e.Stop(limit)
}

// closeSpans sends the last spans; a collector that does not answer holds
// nobody up for longer than a stop may take.
func closeSpans(cfg config.Config, spans *trace.Exporter) {
	limit, cancel := context.WithTimeout(context.Background(), min(max(cfg.ShutdownTimeout, time.Second), 5*time.Second))
	defer cancel()
	spans.Close(limit)
}

// admission is who may do what: the tokens of the configuration and of the
// store. It refuses a server that others could reach without any.
func admission(ctx context.Context, cfg config.Config, e *part.Engine) (*auth.Keeper, error) {
	tokens := auth.New(cfg.Tokens, engine.SystemClock().Wall)
	list, err := e.Tokens.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	tokens.Add(list...)
	if why := cfg.Exposed(tokens.Closed()); why != nil && !cfg.Insecure {
		return nil, why
	}
	return tokens, nil
}

// profiles are those of the Go runtime, nil if they are not wanted.
func profiles(cfg config.Config) http.Handler {
	if !cfg.Pprof {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
